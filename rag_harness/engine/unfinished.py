"""Interrupted runs of a user's own pipelines and services: what they have left, and whether a run goes on with it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from rag_harness.engine.series import begin_series_anew, resume_series, unfinished_runs
from rag_harness.results.file import all_rows
from rag_harness.results.result_paths import result_path
from rag_harness.types import TrialId


class Unfinished:
    """The interrupted runs in a folder of results. Journals of dead processes were moved into the result files."""

    def __init__(self, output: Path) -> None:
        self._output = output

    def lines(self, trials: Collection[TrialId]) -> Iterator[str]:
        """Yield a line for each experiment that has answers to some of ``trials``, which this run would ask again."""
        asked: dict[str, set[str]] = {}
        for trial in trials:
            asked.setdefault(trial.experiment, set()).add(trial.query_id)
        for name, fingerprint in unfinished_runs(self._output, asked):
            answered = self._answered(name, fingerprint) & asked[name]
            if answered:
                yield (
                    f"rag: {len(answered):,} of {len(asked[name]):,} answers of an interrupted run of {name}: "
                    "--rag-resume goes on with it. This run asks all of them."
                )

    def begin(self, suites: Collection[str], *, resume: bool) -> None:
        """Go on with the interrupted runs of ``suites``, or leave them behind."""
        (resume_series if resume else begin_series_anew)(
            self._output, suites, lambda name, fingerprint: bool(self._answered(name, fingerprint))
        )

    def _answered(self, experiment: str, fingerprint: str) -> set[str]:
        rows = all_rows(result_path(self._output, experiment), fingerprint).values()
        return {row.query_id for row in rows if row.ok}
