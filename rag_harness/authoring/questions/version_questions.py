"""Questions about facts that a superseded page states differently: a stale answer fails, or old and new are asked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from rag_harness.authoring.questions.direct import drafts_of
from rag_harness.authoring.questions.document_collection import DocumentCollection
from rag_harness.authoring.questions.draft import Draft
from rag_harness.authoring.questions.facts import PLANNED_KINDS, Fact
from rag_harness.authoring.questions.quotable_passages import seen
from rag_harness.authoring.questions.wording import question_of, sentence
from rag_harness.types import Document, Evidence
from rag_harness.words.contradictions import Quote, contradictions

OF_PAIR = 2
"""The most questions for a pair of pages."""


def version_drafts(collection: DocumentCollection, chance: Random) -> Iterator[tuple[Draft, ...]]:
    """Yield direct questions about facts of current pages that the previous page states differently."""
    for old, new in _pairs(collection):
        for fact, stale in _changed(old, new, collection)[:OF_PAIR]:
            superseded = {"outdated_statement": stale.said, "current_statement": fact.said}
            told = {"version_conflict": True, "version_pair": old.doc_id, "superseded": [superseded]}
            drafts = drafts_of(fact, collection, chance)
            yield tuple(replace(draft, metadata={**draft.metadata, **told}) for draft in drafts)


def old_and_new_drafts(collection: DocumentCollection, chance: Random) -> Iterator[tuple[Draft, ...]]:
    """Yield questions about what is true now and what was true before; they need both pages."""
    for old, new in _pairs(collection):
        for fact, stale in _changed(old, new, collection)[:1]:
            plain = sentence(f"{question_of(fact, chance).rstrip('?')}, today and under {seen(old.title)}")
            truth = f"Now: {fact.said} Before: {stale.said}"
            evidence = (Evidence(new.doc_id, fact.quote), Evidence(old.doc_id, stale.quote))
            metadata = {"kind": "old and new", "hops": 2, "linked": "yes", "version_conflict": True}
            answer = f"{fact.answer} {stale.answer}"
            yield (Draft("multi_hop", plain, plain, truth, answer, evidence, (fact.kind, stale.kind), metadata),)


def _pairs(collection: DocumentCollection) -> list[tuple[Document, Document]]:
    known = collection.by_id
    return [(known[old], known[new]) for old, new in sorted(collection.superseded.items()) if new in known]


def _changed(old: Document, new: Document, collection: DocumentCollection) -> list[tuple[Fact, Fact]]:
    """Return the facts of a page that contradict the previous page, each once, with the previous page's statement."""
    before, now = ([fact for fact in collection.facts(page.doc_id) if fact.kind in _KINDS] for page in (old, new))
    changed: dict[int, tuple[Fact, Fact]] = {}
    for each in contradictions([old.text, new.text]):
        for fact in (fact for fact in now if _stands_in(fact, each.second) and each.differs[1] in fact.said):
            for stale in (stale for stale in before if _stands_in(stale, each.first) and _same(stale, fact)):
                changed.setdefault(fact.start, (fact, stale))
    return list(changed.values())


_KINDS = frozenset(("cell", "quantity", "condition", *PLANNED_KINDS))


def _stands_in(fact: Fact, quote: Quote) -> bool:
    return fact.start < quote.end and quote.start < fact.end


def _same(stale: Fact, fact: Fact) -> bool:
    """Whether two facts state different things about one subject: the same cell, or the same form of prose."""
    same = stale.parts.get("asked") == fact.parts.get("asked") if fact.kind == "cell" else stale.kind == fact.kind
    return same and stale.answer != fact.answer
