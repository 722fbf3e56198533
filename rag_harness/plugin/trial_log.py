"""Logs each row as it comes: how many there are, how many a minute, and how long the rest takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING

from rag_harness.files.log import log

if TYPE_CHECKING:
    from rag_harness.plugin.collected import Collected
    from rag_harness.results.row import ExperimentResult
    from rag_harness.types import TrialId


class TrialLog:
    """Counts the rows of the run, and of each experiment, in the process that writes.

    Args:
        is_resumed: whether the row of a trial was made by an earlier run.
    """

    def __init__(self, is_resumed: Callable[[TrialId], bool]) -> None:
        from rag_harness.report.tally import TrialTally

        self._is_resumed = is_resumed
        self._run = TrialTally(0)
        self._selected: Counter[str] = Counter()
        self._done: Counter[str] = Counter()

    def collection_done(self, selected: Collected) -> None:
        """Count the trials that were selected."""
        self._selected = Counter(trial.experiment for trial in selected.every)
        self._run.total = self._selected.total()

    def pytest_rag_result(self, result: ExperimentResult) -> None:
        """Log a row: ``e2: 45/150, 12 a minute, 8 min left: query q1``."""
        name, resumed, now = result.experiment, self._is_resumed(result.trial), monotonic()
        self._run.add(result, resumed, now)
        self._done[name] += 1
        several = [f"of the run {self._run.done}/{self._run.total}"] if len(self._selected) > 1 else []
        counts = ", ".join([f"{self._done[name]}/{self._selected[name]}", *several, *self._run.pace(now)])
        became = "" if result.ok else f": {result.status}"
        skipped = ": skipped, an earlier run has its row" if resumed else ""
        log.info("%s: %s: query %s%s%s", name, counts, result.query_id, became, skipped)
