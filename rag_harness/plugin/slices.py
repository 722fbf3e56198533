"""``--rag-slices``: checks the option before anything runs, and asks for the measures that it names."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from rag_harness.plugin.screen import usage_error

if TYPE_CHECKING:
    from rag_harness.plugin.collected import Collected
    from rag_harness.plugin.session import RagSession
    from rag_harness.plugin.table_measures import TableMeasures
    from rag_harness.types import Case


class Slices:
    """Reads the option, and adds its measures to the tables."""

    def __init__(self, session: RagSession, measures: TableMeasures) -> None:
        self._session, self._measures = session, measures

    def collection_done(self, selected: Collected) -> None:
        """Check the keys against the cases of the experiments that were selected.

        Raises:
            pytest.UsageError: the option cannot be read, or a key is in no case.
        """
        experiments = sorted({trial.experiment for trial in selected.trials})
        if not experiments or not self._session.settings.slices:
            return
        from rag_harness.errors import PrerequisiteError

        try:
            measures = self._read(experiments)
        except PrerequisiteError as error:
            raise usage_error(error) from None
        for measure in measures:
            for experiment in experiments:
                self._measures.want(experiment, measure)

    def _read(self, experiments: Collection[str]) -> list[str]:
        from rag_harness.report.slices_asked import check_slice_keys, measures_of, read_slices

        session, settings = self._session, self._session.settings
        asked = read_slices(settings.slices, settings.k)
        keys = _keys(case for name in experiments for case in session.cases.all_of(name))
        # The ini file is for all data that it names. A single run need not use all of them.
        check_slice_keys(asked, keys if all(each.key in keys for each in asked) else keys | self._keys_elsewhere())
        return measures_of(settings.slices, settings.k)

    def _keys_elsewhere(self) -> set[str]:
        """Return the keys of all data that can be read. Errors in the others are reported by the runs that use them."""
        from rag_harness.errors import PrerequisiteError

        found: set[str] = set()
        for name in self._session.cases.data.names:
            with suppress(PrerequisiteError):
                data = self._session.cases.data.get(name)
                found |= _keys([*data.cases, *data.scenarios])
        return found


def _keys(cases: Iterable[Case]) -> set[str]:
    return {key for case in cases for key in case.labels}
