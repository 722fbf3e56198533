"""How far the work on causes is, reported by its own name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from rag_harness.work.reporting import report

CAUSES = "causes"
"""The name by which the work reports."""
_Each = TypeVar("_Each")


class CauseProgress:
    """Counts the trials whose causes are looked for.

    Args:
        total: how many there are; 0 reports nothing.
    """

    def __init__(self, total: int) -> None:
        self._done, self._total = 0, total
        self._report(0)

    def counted(self, trials: Iterable[_Each]) -> Iterator[_Each]:
        """Yield the trials, and count them."""
        for trial in trials:
            self._done += 1
            yield trial

    def tell(self) -> None:
        """Report how many are done. Answers that no threshold has chosen may come on top."""
        self._report(min(self._done, self._total - 1))

    def end(self) -> None:
        """Report that all are done."""
        self._report(self._total)

    def _report(self, done: int) -> None:
        if self._total > 0:
            report(CAUSES, done, self._total, "answers")
