"""Progress in a log: a line soon after a work has begun, then fewer and fewer, and none twice."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread


class LinesOfWork:
    """Says how far the current work is, while the block lasts.

    Args:
        text: gives the text; empty where no work is running.
        say: prints it.
    """

    first, longest = 1.0, 30.0
    """Seconds before the first line and between the last lines. The time between two lines doubles in between."""

    def __init__(self, text: Callable[[], str], say: Callable[[str], None]) -> None:
        self._text, self._say = text, say
        self._ended = Event()
        self._thread = Thread(target=self._lines, name="rag-progress", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _lines(self) -> None:
        pause, said, runs = self.first, "", False
        while not self._ended.wait(pause):
            text = self._text()
            # Work that is over within a pause needs no line.
            done = text.partition(", ")[0]  # and no line that differs by the time that is left alone
            if text and runs and done != said:
                self._say(text)
                said, pause = done, min(2 * pause, self.longest)
            runs = bool(text)
            if not runs:
                pause = self.first
