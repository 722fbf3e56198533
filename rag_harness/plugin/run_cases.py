"""The cases of a run, and the data that they are from."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from rag_harness.work.once import Once

if TYPE_CHECKING:
    from rag_harness.dataset.data import DataSets
    from rag_harness.settings import Settings
    from rag_harness.types import Case


class RunCases:
    """Reads cases when somebody asks for them.

    Args:
        settings: of the run.

    Attributes:
        query_ids: ids of all cases of all data that can be read.
    """

    def __init__(self, settings: Once[Settings]) -> None:
        self._settings, self._data = settings, Once(self._make_data)
        self.query_ids = Once(self._read_query_ids)

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
        from rag_harness.pipelines import data_of

        return data_of(experiment, settings)

    def all_of(self, experiment: str) -> list[Case]:
        """Return all queries of an experiment with their gold, in the order of the file."""
        data = self.data.get(self.data_of(experiment))
        return data.scenarios if self.is_played(experiment) else data.cases

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

    def of(self, experiment: str) -> list[Case]:
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
