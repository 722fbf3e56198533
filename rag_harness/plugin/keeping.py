"""What tables are made of, kept while the rows of a large run come: after the last test nobody reads them again."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rag_harness.files.log import log
from rag_harness.types import GOLDEN

if TYPE_CHECKING:
    from rag_harness.plugin.collected import Collected
    from rag_harness.plugin.run_record import RunRecord
    from rag_harness.plugin.session import RagSession
    from rag_harness.report.blocks.keeping import Keeper
    from rag_harness.results.cases import KeptCase
    from rag_harness.results.row import ExperimentResult

LEAST = 5_000
"""Trials of an experiment from which its rows are looked at as they come: fewer are read in a second or two."""


class Keeping:
    """Lives in the process that writes.

    Args:
        session: has the cases.
        record: knows the measures of the run's tables, and writes the cases.
    """

    def __init__(self, session: RagSession, record: RunRecord) -> None:
        self._session, self._record = session, record
        self._large: set[str] = set()
        self._keepers: dict[str, Keeper] = {}

    def collection_done(self, selected: Collected) -> None:
        """Note which experiments have many trials."""
        counts = Counter(trial.experiment for trial in selected.every if trial.experiment != GOLDEN)
        self._large = {name for name, count in counts.items() if count >= LEAST}

    def take(self, row: ExperimentResult, line: bytes) -> None:
        """Take a row that was appended to its file as ``line``."""
        if row.experiment not in self._large:
            return
        keeper = self._keepers.get(row.experiment)
        if keeper is None:
            self._begin(row.experiment)
        else:
            keeper.add(row, line)

    def seal(self) -> None:
        """Keep what came last; to be called before the files are read."""
        for keeper in self._keepers.values():
            keeper.seal()
        self._keepers.clear()

    def _begin(self, experiment: str) -> None:
        """Begin with what the file has, the row that has just come among it; not where cases cannot be written."""
        try:
            self._keepers[experiment] = self._keeper(experiment)
        except OSError as error:
            # The end of the run says so, if it cannot write them either.
            log.warning("%s: rows are not looked at as they come: %s", experiment, error)
            self._large.discard(experiment)

    def _keeper(self, experiment: str) -> Keeper:
        from rag_harness.engine.places import result_path
        from rag_harness.report.blocks.keeping import Keeper
        from rag_harness.report.blocks.segments import SEGMENT

        record = self._record
        digest = record.keep_cases(experiment)
        file = result_path(record.output, experiment)
        return Keeper(file, record.measures_of(experiment), _Gold(self._session, experiment), digest, SEGMENT)


class _Gold:
    """The cases of an experiment as the session has them, in the order of their file."""

    def __init__(self, session: RagSession, experiment: str) -> None:
        self._cases = session.all_cases_of(experiment)
        self.position = {case.query.query_id: place for place, case in enumerate(self._cases)}

    def __getitem__(self, place: int, /) -> KeptCase:
        from rag_harness.results.cases import kept

        return kept(self._cases[place])
