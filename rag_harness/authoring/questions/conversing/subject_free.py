"""Filters of turns: the words of a follow-up do not say what it is about, and the question that stands alone does."""

from __future__ import annotations

from rag_harness.authoring.questions.conversing.turn_draft import TurnDraft
from rag_harness.authoring.questions.document_collection import DocumentCollection
from rag_harness.authoring.questions.filters import SAME, draft_fault

NAMES_IT = "a follow-up names what it should leave out"
LEADS = "the words of a follow-up lead to its page by themselves"
SAYS_ALL = "a follow-up says as much as the question that stands alone"


def turn_fault(turn: TurnDraft, collection: DocumentCollection) -> str | None:
    """Return the first reason against a turn; None if there is none."""
    if turn.needs_history:
        said = collection.terms(turn.text)
        if collection.terms(turn.left_out) & said:
            return NAMES_IT
        if turn.left_out and collection.terms(turn.alone.text) <= said:
            return SAYS_ALL
        if turn.is_bare and not is_subject_free(turn.text, turn.near_pages, collection):
            return LEADS
    return draft_fault(turn.alone, collection)


def is_subject_free(text: str, pages: tuple[str, ...], collection: DocumentCollection) -> bool:
    """Whether the words of a turn do not lead to ``pages``.

    A search by them finds another page first, or another page has nearly all of them that these pages have. In a
    collection of one page there is no other, and any words are as good.
    """
    known = collection.by_id
    own = frozenset[str]().union(*(collection.page_terms(name) for name in pages if name in known))
    wanted = collection.terms(text) & own
    if not wanted or len(collection.documents) == 1:
        return True
    found = [hit.chunk for hit in collection.nearest(text)]
    others = [chunk for chunk in found if chunk.doc_id not in pages]
    return found[:1] == others[:1] or any(collection.covered(wanted, chunk.text) >= SAME for chunk in others)
