"""Which facts of a page a conversation can ask for: whole, with an answer of their own, and not told in two ways."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence

from rag_harness.authoring.questions.clauses import AUXILIARIES
from rag_harness.authoring.questions.facts import Fact
from rag_harness.authoring.questions.verbs import BASES, THIRD
from rag_harness.authoring.questions.wordlists import word_set
from rag_harness.words.terms import terms

_VERBS = AUXILIARIES | BASES | THIRD.keys() | word_set("went got came lost left sent found broke fell need i you we")
_SHORT = frozenset(("ed", "'m", "'re", "'ve", "'s", "n't", "’m", "’re", "’ve", "’s", "n’t"))
_ELSEWHERE = re.compile(r"(?:please )?(?:read|see|look|start with|check|visit|have a look|go to|follow)\b", re.I)
_TO_FILL_IN = re.compile(r"`[^`\n]{0,200}<[^<>`\n]{1,80}>[^`\n]{0,200}`")
_LEAST_ASKED = 4
"""How many content words a question about the reader needs: "am I forced to buy anything" may be about anything."""


def usable(facts: Sequence[Fact]) -> list[Fact]:
    """Return the facts of a page without those that ask the same and tell otherwise, and without halves."""
    alike = Counter(map(_asked, facts))
    found = [fact for fact in facts if alike[_asked(fact)] == 1 and _has_verb(fact) and _tells(fact)]
    sections: dict[str, set[tuple[str, ...]]] = defaultdict(set)
    for fact in found:
        sections[_name(fact)].add(fact.section)
    return [fact for fact in found if not _name(fact) or len(sections[_name(fact)]) == 1]


def _name(fact: Fact) -> str:
    """Return a thing's name without brackets. In tables of two sections it is asked about two matters."""
    return fact.parts.get("thing", "").split(" (", 1)[0]


def _asked(fact: Fact) -> tuple[object, ...]:
    """Return what a fact is asked by. "If it is passed" and "when it is provided" are one condition."""
    if "condition" in fact.parts:
        words = frozenset("given" if word in _GIVEN else word for word in terms(fact.parts["condition"]))
        return ("condition", words)
    return (fact.kind, *(f"{name} {part}" for name, part in sorted(fact.parts.items())))


_GIVEN = terms("passed provided supplied given set specified configured")


def _has_verb(fact: Fact) -> bool:
    """Whether a condition has a verb: "if your old tent, mower or lamp works" is cut behind the tent."""
    words = re.findall(r"[\w'’]+", fact.parts.get("condition", "is").lower())
    return any(word in _VERBS or word.endswith(tuple(_SHORT)) for word in words)


def _tells(fact: Fact) -> bool:
    """Whether the answer tells something itself: "we don't", "say so" and "read the next page" do not.

    Neither does code with something to fill in, ``id='<yours>'``: the statement is shown without that.
    """
    if _TO_FILL_IN.search(fact.quote):
        return False
    if fact.kind in ("condition", "purpose"):
        says = len(terms(fact.answer)) > 1 or any(map(str.isdigit, fact.answer))
        return says and not _ELSEWHERE.match(fact.answer)
    if fact.kind == "permission":
        asked = fact.parts["asked"]
        is_of_reader = fact.parts["subject"] in ("me", "I", "you")
        return not asked.startswith("may ") and not (is_of_reader and len(terms(asked)) < _LEAST_ASKED)
    if fact.kind == "property":
        return len(terms(fact.answer)) > 1
    attribute = fact.parts.get("attribute", "")
    if re.match(r"(?:the )?same\b", fact.answer, re.I):
        return False
    # "Email: on" is no address, and "the product" is no attribute.
    return not attribute.startswith("the ") and (attribute != "email" or "@" in fact.answer)
