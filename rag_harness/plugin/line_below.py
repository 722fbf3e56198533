"""A line that stays below everything that pytest writes, and is erased at the end.

rich's live display handles whole lines only, so pytest's dots would appear only at the end of a line. Here the line is
put one row below the cursor, and in the same write the cursor goes back to where pytest left it. All moves are
relative, because the line may scroll the screen.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from contextlib import suppress
from threading import Event, RLock, Thread
from typing import Any, TextIO

from rag_harness.files.log import log

_ERASE = "\x1b7\x1b[B\r\x1b[J\x1b8"
"""Erases all that is below the cursor's row, and brings the cursor back."""
_REFRESH_SECONDS = 0.25
# Colours, cursor moves, and sequences that terminals do not show: window titles, progress in the task bar.
_INVISIBLE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x1b\x07]*(?:\x1b\\|\x07)")


class LineBelow:
    """Replaces the file of pytest's terminal writer while the line is shown."""

    def __init__(self, file: TextIO, column: int, text: Callable[[int], str]) -> None:
        """Take over ``file``, a terminal whose cursor is at ``column``; ``text(columns)`` makes the line."""
        self.file, self._make = file, text
        # A descriptor of its own: while a test runs, the file's descriptor leads to pytest's capture.
        self._terminal = os.dup(file.fileno())
        self._written, self._text, self._columns, self._shown = " " * column, "", 0, False
        self._lock, self._ended = RLock(), Event()
        self._thread = Thread(target=self._keep_fresh, name="rag-progress", daemon=True)

    def begin(self) -> None:
        """Show the line and refresh it."""
        self.refresh()
        self._thread.start()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)

    def write(self, text: str) -> int:
        """Write above the line. The text is flushed, so that the next refresh finds the cursor where it should be."""
        with self._lock:
            before = self._written, self._shown
            self._written = _last_line(self._written + text)
            try:
                self.file.write(text if self._stays_in_row(before[0], text) else self._around(text))
            except UnicodeEncodeError:  # nothing was written; pytest tries again with less
                self._written, self._shown = before
                raise
            self.file.flush()
        return len(text)

    def refresh(self) -> None:
        """Draw the line again if it is gone or its text has changed."""
        with self._lock:
            if self._ended.is_set():
                return
            try:
                self._redraw()
            except Exception as error:  # the run goes on without the line, and no test fails
                log.warning("The line of progress is given up", exc_info=error)
                self._give_up()

    def _redraw(self) -> None:
        columns = self._width()
        text = self._encoded(self._make(columns)).decode(self._encoding)
        if (text, columns, True) != (self._text, self._columns, self._shown):
            self._text, self._columns = text, columns
            self._send((_ERASE if self._shown else "") + self._drawn())

    def end(self) -> None:
        """Erase the line and stop. It may be called twice."""
        self._give_up()
        if self._thread.is_alive():
            self._thread.join()
        with self._lock:
            if self._terminal >= 0:
                os.close(self._terminal)
                self._terminal = -1

    def _keep_fresh(self) -> None:
        while not self._ended.wait(_REFRESH_SECONDS):
            self.refresh()

    def _give_up(self) -> None:
        with self._lock:
            self._ended.set()
            if self._shown:
                self._send(_ERASE)
            self._shown = False

    def _around(self, text: str) -> str:
        erase = _ERASE if self._shown else ""
        return erase + text + self._drawn()

    def _drawn(self) -> str:
        """Return the text that draws the line; empty if the cursor is at the edge: it could not be put back."""
        columns = self._columns or self._width()
        column = _place(self._written, columns)[1]
        self._shown = bool(self._text) and column < columns and not self._ended.is_set()
        back = f"\x1b[{column}C" if column else ""
        return f"\r\n\x1b[J{self._text}\x1b[A\r{back}" if self._shown else ""

    def _stays_in_row(self, before: str, text: str) -> bool:
        """Return whether ``text`` only moves the cursor on in its row. After dots nothing need be drawn again."""
        if not self._shown or "\n" in text or "\r" in text:
            return False
        row, column = _place(self._written, self._columns)
        return row == _place(before, self._columns)[0] and column < self._columns

    def _width(self) -> int:
        with suppress(OSError):
            return os.get_terminal_size(self._terminal).columns or 80
        return 80

    def _send(self, text: str) -> None:
        # A run must not fail because the terminal was closed.
        with suppress(OSError):
            os.write(self._terminal, self._encoded(text))

    @property
    def _encoding(self) -> str:
        return self.file.encoding or "utf-8"

    def _encoded(self, text: str) -> bytes:
        return text.encode(self._encoding, "replace")


def _last_line(text: str) -> str:
    """Return what stands left of the cursor."""
    return re.split(r"[\r\n]", _INVISIBLE.sub("", text))[-1]


def _place(text: str, columns: int) -> tuple[int, int]:
    """Return row and column of the cursor after ``text``. At the edge the column is one too far, in the same row."""
    if text.isascii():
        row, column = divmod(len(text), columns)
        return (row, column) if column or not row else (row - 1, columns)
    from rich.cells import get_character_cell_size

    row = column = 0
    for cells in map(get_character_cell_size, text):
        if column + cells > columns:
            row, column = row + 1, 0
        column += cells
    return row, column
