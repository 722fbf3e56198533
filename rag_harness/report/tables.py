"""The files below ``output/`` -> a table of each suite: what gates, terminal, ``summary.json`` and comparisons read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rag_harness.files.log import log
from rag_harness.measures import Measure, RankingMeasure, RowMeasure, Score
from rag_harness.measures.hits import ranking_of
from rag_harness.measures.ranking_arrays import Finder, Found
from rag_harness.report.suite_table import Column, State, SuiteTable
from rag_harness.report.totals import Totals
from rag_harness.results.cases import CaseFile, KeptCase
from rag_harness.results.manifest import RunManifest, SuiteRecord, chosen, read_manifest
from rag_harness.results.row import ExperimentResult, numbered_lines, row_or_none
from rag_harness.types import GOLDEN

MeasuresOf = Callable[[str], Sequence[Measure]]
"""Says which measures are wanted of a suite."""
_MOST_REASONS = 250
_NO_ANSWER, _NO_ROW = "no answer", "no row"
_UNMET = {"retrieval": "no retrieval", "answer": "no answer asked for"}


def read_tables(output: Path, measures: MeasuresOf) -> dict[str, SuiteTable]:
    """Return a table of every suite of the last run, by its name. Rows are read one by one and not kept.

    Raises:
        DataError: ``run.json`` or the cases are missing or damaged.
    """
    manifest = read_manifest(output)
    cases = {data: CaseFile(output, data) for data in _data(manifest)}
    try:
        return {
            name: _read_table(output, name, record, cases[record.data], measures(name))
            for name, record in sorted(manifest.suites.items())
        }
    finally:
        for file in cases.values():
            file.close()


def _data(manifest: RunManifest) -> set[str]:
    return {record.data for record in manifest.suites.values()}


def _read_table(
    output: Path, name: str, record: SuiteRecord, cases: CaseFile, measures: Sequence[Measure]
) -> SuiteTable:
    reading = _Reading(name, record, cases, measures)
    for _, line, _ in numbered_lines(output / record.file):
        row = row_or_none(line)
        if row is not None:
            reading.add(row)
    return reading.table()


class _Reading:
    """A table as it grows."""

    def __init__(self, name: str, record: SuiteRecord, cases: CaseFile, measures: Sequence[Measure]) -> None:
        self._name, self._cases = name, cases
        self._fingerprints, self._is_resumed = set(record.fingerprints), chosen(record.resumed)
        self._lost = set(record.lost)
        self._states = _states_before(record, cases)
        self._totals = Totals(len(cases.ids))
        self._columns = {measure.name: _Growing(measure, len(cases.ids)) for measure in measures}
        self._finder = Finder()
        self._found: list[int] = []

    def add(self, row: ExperimentResult) -> None:
        """Take a row, unless it is of another run."""
        position = self._cases.position.get(row.query_id)
        awaited = position is not None and self._states[position] == State.LOST and row.query_id not in self._lost
        if position is None or not awaited or row.fingerprint not in self._fingerprints:
            return
        self._states[position] = State.OK if row.ok else State.ERROR
        ranked = ranking_of(row)
        self._totals.add(row, position, len(ranked), self._is_resumed(row.query_id))
        kept = self._cases[position]
        for column in self._columns.values():
            column.add(position, kept, row)
        if row.ok:
            self._finder.add(ranked, kept.case.qrels)
            self._found.append(position)

    def table(self) -> SuiteTable:
        """Return the table, with the cases that no row came of."""
        for position in np.flatnonzero(self._states == State.LOST):
            kept = self._cases[int(position)]
            for column in self._columns.values():
                column.add(int(position), kept, None)
        found = self._finder.found()
        for column in self._columns.values():
            column.fill(found, self._found)
        columns = {name: column.finished(self._unmet(column.measure)) for name, column in self._columns.items()}
        return SuiteTable(self._cases.ids, self._cases.labels, self._states, columns, self._totals)

    def _unmet(self, measure: Measure) -> str:
        """Return what the experiment never does although the measure needs it; nothing where no row can tell."""
        totals = self._totals
        answers = self._name != GOLDEN and (totals.answers or totals.rows == totals.errors)
        does = {"retrieval": totals.retrieves or not totals.rows, "answer": answers}
        return next((_UNMET[need] for need in measure.needs if not does[need]), "")


class _Growing:
    """A column as it grows."""

    def __init__(self, measure: Measure, cases: int) -> None:
        self.measure = measure
        self._values = np.full(cases, np.nan)
        self._absent = np.zeros(cases, dtype=np.uint8)
        self._reasons = {"": 0}
        self._unmeasured: set[int] = set()

    def add(self, position: int, kept: KeptCase, row: ExperimentResult | None) -> None:
        """Score a row; None is that of a lost case."""
        why = self.measure.applies(kept.case)
        if why:
            self._leave_out(position, why)
        elif row is None or not row.ok:
            self._without_answer(position, _NO_ROW if row is None else _NO_ANSWER)
        elif isinstance(self.measure, RowMeasure) and not isinstance(self.measure, RankingMeasure):
            self._put(position, _scored(self.measure, kept, row))

    def fill(self, found: Found, positions: Sequence[int]) -> None:
        """Score all rankings at once; ``positions`` says which cases they are of."""
        if not isinstance(self.measure, RankingMeasure) or not positions:
            return
        where, values = np.array(positions), self.measure.batch(found)
        applies = self._absent[where] == 0
        self._values[where[applies]] = values[applies]

    def finished(self, unmet: str) -> Column:
        """Return the column; without a value where the experiment never does what the measure ``unmet`` needs."""
        if unmet:
            self._values[:] = np.nan
            self._absent[:] = self._number(unmet)
            self._unmeasured.clear()
        return Column(self.measure, self._values, self._absent, list(self._reasons), frozenset(self._unmeasured))

    def _without_answer(self, position: int, why: str) -> None:
        if self.measure.worst is None:
            self._leave_out(position, why)
        else:
            self._values[position] = self.measure.worst

    def _put(self, position: int, score: Score) -> None:
        if score.value is None:
            self._leave_out(position, score.reason or "no value")
            self._unmeasured.add(int(self._absent[position]))
        else:
            self._values[position] = score.value

    def _leave_out(self, position: int, why: str) -> None:
        self._absent[position] = self._number(why)

    def _number(self, why: str) -> int:
        known = why if why in self._reasons or len(self._reasons) < _MOST_REASONS else "another reason"
        return self._reasons.setdefault(known, len(self._reasons))


def _scored(measure: RowMeasure, kept: KeptCase, row: ExperimentResult) -> Score:
    """Score a row; a measure that raises has not measured, and says so."""
    try:
        return measure.score(kept.case, row)
    except Exception as error:
        log.error("%s of %s failed", measure.name, row.trial_id, exc_info=error)
        return Score(None, f"no value, for the measure raised {type(error).__name__}: {error}")


def _states_before(record: SuiteRecord, cases: CaseFile) -> npt.NDArray[np.uint8]:
    """Return the states before a row is read: what was selected is lost."""
    is_selected, not_run = chosen(record.selected), set(record.not_run)
    waited_for = (is_selected(case_id) and case_id not in not_run for case_id in cases.ids)
    states = [State.LOST if waits else State.LEFT_OUT for waits in waited_for]
    return np.array(states, dtype=np.uint8)
