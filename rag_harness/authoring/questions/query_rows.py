"""Writes drafts as rows of ``queries.jsonl``."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from typing import Any

from rag_harness.authoring.questions.document_collection import DocumentCollection
from rag_harness.authoring.questions.draft import MADE_OF, Draft
from rag_harness.authoring.questions.overlap import difficulty, overlap

TEMPTS = 0.6
"""A page tempts if it has at least this share of the weighted words that the question's own page has."""
EMBEDDED = "embedded/templates"
"""The author in rows that no model wrote."""


def rows(
    drafts: Iterable[Draft], collection: DocumentCollection, by: str = EMBEDDED, taken: Container[str] = ()
) -> Iterator[dict[str, Any]]:
    """Yield a row for each draft, numbered by kind, as ``dataset.queries`` reads them. No id is in ``taken``."""
    numbers: Counter[str] = Counter()
    for draft in drafts:
        name = _name(draft.kind, numbers, taken)
        own = collection.about(draft.pages or (str(draft.metadata.get("nearest_page", "")),))
        shared = overlap(draft, own)
        yield {
            "query_id": name,
            "query_type": draft.kind,
            "query": draft.text,
            "ground_truth": draft.ground_truth,
            "context_reference": list(draft.pages),
            "evidence": [{"filename": each.filename, "quote": each.quote} for each in draft.evidence],
            "metadata": {
                "difficulty": difficulty(draft, own, shared),
                "made_of": MADE_OF.join(draft.made_of),
                **_distractors(draft, own),
                **draft.metadata,
                "overlap": round(shared, 2),
                "generated_by": by,
                "reviewed": "no",
            },
        }


def _name(kind: str, numbers: Counter[str], taken: Container[str]) -> str:
    while True:
        numbers[kind] += 1
        name = f"q_{kind}_{numbers[kind]:03d}"
        if name not in taken:
            return name


def _distractors(draft: Draft, collection: DocumentCollection) -> dict[str, int]:
    """Return how many other pages tempt: they have a passage near the question with most of the matching words."""
    wanted = collection.terms(draft.text)
    near = [hit.chunk for hit in collection.nearest(draft.text)]
    held = [(chunk.doc_id, collection.covered(wanted, chunk.text)) for chunk in near]
    own = max((share for name, share in held if name in draft.pages), default=1.0)
    tempting = {name for name, share in held if share >= TEMPTS * own} - set(draft.pages)
    return {"distractors": len(tempting)} if draft.evidence else {}


def json_lines(found: Iterable[dict[str, Any]]) -> str:
    """Return the rows as JSON lines. The same rows give the same bytes."""
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in found)
