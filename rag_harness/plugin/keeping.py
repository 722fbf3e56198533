"""Keeps the values that tables need while rows and scores of a large run come, so nothing is read again at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from rag_harness.files.log import log
from rag_harness.types import GOLDEN

if TYPE_CHECKING:
    from rag_harness.plugin.collected import Collected
    from rag_harness.plugin.run_cases import RunCases
    from rag_harness.plugin.run_record import RunRecord
    from rag_harness.plugin.table_measures import TableMeasures
    from rag_harness.report.blocks.keeping import Keeper
    from rag_harness.results.cases import KeptCase
    from rag_harness.results.row import ExperimentResult
    from rag_harness.results.score import ScoreLine
    from rag_harness.types import Case

LEAST = 5_000
"""Number of trials from which an experiment counts as large. The rows of a smaller one are read in a second or two."""


class TableKeeping:
    """Keeps the values of large experiments, in the process that writes.

    Args:
        cases: of the run.
        record: writes the cases.
        measures: of the run's tables.
    """

    def __init__(self, cases: RunCases, record: RunRecord, measures: TableMeasures) -> None:
        self._cases, self._record, self._measures = cases, record, measures
        self._large: set[str] = set()
        self._keepers: dict[tuple[str, str], Keeper[Any]] = {}
        self._gold: dict[str, _Gold] = {}

    def collection_done(self, selected: Collected) -> None:
        """Note which experiments have many trials."""
        counts = Counter(trial.experiment for trial in selected.every if trial.experiment != GOLDEN)
        self._large = {name for name, count in counts.items() if count >= LEAST}

    def take(self, row: ExperimentResult, line: bytes) -> None:
        """Take a row that was appended to its file as ``line``."""
        self._take("rows", self._rows, row, line)

    def take_score(self, score: ScoreLine, line: bytes) -> None:
        """Take a score that was appended to its file as ``line``."""
        self._take("scores", self._scores, score, line)

    def _take(
        self, what: str, begin: Callable[[str], Keeper[Any]], said: ExperimentResult | ScoreLine, line: bytes
    ) -> None:
        if said.experiment not in self._large:
            return
        keeper = self._keepers.get((what, said.experiment))
        if keeper is None:
            self._begin(what, begin, said.experiment)
        else:
            keeper.add(said, line)

    def seal(self) -> None:
        """Keep the values that came last. It must be called before the files are read."""
        for keeper in self._keepers.values():
            keeper.seal()
        self._keepers.clear()
        self._gold.clear()

    def _begin(self, what: str, begin: Callable[[str], Keeper[Any]], experiment: str) -> None:
        """Begin with what the file already has, the newest line included. Do nothing if the cases cannot be written."""
        try:
            self._keepers[what, experiment] = begin(experiment)
        except OSError as error:
            # The end of the run reports this, if it cannot write the cases either.
            log.warning("%s: %s are not looked at as they come: %s", experiment, what, error)
            self._large.discard(experiment)

    def _rows(self, experiment: str) -> Keeper[ExperimentResult]:
        from rag_harness.report.blocks.keeping import Keeper
        from rag_harness.report.blocks.kinds import row_kind
        from rag_harness.report.blocks.segments import SEGMENT
        from rag_harness.results.result_paths import result_path

        record = self._record
        digest = record.keep_cases(experiment)
        kind = row_kind(self._measures.of(experiment), self._gold_of(experiment), lambda: digest)
        return Keeper(result_path(record.output, experiment), kind, SEGMENT)

    def _scores(self, experiment: str) -> Keeper[ScoreLine]:
        from rag_harness.report.blocks.keeping import Keeper
        from rag_harness.report.blocks.kinds import score_kind
        from rag_harness.report.blocks.segments import SEGMENT
        from rag_harness.results.result_paths import scores_path

        digest = self._record.keep_cases(experiment)
        kind = score_kind(self._gold_of(experiment).position, lambda: digest)
        return Keeper(scores_path(self._record.output, experiment), kind, SEGMENT)

    def _gold_of(self, experiment: str) -> _Gold:
        if experiment not in self._gold:
            self._gold[experiment] = _Gold(self._cases.all_of(experiment))
        return self._gold[experiment]


class _Gold:
    """The cases of an experiment in the order of their file."""

    def __init__(self, cases: Sequence[Case]) -> None:
        self._cases = cases
        self.position = {case.query.query_id: place for place, case in enumerate(self._cases)}

    def __getitem__(self, place: int, /) -> KeptCase:
        from rag_harness.results.cases import kept

        return kept(self._cases[place])
