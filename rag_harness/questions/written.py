"""Drafts -> rows of ``queries.jsonl``."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from rag_harness.questions.collection import Collection
from rag_harness.questions.draft import Draft
from rag_harness.questions.overlap import difficulty, overlap

EMBEDDED = "embedded/templates"
"""What rows say of who wrote them, where no model did."""


def rows(drafts: Iterable[Draft], collection: Collection, by: str = EMBEDDED) -> Iterator[dict[str, Any]]:
    """Yield a row a draft, numbered by kind, as ``dataset.queries`` reads them."""
    numbers: Counter[str] = Counter()
    for draft in drafts:
        numbers[draft.kind] += 1
        shared = overlap(draft, collection)
        yield {
            "query_id": f"q_{draft.kind}_{numbers[draft.kind]:03d}",
            "query_type": draft.kind,
            "query": draft.text,
            "ground_truth": draft.ground_truth,
            "context_reference": list(draft.pages),
            "evidence": [{"filename": each.filename, "quote": each.quote} for each in draft.evidence],
            "metadata": {
                "difficulty": difficulty(draft, collection, shared),
                "made_of": " + ".join(draft.made_of),
                **draft.metadata,
                "overlap": round(shared, 2),
                "generated_by": by,
                "reviewed": "no",
            },
        }


def lines(found: Iterable[dict[str, Any]]) -> str:
    """Return the rows as JSON lines, the same bytes for the same rows."""
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in found)
