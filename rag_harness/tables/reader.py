"""Read the files of an output folder into a table for each suite."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rag_harness.core.types import GOLDEN
from rag_harness.evaluation.measures import Measure
from rag_harness.evaluation.measures.expectations import of_versions
from rag_harness.evaluation.measures.measure import is_of_conversation
from rag_harness.pipelines.result_paths import result_path
from rag_harness.records.cases import CaseFile
from rag_harness.records.experiment_names import repeat_fingerprint, repeat_name
from rag_harness.records.manifest import (
    EndsAgain,
    RunManifest,
    SuiteRecord,
    awaited,
    chooser_of,
    missing_of,
    read_manifest,
)
from rag_harness.records.scores import CHECKED, SCORES
from rag_harness.tables.blocks import Mask, RowBlock, Totals
from rag_harness.tables.clusters import clusters_in
from rag_harness.tables.column_cache import SEGMENT, read_blocks, read_score_blocks
from rag_harness.tables.judged_columns import TAKEN_OUT, Growing, JudgedColumns
from rag_harness.tables.suite_table import CaseState, Column, SuiteTable

MeasuresOf = Callable[[str], Sequence[Measure]]
"""Returns the measures that are wanted of a suite."""
_UNMET = {"retrieval": "no retrieval", "answer": "no answer"}


def read_tables(output: Path, measures: MeasuresOf, manifest: RunManifest | None = None) -> dict[str, SuiteTable]:
    """Return a table of every suite, by its name. Rows are read a block at a time and not kept.

    Args:
        output: folder of the runs.
        measures: returns the measures of each suite.
        manifest: the suites; by default all complete ones of the folder, of earlier runs too.

    Raises:
        DataError: ``run.json`` or the cases are missing or damaged.
    """
    manifest = manifest or read_manifest(output)
    cases = {name: CaseFile(output, name) for name in {record.cases for record in manifest.suites.values()}}
    try:
        tables = {
            name: _read_table(output / record.file, name, record, cases[record.cases], measures(name))
            for name, record in sorted(manifest.suites.items())
        }
        for name, table in tables.items():
            table.later = cache(partial(_later, output, name, manifest.suites[name], table))
        for name, table in tables.items():
            named = str(manifest.settings.get("cluster") or "")
            table.foreign = manifest.suites[name].foreign
            table.unknown_pages = manifest.suites[name].unknown_pages
            table.alike = clusters_in(cases[manifest.suites[name].cases], named)
        return tables
    finally:
        for file in cases.values():
            file.close()


def read_repeat(output: Path, name: str, repeat: int, record: SuiteRecord, measures: Sequence[Measure]) -> SuiteTable:
    """Return the table of an experiment's repeat of this number, from 2. Missing answers count as lost.

    Raises:
        DataError: the cases are missing or damaged.
    """
    fingerprints = [repeat_fingerprint(each, repeat) for each in record.fingerprints]
    ends = record.again.get(repeat, EndsAgain())
    changed = {"fingerprints": fingerprints, "ended": ends.ended, "taken_out": ends.taken_out}
    again, cases = record.model_copy(update=changed), CaseFile(output, record.cases)
    try:
        return _read_table(result_path(output, repeat_name(name, repeat)), name, again, cases, measures)
    finally:
        cases.close()


def _later(output: Path, name: str, record: SuiteRecord, first: SuiteTable) -> Sequence[SuiteTable]:
    """Return the tables of the answers number 2 and up. Answers that are computed are all like the first one."""
    if record.computes:
        return [first] * (record.answers - 1)
    looked_at = [column.measure for column in first.columns.values()]
    return [read_repeat(output, name, repeat, record, looked_at) for repeat in range(2, record.answers + 1)]


def _read_table(rows: Path, name: str, record: SuiteRecord, cases: CaseFile, measures: Sequence[Measure]) -> SuiteTable:
    measures = of_versions(measures, record.rubrics)
    reading = _Reading(name, record, cases, measures)
    for block in read_blocks(rows, measures, cases, SEGMENT):
        reading.take(block)
    reading.add_scores(rows.parent / SCORES / rows.name, rows.parent / CHECKED / rows.name)
    return reading.table()


class _Reading:
    """A table as it grows."""

    def __init__(self, name: str, record: SuiteRecord, cases: CaseFile, measures: Sequence[Measure]) -> None:
        self._name, self._cases = name, cases
        self._fingerprints = frozenset(record.fingerprints)
        self._has_come = _which(cases, awaited(record), record.selected == "all" and not missing_of(record))
        self._resumed = _which(cases, chooser_of(record.resumed), record.resumed == "all")
        self._states = _states_before(record, cases)
        self._taken_out = dict.fromkeys(record.taken_out, TAKEN_OUT)
        self._ended = _which(cases, record.ended.__contains__, False) if record.ended else None
        self._totals = Totals(len(cases.ids))
        self._says_retrieval = record.retrieves
        self._if_retrieves: dict[str, Column] = {}
        self._columns = {measure.name: Growing(measure, len(cases.ids)) for measure in measures}
        self._judged = JudgedColumns(self._columns, record.authors, cases.ids, record.panel)

    def take(self, block: RowBlock) -> None:
        """Take the rows of a block. Rows of another run, and later rows of the same case, are left out."""
        rows = self._counted(block)
        positions, ok = block["position"][rows], block["ok"][rows]
        self._states[positions] = np.where(ok, CaseState.OK, CaseState.ERROR)
        self._totals.take(block, rows, self._resumed)
        answered = np.zeros(len(block), np.bool_)
        answered[rows[ok]] = True
        found = block.found.of(answered).found()
        for column in self._columns.values():
            column.take(block, rows, found)
        self._judged.note(block, rows[ok])

    def _counted(self, block: RowBlock) -> npt.NDArray[np.intp]:
        is_of_run = np.array([each in self._fingerprints for each in block.texts.fingerprints], np.bool_)
        positions = block["position"]
        counts = self._has_come[positions] & (self._states[positions] == CaseState.LOST)
        rows = np.flatnonzero(counts & is_of_run[block["fingerprint"]])
        _, first = np.unique(positions[rows], return_index=True)
        return rows[np.sort(first)]

    def add_scores(self, judged: Path, checked: Path) -> None:
        """Add the scores of judges and of metamorphic checks to the rows."""
        self._judged.read(read_score_blocks(judged, self._cases, SEGMENT))
        self._judged.read_checks(read_score_blocks(checked, self._cases, SEGMENT))

    def table(self) -> SuiteTable:
        """Return the table, with the cases that have no row."""
        for position in np.flatnonzero(self._states == CaseState.LOST):
            kept = self._cases[int(position)]
            for column in self._columns.values():
                column.lose(int(position), kept)
        self._judged.close()
        for column in self._columns.values():
            if is_of_conversation(column.measure):
                column.gather(self._conversations().values(), self._unknown)
        table = SuiteTable(self._cases.ids, self._cases.labels, self._states, self._finished(), self._totals)
        table.if_retrieves = self._if_retrieves
        table.categories, table.said_again = self._judged.categories(), self._judged.said_again()
        table.panels, table.correct_by_judge = self._judged.panels(), self._judged.correct_by
        table.ended = self._ended
        return table

    def _finished(self) -> dict[str, Column]:
        found = {}
        for name, column in self._columns.items():
            unmet = self._unmet(column.measure)
            found[name] = column.without_any(unmet) if unmet else column.finished(partial(self._why_not, column))
            if unmet == _UNMET["retrieval"] and self._totals.says_retrieval is None:
                self._if_retrieves[name] = column.finished(partial(self._why_not, column))
        return found

    def _why_not(self, column: Growing, place: int) -> str:
        return column.measure.applies(self._cases[place].case)

    def _conversations(self) -> Mapping[str, list[int]]:
        """Return the positions of the turns of each conversation, in their order."""
        found: dict[str, list[int]] = {}
        for position, labels in enumerate(self._cases.labels):
            if name := labels.get("conversation", ""):
                found.setdefault(name, []).append(position)
        return found

    def _unknown(self, first: int) -> str:
        """Return why it is not known what a conversation has come to; empty where it is."""
        return self._taken_out.get(self._cases.labels[first].get("conversation", ""), "")

    def _unmet(self, measure: Measure) -> str:
        """Return what the measure needs and the experiment never does; "" where it does all, or no row can tell."""
        totals = self._totals
        tells_nothing = totals.rows == totals.errors
        answers = self._name != GOLDEN and (totals.answers or tells_nothing)
        retrieves = totals.retrieves or tells_nothing or self._says_retrieval
        does = {"retrieval": retrieves, "answer": answers}
        return next((_UNMET[need] for need in measure.needs if not does[need]), "")


def _states_before(record: SuiteRecord, cases: CaseFile) -> npt.NDArray[np.uint8]:
    """Return the states before a row is read. Selected cases count as lost until their row comes."""
    is_selected, not_run = chooser_of(record.selected), frozenset([*record.not_run, *record.settled, *record.ended])
    waits = _which(
        cases, lambda case: is_selected(case) and case not in not_run, record.selected == "all" and not not_run
    )
    return np.where(waits, CaseState.LOST, CaseState.LEFT_OUT).astype(np.uint8)


def _which(cases: CaseFile, is_one: Callable[[str], bool], every: bool) -> Mask:
    """Return a mask of the cases for which ``is_one`` holds. ``every`` says that it holds for all, without asking."""
    if every:
        return np.ones(len(cases.ids), np.bool_)
    return np.fromiter(map(is_one, cases.ids), np.bool_, len(cases.ids))
