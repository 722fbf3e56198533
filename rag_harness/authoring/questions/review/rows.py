"""Rows under review: decisions about them, turns of one conversation, and the selection that is shown."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rag_harness.core.errors import DataError
from rag_harness.core.files import text_digest
from rag_harness.core.types import NEGATIVE, REVIEWED, review_said
from rag_harness.data.conversations import DECLINES

# Metadata keys of a question, by which the check of the documents and the review exchange findings.

AFFECTED = "affected"
"""Why a person must look at a question again: its documents have changed."""
LOOKED_AT = "not_answered_by"
"""Pages that have the words of a question, and that a person found not to answer it."""


# Decisions about a row of ``queries.jsonl``, and who made them. A row is a dictionary, never changed in place.

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


# Turns stand on the turns before them: what a decision about one means for the others of its conversation.
#
# Rejecting a turn rejects those behind it because their history is gone. Taking that back brings back what was
# rejected with it, and the turns that it stands on. Other words of a turn, or of its answer, reopen those behind it
# that were accepted, because they were accepted behind the old words.

MOST_BEFORE = 6
"""How many of the turns before a turn are shown."""
_SAID = ("query", "ground_truth", "reply")


def with_standing(rows: Sequence[QueryRow], changed: Mapping[int, QueryRow]) -> dict[int, QueryRow]:
    """Return changes of rows by number, with those that they mean for other turns of the same conversations."""
    found = dict(changed)
    for conversation in dict.fromkeys(row["conversation"] for row in changed.values() if "conversation" in row):
        turns = sorted(
            (number for number, row in enumerate(rows) if row.get("conversation") == conversation),
            key=lambda number: int(rows[number]["turn"]),
        )
        for place, number in enumerate(turns):
            if number in changed:
                _come_back(rows, turns[:place], turns[place + 1 :], number, found)
                _reopen(rows, turns[place + 1 :], number, found)
        for place, number in enumerate(turns):
            if number in changed and state_of(changed[number]) == REJECTED:
                _go(rows, turns[place + 1 :], changed[number], found)
    return found


def _come_back(
    rows: Sequence[QueryRow], before: Iterable[int], behind: Iterable[int], number: int, found: dict[int, QueryRow]
) -> None:
    """Where a rejected turn comes back, bring back what it stands on, and what was rejected with it."""
    if not (state_of(rows[number]) == REJECTED != state_of(found[number])):
        return
    for each in before:
        if state_of(found.get(each, rows[each])) == REJECTED:
            found[each] = reopened(rows[each])
    for each in behind:
        if each not in found and _why(rows[each]) == _because(rows[number]):
            found[each] = reopened(rows[each])


def _reopen(rows: Sequence[QueryRow], behind: Iterable[int], number: int, found: dict[int, QueryRow]) -> None:
    if all(found[number].get(name) == rows[number].get(name) for name in _SAID):
        return
    for each in behind:
        if each not in found and state_of(rows[each]) == ACCEPTED:
            found[each] = reopened(rows[each])


def _go(rows: Sequence[QueryRow], behind: Iterable[int], row: QueryRow, found: dict[int, QueryRow]) -> None:
    for each in behind:
        if state_of(found.get(each, rows[each])) != REJECTED:
            by = str(row["metadata"].get("reviewed_by", ""))
            found[each] = rejected(found.get(each, rows[each]), by, _because(row))


def _because(row: QueryRow) -> str:
    return f"it stands on turn {row['turn']}, which was rejected"


def _why(row: QueryRow) -> str:
    return str((row.get("metadata") or {}).get("rejected_because", ""))


def by_conversation(rows: Sequence[QueryRow]) -> Mapping[str, Sequence[QueryRow]]:
    """Return the turns of each conversation, as they stand."""
    found: dict[str, list[QueryRow]] = {}
    for row in rows:
        if "conversation" in row:
            found.setdefault(row["conversation"], []).append(row)
    return found


def said_before(rows: Sequence[QueryRow], row: QueryRow) -> list[tuple[str, str]]:
    """Return what was said before a turn: the user's words, and the reply to them. Empty for other questions."""
    if "conversation" not in row:
        return []
    same = [each for each in rows if each.get("conversation") == row["conversation"]]
    before = sorted((each for each in same if each["turn"] < row["turn"]), key=lambda each: int(each["turn"]))
    return [(str(each["query"]), _reply(each)) for each in before]


def _reply(row: QueryRow) -> str:
    is_negative = row.get("query_type") == NEGATIVE
    return str(row.get("reply") or row.get("ground_truth") or (DECLINES if is_negative else ""))


# Chooses which questions of a file are shown, in their order.


def chosen_rows(
    rows: Sequence[QueryRow], kind: str = "", only: str = "", sample: int | None = None, seed: int = 0
) -> list[int]:
    """Return the numbers of the rows of a kind, of a state, or of a sample.

    A sample is drawn before states are looked at, and depends only on ids and seed. So a reviewer who continues
    tomorrow gets the same sample.

    Raises:
        DataError: no row is of that kind.
    """
    numbers = [number for number, row in enumerate(rows) if kind in ("", row.get("query_type", "direct"))]
    if not numbers:
        kinds = ", ".join(sorted({row.get("query_type", "direct") for row in rows}))
        raise DataError(f"No question is of the kind {kind!r}. There are: {kinds}.")
    if sample is not None:
        drawn = sorted(numbers, key=lambda number: text_digest(f"{seed} {rows[number]['query_id']}"))[:sample]
        numbers = sorted(drawn)
    return [number for number in numbers if only in ("", state_of(rows[number]))]
