"""Takes decisions from a downloaded page back into the file of the questions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rag_harness.authoring.questions.review.faults import malformed
from rag_harness.authoring.questions.review.reviewed_rows import (
    ACCEPTED,
    EDITED_FIELDS,
    REJECTED,
    UNREVIEWED,
    QueryRow,
    accepted,
    edited,
    question_digest,
    rejected,
    reopened,
    state_of,
)
from rag_harness.authoring.questions.review.showing import Showing
from rag_harness.errors import DataError
from rag_harness.files.json_text import read_json

REVIEW_OF = "review_of"
"""Metadata key in a downloaded row with a decision: the digest of the row that the reviewer saw."""


@dataclass
class Taken:
    """The rows to keep, by number; ``before`` were taken earlier; ``problems`` are lines."""

    changed: dict[int, QueryRow] = field(default_factory=dict)
    before: int = 0
    problems: list[str] = field(default_factory=list)


def taken(download: Path, rows: Sequence[QueryRow], showing: Showing, by: str) -> Taken:
    """Return the changes that a download makes to the rows.

    Only decisions are read from it, and are put on the rows of the file. A row that differs from the one that the
    reviewer saw stays as it is, and is named.

    Args:
        download: the file that the page has downloaded.
        rows: the rows of the file under review.
        showing: their documents.
        by: the reviewer's name, if the page does not have it.

    Raises:
        DataError: it is no such file, or it has no decisions.
    """
    decided = list(_decided(download))
    if not decided:
        raise DataError(f"{download} holds no decision. Download it from a page made of these questions: --page HTML")
    numbers = {row["query_id"]: number for number, row in enumerate(rows)}
    found = Taken()
    for row in decided:
        number = numbers.get(row["query_id"])
        if number is None:
            found.problems.append(f"{row['query_id']}: no question of the file. Was the page made of another?")
        else:
            _take(row, number, rows[number], showing, by, found)
    return found


def _take(said: QueryRow, number: int, row: QueryRow, showing: Showing, by: str, found: Taken) -> None:
    new = _put_on(said, row, by, showing)
    if said["metadata"][REVIEW_OF] != question_digest(row):
        if _is_same(said, row):
            found.before += 1
        else:
            found.problems.append(f"{row['query_id']}: changed since the page was made, and kept as it is.")
        return
    faults = showing.faults(new) if state_of(new) == ACCEPTED else malformed(new)
    if faults:
        found.problems.append(f"{row['query_id']}: not taken. {' '.join(faults)}")
    elif new != row:
        found.changed[number] = new


def _put_on(said: QueryRow, row: QueryRow, by: str, showing: Showing) -> QueryRow:
    who = " ".join(str(said["metadata"].get("reviewed_by") or said["metadata"].get("edited_by") or by).split())
    changes = {name: said[name] for name in EDITED_FIELDS if name in said and said[name] != row.get(name)}
    new = edited(row, changes, who) if changes else row
    state = state_of(said)
    if state == ACCEPTED:
        return accepted(new, who, [] if malformed(new) else showing.not_answered_by(new))
    if state == REJECTED:
        return rejected(new, who, str(said["metadata"].get("rejected_because") or "no reason given"))
    return reopened(new) if state_of(new) != UNREVIEWED else new


def _is_same(said: QueryRow, row: QueryRow) -> bool:
    marks = ("reviewed", "reviewed_by", "rejected_because", "edited_by")
    about, told = row.get("metadata") or {}, said["metadata"]
    return all(said.get(name) == row.get(name) for name in EDITED_FIELDS) and all(
        about.get(name) == told.get(name) for name in marks
    )


def _decided(download: Path) -> Iterator[QueryRow]:
    try:
        text = download.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise DataError(f"{download} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{download}: not UTF-8 at byte {error.start}.") from error
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            row = _row(line, f"{download}:{number}")
            if REVIEW_OF in row["metadata"]:
                yield row


def _row(line: str, where: str) -> QueryRow:
    try:
        row: Mapping[str, Any] = read_json(line)
        return {**row, "query_id": str(row["query_id"]), "metadata": dict(row.get("metadata") or {})}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise DataError(f"{where}: no question. Name the file that the page has downloaded: --take FILE") from error
