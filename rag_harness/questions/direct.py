"""Facts of current pages -> direct questions, one page after the other, so that no page dominates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from random import Random

from rag_harness.questions.collection import Collection
from rag_harness.questions.draft import Draft
from rag_harness.questions.facts import Fact, read_facts
from rag_harness.questions.selecting import in_turn
from rag_harness.questions.wording import question_of
from rag_harness.types import Document, Evidence

KIND = "direct"


def direct_drafts(collection: Collection, seed: int) -> Iterator[Draft]:
    """Yield drafts, a page's turn after the other's; facts of a page are read when its first turn comes."""
    chance = Random(f"{seed} direct")  # noqa: S311 - a draw that must repeat, no secret
    for fact in in_turn(collection.current, lambda document: list(read_facts(document)), chance):
        yield draft_of(fact, chance)


def draft_of(fact: Fact, chance: Random) -> Draft:
    """Return the question that asks for a fact."""
    plain = question_of(fact, chance)
    evidence = (Evidence(fact.doc_id, fact.quote),)
    return Draft(KIND, plain, plain, fact.said, fact.answer, evidence, (fact.kind,))


__all__ = ["Counter", "Document", "Sequence", "direct_drafts", "draft_of"]
