"""Why a draft is no question to ask: pure functions of a draft, the collection and what was taken already."""

from __future__ import annotations

from collections.abc import Callable

from rag_harness.questions.collection import Collection
from rag_harness.questions.draft import Draft
from rag_harness.questions.english import POINTING
from rag_harness.questions.passages import seen
from rag_harness.reader.terms import terms

Filter = Callable[[Draft, Collection], str | None]

LEAST_TERMS = 2
FOUND_WITHIN = 3
"""Pages among which a search for the plain question must find its own."""
SAME = 0.85
"""Share of the question, by rarity, that another page must hold to be a rival."""


def exact(draft: Draft, collection: Collection) -> str | None:
    """Evidence that is not in its page, word for word."""
    for each in draft.evidence:
        document = collection.by_id.get(each.filename)
        if document is None or each.quote not in document.text:
            return "the evidence is not in the page"
    return None


def contained(draft: Draft, _: Collection) -> str | None:
    """An answer that is not in the evidence."""
    said = terms(" ".join(seen(each.quote) for each in draft.evidence))
    return None if terms(draft.answer) <= said else "the evidence does not hold the answer"


def readable(draft: Draft, _: Collection) -> str | None:
    """A question that points at what its asker cannot see, or is a sentence no more."""
    words = draft.text.split()
    if not 3 <= len(words) <= 40 or "?" not in draft.text:
        return "too short or too long"
    if POINTING.search(draft.plain):
        return "points at something outside of the question"
    return "says too little" if len(terms(draft.plain)) < LEAST_TERMS else None


def open_question(draft: Draft, _: Collection) -> str | None:
    """A question that holds its answer."""
    answer = terms(draft.answer)
    if not answer or draft.made_of == ("permission",):
        return None
    told = answer - terms(draft.plain)
    return "the question holds the answer" if len(told) / len(answer) < 0.5 else None


def specific(draft: Draft, collection: Collection) -> str | None:
    """A question whose own words do not lead to its pages."""
    pages = list(dict.fromkeys(hit.chunk.doc_id for hit in collection.nearest(draft.plain)))[:FOUND_WITHIN]
    return None if set(draft.pages) <= set(pages) else "its words lead to other pages"


def unambiguous(draft: Draft, collection: Collection) -> str | None:
    """A question that a current page answers which is none of its own."""
    wanted = terms(draft.plain)
    own = max((collection.covered(wanted, h.chunk.text) for h in collection.nearest(draft.plain) if h.chunk.doc_id in draft.pages), default=1.0)
    for hit in collection.nearest(draft.plain):
        other = hit.chunk.doc_id
        if other not in draft.pages and other not in collection.superseded:
            if collection.covered(wanted, hit.chunk.text) >= min(SAME, own):
                return "another page may answer it too"
    return None


FILTERS: tuple[Filter, ...] = (exact, contained, readable, open_question, specific, unambiguous)


def fault_of(draft: Draft, collection: Collection) -> str | None:
    """Return the first reason against a draft, None where there is none."""
    return next((fault for check in FILTERS if (fault := check(draft, collection))), None)
