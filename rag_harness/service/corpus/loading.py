"""How many documents of a start are loaded, for those who wait for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from time import monotonic

from rag_harness.files.log import log
from rag_harness.work.reporting import WorkHeard, listening

Part = Callable[[int, int, int], AbstractContextManager[None]]
"""(documents before it, its documents, all documents) -> a block in which this part is loaded."""
_LOGGED_EVERY = 10.0
"""Seconds."""


class Loading:
    """Counts the documents that are loaded. One thread loads them, others read ``text``."""

    def __init__(self) -> None:
        self._work = WorkHeard()
        self._logged = monotonic()

    @property
    def text(self) -> str:
        """How far it is: ``loading 48/100 documents, 1.5/s, 0:40 left``; empty where nothing was counted yet."""
        return self._work.text()

    @contextmanager
    def part(self, before: int, size: int, of: int) -> Iterator[None]:
        """Load some of the documents. They are embedded together, so the share of their chunks counts."""

        def hear(what: str, done: int, total: int, unit: str) -> None:
            if (what, unit) == ("embedding", "chunks"):
                self._at(before + size * done // max(total, 1), of)

        self._at(before, of)
        with listening(hear):
            yield
        self._at(before + size, of)

    def _at(self, done: int, total: int) -> None:
        self._work.hear("loading", done, total, "documents")
        if done < total and monotonic() - self._logged >= _LOGGED_EVERY:
            self._logged = monotonic()
            log.info("Still %s", self.text)
