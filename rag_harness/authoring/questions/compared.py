"""Questions that compare cells of two pages with the same attribute and unit: which has more?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random

from rag_harness.authoring.questions.draft import Draft
from rag_harness.authoring.questions.facts import Fact
from rag_harness.authoring.questions.wording import sentence
from rag_harness.types import Evidence

IN_COMMON = 2
"""How many attributes two things must share to be similar: all things have a price."""
NEAR = 3.0
"""The greater of two compared values may be at most so many times the lesser."""
_FIGURE = re.compile(r"[^\d]{0,3}(\d+(?:[.,]\d+)*)\s?\S*")
MORE = {
    "weight": "is heavier", "price": "costs more", "cost": "costs more", "fee": "costs more", "charge": "costs more",
    "height": "is taller", "length": "is longer",
}  # fmt: skip


def comparison(mine: Sequence[Fact], theirs: Sequence[Fact], chance: Random) -> Draft | None:
    """Return a question about which of two similar things has more of an attribute; None if no cells are comparable."""
    for first in mine:
        for second in theirs:
            one, other = figure_in_cell(first), figure_in_cell(second)
            if not one or not other or len(_told_of(first, mine) & _told_of(second, theirs)) < IN_COMMON:
                continue
            if one[:2] == other[:2] and is_near(one[2], other[2]) and _differ(first, second):
                return _draft(first, second, one[2] > other[2], chance)
    return None


def _told_of(fact: Fact, facts: Sequence[Fact]) -> set[str]:
    """Return the attributes of a fact's thing in the tables of its page."""
    return {each.parts["attribute"] for each in facts if each.parts.get("thing") == fact.parts["thing"]}


def is_near(one: float, other: float) -> bool:
    """Whether two numbers differ, but not so much that the question would be silly."""
    return one != other and max(one, other) <= NEAR * min(one, other)


def _differ(first: Fact, second: Fact) -> bool:
    return first.parts["thing"].casefold() != second.parts["thing"].casefold()


def figure_in_cell(fact: Fact) -> tuple[str, str, float] | None:
    """Return attribute, unit and number of a cell with exactly one number."""
    match = _FIGURE.fullmatch(fact.answer.strip())
    if "attribute" not in fact.parts or not match or fact.parts["attribute"] in ("code", "number", "address"):
        return None
    number = re.sub(r",(?=\d{3}\b)", "", match[1]).replace(",", ".")
    return (fact.parts["attribute"], fact.answer.replace(match[1], "").strip(), float(number)) if _one(number) else None


def _one(number: str) -> bool:
    return re.fullmatch(r"\d+(?:\.\d+)?", number) is not None


def _draft(first: Fact, second: Fact, first_is_more: bool, chance: Random) -> Draft:
    attribute = first.parts["attribute"]
    more = MORE.get(attribute, f"has the higher {attribute}")
    things = [first.parts["thing"], second.parts["thing"]]
    winner = things[0] if first_is_more else things[1]
    asked = chance.choice((f"which {more}, {things[0]} or {things[1]}", f"{things[0]} or {things[1]}, which {more}"))
    truth = f"{winner[:1].upper()}{winner[1:]} {more}: {first.said}; {second.said}."
    evidence = (Evidence(first.doc_id, first.quote), Evidence(second.doc_id, second.quote))
    plain = sentence(asked)
    answer = f"{first.answer} {second.answer}"
    return Draft("multi_hop", plain, plain, truth, answer, evidence, ("cell", "cell"), {"kind": "comparison"})
