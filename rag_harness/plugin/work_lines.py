"""Progress without a terminal: lines about the current work, so that a log does not stand still."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from rag_harness.shown.terminal import line
from rag_harness.work.lines_of_work import LinesOfWork


class WorkLines:
    """Writes the lines while the block lasts.

    Args:
        writer: pytest's terminal writer.
        text: gives the text of the line; empty prints nothing.
        longest: the most seconds between two lines, where the work goes on; None for the usual.
    """

    def __init__(self, writer: Any, text: Callable[[], str], longest: float | None = None) -> None:
        self._longest = longest
        self._writer = writer
        self._lines: LinesOfWork | None = None
        self._text = text
        self._file, self._ended_at = -1, 0

    def __enter__(self) -> None:
        with suppress(OSError, ValueError):
            # A descriptor of its own: while a test runs, the file's descriptor leads to pytest's capture.
            self._file = os.dup(self._writer._file.fileno())
            self._lines = LinesOfWork(self._text, self._write)
            if self._longest is not None:
                self._lines.longest = self._longest
            self._lines.__enter__()

    def __exit__(self, *error: object) -> None:
        if self._lines is not None:
            self._lines.__exit__()
        if self._file >= 0:
            os.close(self._file)

    def _write(self, text: str) -> None:
        # Dots of pytest may stand in the row. pytest does not know that our line has ended it.
        written = self._writer.width_of_current_line
        begun = "\n" if written not in (0, self._ended_at) else ""
        self._ended_at = written
        # A run must not fail because the reader of its output has gone.
        with suppress(OSError):
            os.write(self._file, f"{begun}rag: {line(text)}\n".encode("utf-8", "replace"))
