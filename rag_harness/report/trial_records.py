"""The trials of a run as flat records with the same columns, for tables that people work with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

from rag_harness.errors import DataError
from rag_harness.report.asked_measures import asked_measures
from rag_harness.report.suite_table import SuiteTable
from rag_harness.report.tables import read_tables
from rag_harness.report.trial_columns import (
    READ_OFF,
    Kind,
    Record,
    columns_for,
    label_column,
    measure_column,
    of_case,
    of_row,
    text_or_none,
)
from rag_harness.results.cases import CaseFile
from rag_harness.results.causes import CauseLine, read_causes
from rag_harness.results.manifest import MANIFEST, of_run, read_manifest
from rag_harness.results.row import ExperimentResult, rows_in
from rag_harness.types import TrialId


class TrialRecords:
    """The trials of the last run in ``output``: suites by name, in each the cases in their order.

    Every selected case has one; its status is "lost" where it has no row. Rows of other runs are left out, and so are
    cases that were not asked for. It may be iterated more than once: each time the rows are read from the files, and
    only those of one suite are in memory. ``only`` names the one suite that is looked at; empty for all.

    Attributes:
        columns: kind of each column, in their order.
        tables: the table of each suite, by its name.

    Raises:
        DataError: ``output`` holds no run, or ``run.json``, cases or causes are damaged.
        SettingsError: the run was judged on a measure that is not registered here.
    """

    def __init__(self, output: Path, only: str = "") -> None:
        self._output, self._manifest = output, read_manifest(output)
        if only:
            suites = {name: each for name, each in self._manifest.suites.items() if name == only}
            self._manifest = self._manifest.model_copy(update={"suites": suites})
        self.tables = read_tables(output, lambda suite: asked_measures(output, self._manifest, suite), self._manifest)
        self._causes: dict[TrialId, CauseLine] = {line.trial: line for line in read_causes(output)}
        labels = sorted({name for table in self.tables.values() for name in table.slices()} - {"query_type"})
        names = dict.fromkeys(name for table in self.tables.values() for name in table.columns)
        self._labels = {name: label_column(name) for name in labels}
        self._measures = {name: measure_column(name) for name in names if name not in READ_OFF}
        self.columns: Mapping[str, Kind] = columns_for([*self._labels.values()], [*self._measures.values()])

    @property
    def experiments(self) -> list[str]:
        """The suites, in the order of their trials."""
        return [name for name, table in self.tables.items() if table.selected_of({})]

    def __len__(self) -> int:
        return sum(table.selected_of({}) for table in self.tables.values())

    def __iter__(self) -> Iterator[Record]:
        for name, table in self.tables.items():
            with closing(CaseFile(self._output, self._manifest.suites[name].cases)) as cases:
                yield from self._of_suite(name, table, cases)

    def _of_suite(self, name: str, table: SuiteTable, cases: CaseFile) -> Iterator[Record]:
        rows, values = self._rows(name, cases), {each: table.values(each, {}) for each in table.columns}
        nothing = dict.fromkeys(self.columns)
        for position, query_id in enumerate(table.ids):
            if table.state_of(position) == "left out":
                continue
            state = {"status": table.state_of(position), "category": _category(table, position)}
            scores = {column: values.get(each, {}).get(query_id) for each, column in self._measures.items()}
            case = of_case(name, cases[position]) | self._labelled(table.labels[position])
            judged = {"correct_by": table.correct_by_judge[query_id]} if query_id in table.correct_by_judge else {}
            yield nothing | case | state | scores | rows.get(position, {}) | judged

    def _labelled(self, labels: Mapping[str, str]) -> Record:
        return {column: text_or_none(labels.get(name)) for name, column in self._labels.items()}

    def _rows(self, name: str, cases: CaseFile) -> dict[int, Record]:
        """Return the content of rows by position. Of two rows of a case, the first counts, as in tables."""
        record, found = self._manifest.suites[name], dict[int, Record]()
        is_of_run = of_run(record)
        for row in rows_in(self._output / record.file):
            position = cases.position.get(row.query_id)
            if position is not None and position not in found and is_of_run(row):
                found[position] = of_row(row, cases[position].case) | self._cause(name, row)
        return found

    def _cause(self, name: str, row: ExperimentResult) -> Record:
        line = self._causes.get(TrialId(name, row.query_id))
        if line is None or line.fingerprint not in ("", row.fingerprint):
            return {}
        return {"cause": text_or_none(line.cause), "cause_detail": text_or_none(line.detail)}


def read_trials(output: Path) -> TrialRecords:
    """Return the trials of the last run in ``output``.

    Raises:
        DataError, SettingsError: see ``TrialRecords``.
    """
    if output.is_file():
        raise DataError(f"{output} is a file. Name the output folder of a run, where {MANIFEST} is.")
    return TrialRecords(output)


def _category(table: SuiteTable, position: int) -> str | None:
    return (table.categories[position] or None) if table.categories else None
