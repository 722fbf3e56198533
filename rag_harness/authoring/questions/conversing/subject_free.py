"""Filters of turns: the words of a follow-up do not say what it is about, and the question that stands alone does."""

from __future__ import annotations

from rag_harness.authoring.questions.conversing.turn_draft import TurnDraft
from rag_harness.authoring.questions.document_collection import DocumentCollection
from rag_harness.authoring.questions.filters import FOUND_WITHIN, draft_fault

NAMES_IT = "a follow-up names what it should leave out"
LEADS = "the words of a follow-up lead to its page by themselves"
SAYS_ALL = "a follow-up says as much as the question that stands alone"


def turn_fault(turn: TurnDraft, collection: DocumentCollection) -> str | None:
    """Return the first reason against a turn; None if there is none."""
    if turn.needs_history:
        said = collection.terms(turn.text)
        if collection.terms(turn.left_out) & said:
            return NAMES_IT
        if collection.terms(turn.alone.text) <= said:
            return SAYS_ALL
        if turn.is_bare and not is_subject_free(turn.text, turn.near_pages, collection):
            return LEADS
    return draft_fault(turn.alone, collection)


def is_subject_free(text: str, pages: tuple[str, ...], collection: DocumentCollection) -> bool:
    """Whether the words of a turn do not lead to ``pages``: a search by them does not find any among the first three.

    It is what ``filters.specific`` asks of a question that stands alone, turned round. In a collection of few pages the
    first third of them counts, and in one of one page any words are as good.
    """
    number = len(collection.documents)
    first = max(1, min(FOUND_WITHIN, number // 3))
    hits = collection.nearest(text, 10 * first) if number > 1 else []
    return not set(list(dict.fromkeys(hit.chunk.doc_id for hit in hits))[:first]) & set(pages)
