"""Progress without a terminal: a line every 30 seconds about the current work, so that a log does not stand still."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Thread
from typing import Any

from rag_harness.shown.terminal import line


class WorkLines:
    """Writes the lines while the block lasts.

    Args:
        writer: pytest's terminal writer.
        text: gives the text of the line; empty prints nothing.
    """

    seconds = 30.0
    """The time between two lines."""

    def __init__(self, writer: Any, text: Callable[[], str]) -> None:
        self._writer, self._text = writer, text
        self._ended = Event()
        self._thread = Thread(target=self._write_lines, name="rag-progress", daemon=True)
        self._file, self._ended_at = -1, 0

    def __enter__(self) -> None:
        with suppress(OSError, ValueError):
            # A descriptor of its own: while a test runs, the file's descriptor leads to pytest's capture.
            self._file = os.dup(self._writer._file.fileno())
            self._thread.start()

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._file >= 0:
            os.close(self._file)

    def _write_lines(self) -> None:
        while not self._ended.wait(self.seconds):
            text = self._text()
            if text:
                self._write(f"rag: {line(text)}\n")

    def _write(self, text: str) -> None:
        # Dots of pytest may stand in the row. pytest does not know that our line has ended it.
        written = self._writer.width_of_current_line
        begun = "\n" if written not in (0, self._ended_at) else ""
        self._ended_at = written
        # A run must not fail because the reader of its output has gone.
        with suppress(OSError):
            os.write(self._file, f"{begun}{text}".encode("utf-8", "replace"))
