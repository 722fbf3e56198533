"""Decisions about a row of ``queries.jsonl``, and who made them. A row is a dictionary, never changed in place."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rag_harness.authoring.questions.metadata_keys import AFFECTED, LOOKED_AT
from rag_harness.files.sources import text_digest
from rag_harness.types import REVIEWED, review_said

QueryRow = dict[str, Any]

UNREVIEWED, ACCEPTED, REJECTED = "unreviewed", "accepted", "rejected"
_MEANT = {"yes": ACCEPTED, "rejected": REJECTED, "no": UNREVIEWED}
_OF_REVIEW = ("reviewed", "reviewed_by", "rejected_because")

EDITED_FIELDS = ("query_type", "query", "ground_truth", "context_reference", "evidence", "standalone")
"""The fields of a row that a person may have changed; the last one is that of a turn."""
REJECTION_REASONS = (
    "the answer is wrong",
    "another page answers it otherwise",
    "the evidence does not answer it",
    "nobody would ask this",
    "not understandable by itself",
)
"""Common reasons to reject a question. Any other words are allowed, too."""


def state_of(row: QueryRow) -> str:
    """Return unreviewed, accepted or rejected. A row written by a person without a mark counts as unreviewed, too."""
    said = _metadata(row).get(REVIEWED)
    return UNREVIEWED if said is None else _MEANT[review_said(said)]


def asked_alone(row: QueryRow) -> str:
    """Return the question in words that need nothing said before it; empty for a later turn without such words."""
    return str(row.get("standalone") or (row["query"] if row.get("turn", 1) == 1 else ""))


def accepted(row: QueryRow, by: str, not_answered_by: Sequence[str] = ()) -> QueryRow:
    """Return the row as one that a person has accepted.

    ``not_answered_by`` are pages that have its words, and that the person found not to answer it. ``queries check``
    then does not report them again.
    """
    kept = {name: value for name, value in _metadata(row).items() if name != AFFECTED}
    known = kept.get(LOOKED_AT, ())
    looked_at = list(dict.fromkeys([*([known] if isinstance(known, str) else known), *not_answered_by]))
    seen = {**kept, LOOKED_AT: looked_at} if not_answered_by else kept
    return _marked({**row, "metadata": seen}, {"reviewed": "yes", "reviewed_by": by})


def rejected(row: QueryRow, by: str, reason: str) -> QueryRow:
    """Return the row as one that must not be asked."""
    return _marked(row, {"reviewed": "rejected", "reviewed_by": by, "rejected_because": reason})


def reopened(row: QueryRow) -> QueryRow:
    """Return the row as one without a decision."""
    return _marked(row, {"reviewed": "no"})


def edited(row: QueryRow, changes: Mapping[str, Any], by: str) -> QueryRow:
    """Return the row with changed fields. A decision about the old fields is removed."""
    changed = reopened({**row, **changes})
    return {**changed, "metadata": {**changed["metadata"], "edited_by": by}}


def line_of(row: QueryRow) -> str:
    """Return the row as a line of JSON. Half a character is written as an escape, since UTF-8 cannot hold it."""
    text = json.dumps(row, ensure_ascii=False)
    return text if text.isprintable() or not _has_half(text) else json.dumps(row)


def question_digest(row: QueryRow) -> str:
    """Return the digest of a row. A later reader can tell by it whether the row has changed."""
    return text_digest(line_of(row))


def _has_half(text: str) -> bool:
    return any("\ud800" <= letter <= "\udfff" for letter in text)


def _marked(row: QueryRow, marks: Mapping[str, str]) -> QueryRow:
    kept = {name: value for name, value in _metadata(row).items() if name not in _OF_REVIEW}
    return {**row, "metadata": {**kept, **marks}}


def _metadata(row: QueryRow) -> Mapping[str, Any]:
    return row.get("metadata") or {}
