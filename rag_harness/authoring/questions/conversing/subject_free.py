"""Filters of turns: the words of a follow-up do not say what it is about, and the question that stands alone does."""

from __future__ import annotations

from rag_harness.authoring.questions.conversing.turn_draft import FIRST, SUBJECT_CHANGE, TurnDraft
from rag_harness.authoring.questions.document_collection import DocumentCollection
from rag_harness.authoring.questions.filters import SAME, draft_fault

NAMES_IT = "a follow-up names what it should leave out"
LEADS = "the words of a follow-up lead to its page by themselves"


def turn_fault(turn: TurnDraft, collection: DocumentCollection) -> str | None:
    """Return the first reason against a turn; None if there is none."""
    if turn.left_out and collection.terms(turn.left_out) & collection.terms(turn.text):
        return NAMES_IT
    if turn.left_out and not is_subject_free(turn.text, turn.alone.pages, collection):
        return LEADS
    return draft_fault(turn.alone, collection)


def is_subject_free(text: str, pages: tuple[str, ...], collection: DocumentCollection) -> bool:
    """Whether the words of a turn say too little to find its pages: another page has nearly all of them, too.

    In a collection of one page there is no other, and the words are as good as any.
    """
    wanted = collection.terms(text)
    if not wanted or len(collection.documents) < 2:
        return True
    found = (hit.chunk for hit in collection.nearest(text) if hit.chunk.doc_id not in pages)
    return any(collection.covered(wanted, chunk.text) >= SAME for chunk in found)


def stands_alone(turn: TurnDraft) -> bool:
    """Whether a turn is of a kind that needs nothing said before it."""
    return turn.kind in (FIRST, SUBJECT_CHANGE)
