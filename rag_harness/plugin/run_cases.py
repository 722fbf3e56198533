"""The cases of a run, and the data that they are from."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from rag_harness.work.once import Once

if TYPE_CHECKING:
    from rag_harness.dataset.data import DataSets
    from rag_harness.dataset.owed import Owed
    from rag_harness.engine.trial_rows import Trial
    from rag_harness.plugin.snapshots import Snapshots
    from rag_harness.results.row import ExperimentResult
    from rag_harness.settings import Settings
    from rag_harness.types import Case


class RunCases:
    """Reads cases when somebody asks for them.

    Args:
        settings: of the run.
        snapshots: know which answers are kept.

    Attributes:
        query_ids: ids of all cases of all data that can be read.
        owed: what the answers of single experiments owe beside what their questions and data demand.
    """

    def __init__(self, settings: Once[Settings], snapshots: Snapshots) -> None:
        self._snapshots = snapshots
        self._settings, self._data = settings, Once(self._make_data)
        self.query_ids = Once(self._read_query_ids)
        self.owed: dict[str, Owed] = {}
        self._whole: dict[str, Sequence[Case]] = {}
        self._names: dict[str, str] = {}

    @property
    def data(self) -> DataSets:
        """The run's own data, and the named data of pyproject.toml."""
        return self._data.get()

    def _make_data(self) -> DataSets:
        # Light imports only: the controller of an xdist run needs just the cases before it hands out work.
        from rag_harness.dataset.data import DataSets

        return DataSets(self._settings.get())

    def data_of(self, experiment: str) -> str:
        """Return the name of the data that an experiment is asked about; empty means the run's own."""
        settings = self._settings.get()
        if not settings.data and not settings.endpoints:
            return ""
        if experiment not in self._names:
            from rag_harness.pipelines import data_of

            self._names[experiment] = data_of(experiment, settings)
        return self._names[experiment]

    def all_of(self, experiment: str) -> Sequence[Case]:
        """Return all queries of an experiment with their gold, in the order of the file."""
        if experiment not in self._whole:
            self._whole[experiment] = self._with_all(experiment)
        return self._whole[experiment]

    def is_played(self, experiment: str) -> bool:
        """Return whether a simulated user asks an experiment: its name says so, and its data have scenarios."""
        from rag_harness.pipelines.history_names import is_played_name

        return is_played_name(experiment) and self.has_scenarios(experiment)

    def has_scenarios(self, experiment: str) -> bool:
        """Return whether the data of an experiment have scenarios. Data that cannot be read have none."""
        from rag_harness.errors import PrerequisiteError

        with suppress(PrerequisiteError):  # no test is made of them; collection reports it
            return bool(self.data.get(self.data_of(experiment)).scenarios)
        return False

    def _with_all(self, experiment: str) -> Sequence[Case]:
        cases, owed = self._of_data(experiment), self.owed.get(experiment)
        file = self.data.get(self.data_of(experiment)).queries_file
        return self._snapshots.filled(experiment, owed.added_to(cases, file) if owed else cases)

    def _of_data(self, experiment: str) -> list[Case]:
        data = self.data.get(self.data_of(experiment))
        return data.scenarios if self.is_played(experiment) else data.cases

    def forget(self, experiment: str) -> None:
        """Make the cases of an experiment anew: other answers are kept as its snapshots."""
        self._whole.pop(experiment, None)

    def renewed(self, trial: Trial, row: ExperimentResult) -> Trial:
        """Return a trial as it is after the run has kept the answer in ``row`` as its snapshot."""
        return replace(trial, case=self._snapshots.renewed(trial.case, row))

    def owe(self, experiment: str, owed: Owed) -> None:
        """Add to the cases of an experiment what its answers owe.

        Raises:
            PrerequisiteError: no answer can keep that and what a question demands; names the places of both.
        """
        self.owed[experiment] = owed
        self.forget(experiment)
        self.all_of(experiment)

    def is_like_its_data(self, experiment: str) -> bool:
        """Return whether the cases of an experiment are those of its data, and no more is demanded of its answers."""
        return self.all_of(experiment) is self._of_data(experiment)

    def of(self, experiment: str) -> Sequence[Case]:
        """Return the cases of an experiment that this run looks at."""
        return self.all_of(experiment)[: self._settings.get().limit or None]

    def _read_query_ids(self) -> set[str]:
        from rag_harness.errors import PrerequisiteError

        found: set[str] = set()
        for name in self.data.names:
            with suppress(PrerequisiteError):  # no test was made of them; collection reports it
                data = self.data.get(name)
                found |= {case.query.query_id for case in (*data.cases, *data.scenarios)}
        return found
