"""How many words a question shares with the page that answers it. Shared words help a search by words."""

from __future__ import annotations

from rag_harness.authoring.questions.document_collection import DocumentCollection
from rag_harness.authoring.questions.draft import Draft

HIGH, LOW = 0.85, 0.5
"""Above the first share of common words a question is easy; below the second it is hard."""


def overlap(draft: Draft, collection: DocumentCollection) -> float:
    """Return the share of the question's stemmed content words that are in its evidence's pages: 0 to 1.

    For a question that nothing answers, return the share in the nearest chunk.
    """
    asked = collection.terms(draft.text)
    pages = [collection.page_terms(name) for name in draft.pages]
    pages = pages or [collection.terms(hit.chunk.text) for hit in collection.nearest(draft.text, 1)]
    return len(asked & frozenset().union(*pages)) / len(asked) if asked else 0.0


def difficulty(draft: Draft, collection: DocumentCollection, shared: float) -> str:
    """Return easy, medium or hard, by shared words, by how a search ranks its page, and by the number of pages."""
    if draft.kind != "direct":
        return "hard" if draft.kind == "negative" else "medium"
    first = [hit.chunk.doc_id for hit in collection.nearest(draft.text, 1)]
    points = (shared < HIGH) + (shared < LOW) + (first != list(draft.pages[:1])) + (len(draft.pages) > 1)
    return ("easy", "medium", "hard", "hard", "hard")[points]
