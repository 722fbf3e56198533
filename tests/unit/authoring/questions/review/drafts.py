"""A file of drafted questions about the shop, and its documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rag_harness.authoring.questions.document_collection import DocumentCollection
from rag_harness.authoring.questions.review.page import Showing
from rag_harness.authoring.questions.review.rows import QueryRow
from rag_harness.data.documents import read_folder
from tests.unit.authoring.questions.shop import folder

HELD = "Island parcels are held for 9 days at the harbour office."
BROKEN = "If the parcel seal is broken, we refund half of the price."


def row(number: int, **fields: Any) -> QueryRow:
    """A drafted row: direct, of delivery.md, with evidence that stands there."""
    return {
        "query_id": f"q_{number:03}",
        "query_type": "direct",
        "query": "How long are island parcels held?",
        "ground_truth": "9 days.",
        "context_reference": ["delivery.md"],
        "evidence": [{"filename": "delivery.md", "quote": HELD}],
        "metadata": {"difficulty": "easy", "reviewed": "no"},
        **fields,
    }


ROWS = (
    row(1),
    row(
        2,
        query_type="multi_hop",
        query="When is a parcel held, and when refunded?",
        context_reference=["delivery.md", "returns.md"],
        evidence=[{"filename": "delivery.md", "quote": HELD}, {"filename": "returns.md", "quote": BROKEN}],
    ),
    row(3, query_type="negative", query="Who paints the ferry?", context_reference=[], evidence=[]),
    row(
        4, evidence=[{"filename": "delivery.md", "quote": "Island parcels are held for 8 days at the harbour office."}]
    ),
)
"""One of each kind, and one whose evidence is gone."""


def drafted(at: Path, *rows: QueryRow, pages: dict[str, str] | None = None) -> Path:
    """Write the shop's pages and rows beside them, ``ROWS`` where none are given; return the file of the questions."""
    file = folder(at, pages) / "queries.jsonl"
    write(file, *(rows or ROWS))
    return file


def write(file: Path, *rows: QueryRow) -> None:
    """Write rows as lines."""
    file.write_text("".join(f"{json.dumps(each, ensure_ascii=False)}\n" for each in rows), encoding="utf-8")


def read(file: Path) -> list[QueryRow]:
    """Read the rows of a file; none where there is no file."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []


def showing(file: Path) -> Showing:
    """The documents beside a file."""
    return Showing(DocumentCollection(read_folder(file.parent).documents))
