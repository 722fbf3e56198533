"""What each key does to the shown question. A decision is on disk before the next question is shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from rag_harness.authoring.questions.review.file import ChangedError, ReviewFile
from rag_harness.authoring.questions.review.pressed_keys import ALSO, KEYS
from rag_harness.authoring.questions.review.reviewed_rows import (
    REJECTED,
    REJECTION_REASONS,
    UNREVIEWED,
    QueryRow,
    accepted,
    edited,
    rejected,
    reopened,
    state_of,
)
from rag_harness.authoring.questions.review.showing import Showing
from rag_harness.authoring.questions.review.walk import Walk
from rag_harness.errors import DataError

AskPerson = Callable[[str], str]
"""Asks for a line; the line is empty if the person cancels."""
Edit = Callable[[QueryRow], Mapping[str, object] | None]
"""Lets a person change the fields of a row; None if nothing is to change."""


class Session:
    """A review under way.

    Args:
        file: the questions' file.
        numbers: the numbers of the rows that are shown, in their order.
        showing: their documents.
        by: the reviewer's name.
        ask, edit: how a line and a change are asked for.

    Attributes:
        walk: which of ``numbers`` is shown.
        message: the result of the last key; empty if there is nothing to say.
        part: which part of a long question is on the screen.
        is_wide: whether evidence is shown with a large part of its page.
    """

    def __init__(
        self, file: ReviewFile, numbers: Sequence[int], showing: Showing, by: str, ask: AskPerson, edit: Edit
    ) -> None:
        self.file: ReviewFile = file
        self.showing: Showing = showing
        self.by: str = by
        self._ask, self._edit = ask, edit
        self.walk: Walk = Walk(file, numbers)
        self.part: int = 0
        self.is_wide: bool = False
        self.message = "" if self.counts()[UNREVIEWED] else "All of these are reviewed."

    @property
    def row(self) -> QueryRow:
        """The question that is shown."""
        return self.file.rows[self.walk.number]

    def counts(self) -> Counter[str]:
        """Return how many of the questions are in each state."""
        return Counter(state_of(self.file.rows[number]) for number in self.walk.numbers)

    def press(self, key: str) -> bool:
        """Do what a key stands for; return whether the review goes on."""
        name = KEYS.get(ALSO.get(key, key), "")
        self.message = ""
        if name == "more of it":
            self.part += 1
            return True
        self.part = 0
        if name == "quit":
            return False
        try:
            self._do(name, key)
        except ChangedError as error:
            self._read_again(str(error))
        except DataError as error:
            self.message = str(error)
        return bool(self.walk.numbers)

    def _do(self, name: str, key: str) -> None:
        moves = {"next": self.walk.next, "back": self.walk.back, "skip to the next unreviewed": self.walk.go_on}
        if name in moves:
            self.message = moves[name]()
        elif name == "more context, or less":
            self.is_wide = not self.is_wide
        elif name == "keys":
            self.message = "  ".join(f"{short} {what}" for short, what in KEYS.items())
        elif name == "undo the decision":
            self.message = self._keep(reopened(self.row))
        elif name:
            {"accept": self._accept, "reject": self._reject, "edit": self._change}[name]()
        else:
            self.message = f"No key {key!r}: ? lists them."

    def _accept(self) -> None:
        faults = self.showing.faults(self.row)
        if faults:
            self.message = f"Not accepted. {' '.join(faults)}"
            return
        others = self._keep(accepted(self.row, self.by, self.showing.not_answered_by(self.row)))
        self.message = f"{others} {self.walk.go_on()}".strip()

    def _reject(self) -> None:
        usual = "\n".join(f"  {number}  {reason}" for number, reason in enumerate(REJECTION_REASONS, 1))
        said = self._ask(f"{usual}\nwhy? a number, or your words; enter or Esc leaves it as it is: ").strip()
        if not said:
            return
        is_usual = said.isdecimal() and 1 <= int(said) <= len(REJECTION_REASONS)
        others = self._keep(rejected(self.row, self.by, REJECTION_REASONS[int(said) - 1] if is_usual else said))
        self.message = f"{others} {self.walk.go_on()}".strip()

    def _change(self) -> None:
        changes = self._edit(self.row)
        changed = edited(self.row, changes or {}, self.by)
        if not changes or all(self.row.get(name, type(value)()) == value for name, value in changes.items()):
            self.message = "Nothing was changed."
            return
        others = self._keep(changed)
        faults = self.showing.faults(self.row)
        self.message = f"Kept as edited. {' '.join(faults) or 'a accepts it.'} {others}".strip()

    def _keep(self, row: QueryRow) -> str:
        """Keep a row; return what that means for other turns of its conversation, if anything."""
        changed = self.file.put({self.walk.number: row})
        others = [other for number, other in changed.items() if number != self.walk.number]
        return f"With it, {_turns(others)} {_BECAME[state_of(others[0])]}." if others else ""

    def _read_again(self, why: str) -> None:
        try:
            self.file.read()
        except DataError as error:
            self.message = f"{why} It cannot be read now: {error}"
            return
        self.walk.place()
        self.message = f"{why} It was read again, and your last key is not kept: press it once more."


_BECAME = {REJECTED: "rejected, too", UNREVIEWED: "unreviewed again"}


def _turns(rows: Sequence[QueryRow]) -> str:
    said = ", ".join(str(row["turn"]) for row in rows)
    return f"turn{'s' * (len(rows) > 1)} {said} {'are' if len(rows) > 1 else 'is'}"


def review_progress(counts: Mapping[str, int]) -> str:
    """Return the progress of a review as text."""
    return (
        f"{counts.get('accepted', 0)} accepted, {counts.get(REJECTED, 0)} rejected, {counts.get(UNREVIEWED, 0)} to go"
    )
