"""Filters that reject drafts: each is a pure function of a draft and the collection, and returns the reason or None."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from rag_harness.authoring.questions.document_collection import DocumentCollection
from rag_harness.authoring.questions.draft import BY_LLM, LEFT_OPEN, Draft
from rag_harness.authoring.questions.facts import Fact
from rag_harness.authoring.questions.pointing import POINTING
from rag_harness.authoring.questions.quotable_passages import seen
from rag_harness.types import Evidence

Filter = Callable[[Draft, DocumentCollection], str | None]

LEAST_TERMS = 2
FOUND_WITHIN = 3
"""A search for the plain question must find its pages among this many pages for each page that is needed."""
HELD = 0.4
"""The share of the words of a model's answer that its evidence must have. The model uses its own words."""
_ON_PAGE = re.compile(
    r"\b(?:this|the) (?:page|section|text|passage|document|source|excerpt|article)s?\b|\baccording to\b"
    r"|\b(?:above|below)\b",
    re.I,
)
ALONE = 0.9
"""From this share of the words of evidence on, another page can replace it."""
ANSWERED = 0.999
"""From this share of a question's words on, weighted by rarity, a chunk may answer it: all, except for rounding."""
SAME = 0.85
"""From this share of the question's words on, weighted by rarity, another page is a rival."""


def exact(draft: Draft, collection: DocumentCollection) -> str | None:
    """Reject evidence that is not in its page, word for word."""
    for each in draft.evidence:
        document = collection.by_id.get(each.filename)
        if document is None or each.quote not in document.text:
            return "the evidence is not in the page"
    return None


def contained(draft: Draft, collection: DocumentCollection) -> str | None:
    """Reject an answer that is not in the evidence."""
    said = collection.terms(" ".join(seen(each.quote) for each in draft.evidence))
    wanted = collection.terms(draft.answer)
    least = 1.0 if draft.made_of != (BY_LLM,) else HELD
    held = len(wanted & said) / len(wanted) if wanted else 1.0
    return None if held >= least else "the evidence does not hold the answer"


def readable(draft: Draft, collection: DocumentCollection) -> str | None:
    """Reject a question that refers to something its reader cannot see, or that is no proper sentence."""
    words = draft.text.split()
    if not 3 <= len(words) <= 40 or "?" not in draft.text:
        return "too short or too long"
    if (_ON_PAGE if draft.made_of == (BY_LLM,) else POINTING).search(draft.plain):
        return "points at something outside of the question"
    return "says too little" if len(collection.terms(draft.plain)) < LEAST_TERMS else None


def open_question(draft: Draft, collection: DocumentCollection) -> str | None:
    """Reject a question that contains its answer."""
    answer = collection.terms(draft.answer)
    if not answer or draft.made_of == ("permission",):
        return None
    told = answer - collection.terms(draft.plain)
    if any(word[0].isdigit() for word in told):
        return None  # a figure like "45 days" is enough for an answer
    return "the question holds the answer" if len(told) / len(answer) <= 0.5 else None


def specific(draft: Draft, collection: DocumentCollection) -> str | None:
    """Reject a question whose own words do not lead to its pages."""
    if draft.made_of == (BY_LLM,):
        return None  # a model was asked to share few words; another check asks it whether the evidence answers
    most = FOUND_WITHIN * len(draft.pages)
    pages = list(dict.fromkeys(hit.chunk.doc_id for hit in collection.nearest(draft.plain, 10 * len(draft.pages))))[
        :most
    ]
    return None if set(draft.pages) <= set(pages) else "its words lead to other pages"


def unambiguous(draft: Draft, collection: DocumentCollection) -> str | None:
    """Reject a question that another current page may answer, too: a page with its words, or its evidence's words."""
    probe = " ".join(seen(each.quote) for each in draft.evidence) if draft.made_of == (BY_LLM,) else draft.plain
    wanted = collection.terms(probe)
    found = [hit.chunk for hit in collection.nearest(probe) if hit.chunk.doc_id not in collection.superseded]
    held = [(collection.covered(wanted, chunk.text), chunk.doc_id in draft.pages) for chunk in found]
    own = max((share for share, is_own in held if is_own), default=1.0)
    rivals = any(share >= min(SAME, own) for share, is_own in held if not is_own)
    return "another page may answer it too" if rivals else None


def needs_all(draft: Draft, collection: DocumentCollection) -> str | None:
    """Reject a question about several pages that one of them answers alone."""
    for each in draft.evidence:
        wanted = collection.terms(seen(each.quote))
        others = (name for name in draft.pages if name != each.filename)
        if any(len(wanted & collection.page_terms(name)) >= ALONE * len(wanted) for name in others):
            return "one page alone holds all evidence"
    return "one page alone holds all evidence" if draft.kind == "multi_hop" and len(draft.pages) < 2 else None


def unanswered(draft: Draft, collection: DocumentCollection) -> str | None:
    """Reject a question that nothing should answer if a chunk has nearly every word of it."""
    wanted = collection.terms(draft.plain)
    if draft.made_of == (LEFT_OPEN,):
        return None  # it repeats a statement; the part that it asks for was searched for when it was made
    if any(collection.covered(wanted, hit.chunk.text) >= ANSWERED for hit in collection.nearest(draft.plain)):
        return "a passage may answer it"
    return None


def fault_of_half(fact: Fact, question: str, collection: DocumentCollection) -> str | None:
    """Return the reason against using a fact as a part of a question; None if there is none."""
    draft = Draft(
        "direct", question, question, fact.said, fact.answer, (Evidence(fact.doc_id, fact.quote),), (fact.kind,)
    )
    return next((fault for check in _HALF if (fault := check(draft, collection))), None)


_HALF: tuple[Filter, ...] = (exact, contained, readable, open_question, unambiguous)
FILTERS: Mapping[str, tuple[Filter, ...]] = {
    "direct": (exact, contained, readable, open_question, specific, unambiguous),
    "multi_hop": (exact, contained, readable, specific, needs_all),
    "negative": (readable, unanswered),
}


def draft_fault(draft: Draft, collection: DocumentCollection) -> str | None:
    """Return the first reason against a draft; None if there is none."""
    return next((fault for check in FILTERS[draft.kind] if (fault := check(draft, collection))), None)
