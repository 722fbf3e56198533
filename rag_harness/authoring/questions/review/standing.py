"""Turns stand on the turns before them: what a decision about one means for the others of its conversation.

Rejecting a turn rejects those behind it, for what was said before them is gone. Taking that back brings back what was
rejected with it, and the turns that it stands on. Other words of a turn, or of its answer, reopen those behind it that
were accepted, for they were accepted behind the old words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rag_harness.authoring.questions.review.reviewed_rows import (
    ACCEPTED,
    REJECTED,
    QueryRow,
    rejected,
    reopened,
    state_of,
)
from rag_harness.dataset.conversations import DECLINES
from rag_harness.types import NEGATIVE

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
