"""Moves between the questions under review."""

from __future__ import annotations

from collections.abc import Sequence

from rag_harness.authoring.questions.review.file import ReviewFile
from rag_harness.authoring.questions.review.reviewed_rows import UNREVIEWED, state_of


class Walk:
    """A place among some rows of a file, at first the first unreviewed one. A move returns its message.

    Attributes:
        numbers: the numbers of the rows, in their order.
        at: which of these is shown.
    """

    def __init__(self, file: ReviewFile, numbers: Sequence[int]) -> None:
        self.numbers: list[int] = list(numbers)
        self._file = file
        self._ids = [file.rows[number]["query_id"] for number in numbers]
        self.at: int = self._unreviewed(0) or 0

    @property
    def number(self) -> int:
        """The number in the file of the row that is shown."""
        return self.numbers[self.at]

    def place(self) -> None:
        """Find the rows by their ids after the file was read again. The shown row stays, unless it is gone."""
        numbers, shown = {row["query_id"]: number for number, row in enumerate(self._file.rows)}, self._ids[self.at]
        self._ids = [name for name in self._ids if name in numbers]
        self.numbers = [numbers[name] for name in self._ids]
        self.at = self._ids.index(shown) if shown in self._ids else 0

    def next(self) -> str:
        """Show the next one."""
        return self._go(self.at + 1, "This is the last one.")

    def back(self) -> str:
        """Show the one before."""
        return self._go(self.at - 1, "This is the first one.")

    def go_on(self) -> str:
        """Show the next unreviewed row. After the last row, go on from the first."""
        following = self._unreviewed(self.at + 1)
        if following is None:
            following = self._unreviewed(0)
        if following is None:
            self.at = min(self.at + 1, len(self.numbers) - 1)
            return "All of these are reviewed. q quits."
        return self._go(following, "") if following != self.at else "This is the only one that is unreviewed."

    def _go(self, at: int, beyond: str) -> str:
        if not 0 <= at < len(self.numbers):
            return beyond
        self.at = at
        return ""

    def _unreviewed(self, start: int) -> int | None:
        places = range(start, len(self.numbers))
        return next((at for at in places if state_of(self._file.rows[self.numbers[at]]) == UNREVIEWED), None)
