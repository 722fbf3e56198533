"""Questions that ask for the same fact of two similar things on two pages, and how they compare."""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random

from rag_harness.authoring.questions.document_collection import DocumentCollection
from rag_harness.authoring.questions.draft import Draft
from rag_harness.authoring.questions.facts import Fact
from rag_harness.authoring.questions.filters import fault_of_half
from rag_harness.authoring.questions.paraphrase import in_other_words
from rag_harness.authoring.questions.planned.statement import is_many
from rag_harness.authoring.questions.planned.value_questions import unit_of
from rag_harness.authoring.questions.selecting import shuffled
from rag_harness.authoring.questions.wording import question_of, sentence
from rag_harness.types import Evidence

KIND = "multi_hop"


def are_planned(one: str, other: str, collection: DocumentCollection) -> bool:
    """Whether the plan says that two pages are about different things."""
    things = collection.planned.things
    return one in things and other in things and things[one] != things[other]


def like_draft(
    mine: Sequence[Fact], theirs: Sequence[Fact], collection: DocumentCollection, chance: Random
) -> Draft | None:
    """Return a question about a fact that both pages state about their things; None if there is no such fact."""
    if not mine or not theirs:
        return None
    one, other = (_by_frame(facts, collection) for facts in (mine, theirs))
    for frame in shuffled(sorted(one.keys() & other.keys()), chance):
        pair = (one[frame], other[frame])
        asked = [question_of(fact, chance) for fact in pair]
        if _are_one(pair, asked, collection) and not any(map(fault_of_half, pair, asked, [collection] * 2)):
            return _both(pair, asked[0], collection, chance)
    return None


def _are_one(pair: tuple[Fact, Fact], asked: Sequence[str], collection: DocumentCollection) -> bool:
    """Whether two facts answer the same question words: "by whom" is not answered by "with a cloth"."""
    things = [collection.planned.things[fact.doc_id] for fact in pair]
    one, other = (re.sub(re.escape(thing), "", said, flags=re.I) for thing, said in zip(things, asked, strict=True))
    return one.casefold() == other.casefold()


def _by_frame(facts: Sequence[Fact], collection: DocumentCollection) -> dict[str, Fact]:
    frames = {told.fact.id: frame for frame, told in collection.planned.told.get(facts[0].doc_id, {}).items()}
    return {frames[fact.parts["id"]]: fact for fact in facts if fact.parts.get("id") in frames}


def _both(pair: tuple[Fact, Fact], asked: str, collection: DocumentCollection, chance: Random) -> Draft:
    called = [collection.planned.called(fact.doc_id) for fact in pair]
    greater = None if asked.startswith("How often") else _greater(pair)
    do = "do" if is_many(called[1].split()) else "does"
    about = chance.choice(_COMPARED if greater is not None else _ALSO).format(called[1], do=do)
    evidence = tuple(Evidence(fact.doc_id, fact.quote) for fact in pair)
    truth = " ".join(fact.said for fact in pair)
    if greater is not None:
        truth += f" The greater figure is that of {called[greater]}."
    plain, text = (sentence(f"{said.rstrip('?')}, {about}") for said in (asked, in_other_words(asked, chance)))
    answer, made_of = " ".join(fact.answer for fact in pair), tuple(fact.kind for fact in pair)
    return Draft(KIND, plain, text, truth, answer, evidence, made_of, {"kind": "like things"})


_COMPARED = ("and how {do} {0} compare", "and is the figure for {0} higher or lower", "and is that more than for {0}")
_ALSO = ("and what about {0}", "and what applies to {0}")


def _greater(pair: tuple[Fact, Fact]) -> int | None:
    """Return which of two answers is the greater figure; None for equal ones, other units, and non-figures."""
    units = [unit_of(fact.answer) for fact in pair]
    figures = [re.findall(r"\d+(?:\.\d+)?", fact.answer.replace(",", "")) for fact in pair]
    if not units[0] or units[0] != units[1] or any(len(found) != 1 for found in figures):
        return None
    one, other = (float(found[0]) for found in figures)
    return None if one == other else int(other > one)
