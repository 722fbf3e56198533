"""The trials of a run, flat: a record each, the same columns in all of them, for tables that people work with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Literal

from rag_harness.errors import DataError
from rag_harness.measures.hits import ranking_of
from rag_harness.measures.spent import (
    CompletionTokens,
    CostUsd,
    LlmMs,
    PromptTokens,
    RerankMs,
    RetrievalMs,
    TotalMs,
    TtftMs,
)
from rag_harness.report.asked import asked_measures
from rag_harness.report.suite_table import SuiteTable
from rag_harness.report.tables import read_tables
from rag_harness.results.cases import CaseFile, KeptCase
from rag_harness.results.causes import CauseLine, read_causes
from rag_harness.results.manifest import MANIFEST, read_manifest
from rag_harness.results.row import ExperimentResult, numbered_lines, row_or_none, storable
from rag_harness.types import TrialId

Kind = Literal["name", "text", "flag", "number", "count", "names", "counts"]
"""What a column holds: a word that recurs, text, true or false, a float, an integer, a list of texts, of integers."""
Record = Mapping[str, Any]
"""A trial by column. None where there is nothing; never NaN, and no empty text."""

_SPENT = (TotalMs(), RetrievalMs(), RerankMs(), LlmMs(), TtftMs())
_COUNTED = (PromptTokens(), CompletionTokens())
_COST = CostUsd()
_QUESTION: Mapping[str, Kind] = {
    "experiment": "name", "query_id": "text", "query": "text", "query_type": "text",
}  # fmt: skip
_ANSWER: Mapping[str, Kind] = {
    "answerable": "flag", "status": "text", "error": "text", "answer": "text", "abstained": "flag",
    "ground_truth": "text", "retrieved": "names", "citations": "counts", "category": "text", "cause": "text",
    "cause_detail": "text",
}  # fmt: skip
_TOOK: Mapping[str, Kind] = {
    **dict.fromkeys([measure.name for measure in _SPENT], "number"), "waited_ms": "number",
    **dict.fromkeys([measure.name for measure in _COUNTED], "count"), _COST.name: "number", "confidence": "number",
    "model": "text", "profile": "text", "mode": "text", "fingerprint": "text",
}  # fmt: skip
_FIXED = {**_QUESTION, **_ANSWER, **_TOOK}
_READ_OFF = {*(measure.name for measure in (*_SPENT, *_COUNTED, _COST)), "confidence"}
"""Measures that are fields of the row: their column is there in every run, and is not repeated."""
_PLACE = "\0"
"""How a place begins that no document takes, for it has an earlier one."""


class Trials:
    """The trials of the last run in ``output``: suites by name, in each the cases in their order.

    Every selected case has one; "lost" is the status of one that no row came of. Rows of other runs are left out, as
    is what was not asked for. One may go through them more than once: each time the rows are read from the files, and
    no more than those of one suite are held.

    Attributes:
        columns: the kind of each, in their order.

    Raises:
        DataError: ``output`` is no run's, or ``run.json``, cases or causes are damaged.
        SettingsError: the run was judged on a measure that is not registered here.
    """

    def __init__(self, output: Path) -> None:
        self._output, self._manifest = output, read_manifest(output)
        self._tables = read_tables(output, lambda suite: asked_measures(output, self._manifest, suite))
        self._causes: dict[TrialId, CauseLine] = {line.trial: line for line in read_causes(output)}
        labels = sorted({name for table in self._tables.values() for name in table.slices()} - {"query_type"})
        names = dict.fromkeys(name for table in self._tables.values() for name in table.columns)
        self._labels = {name: f"label.{_text(name)}" for name in labels}
        self._measures = {name: _column_of(name) for name in names if name not in _READ_OFF}
        self.columns: Mapping[str, Kind] = {
            **_QUESTION,
            **dict.fromkeys(self._labels.values(), "text"),
            **_ANSWER,
            **dict.fromkeys(self._measures.values(), "number"),
            **_TOOK,
        }

    @property
    def experiments(self) -> list[str]:
        """The suites, in the order of their trials."""
        return [name for name, table in self._tables.items() if table.selected_of({})]

    def __len__(self) -> int:
        return sum(table.selected_of({}) for table in self._tables.values())

    def __iter__(self) -> Iterator[Record]:
        for name, table in self._tables.items():
            with closing(CaseFile(self._output, self._manifest.suites[name].data)) as cases:
                yield from self._of_suite(name, table, cases)

    def _of_suite(self, name: str, table: SuiteTable, cases: CaseFile) -> Iterator[Record]:
        rows, values = self._rows(name, table, cases), {each: table.values(each, {}) for each in table.columns}
        nothing = dict.fromkeys(self.columns)
        for position, query_id in enumerate(table.ids):
            if table.state_of(position) != "left out":
                scores = {column: values.get(each, {}).get(query_id) for each, column in self._measures.items()}
                labels = {column: table.labels[position].get(each) for each, column in self._labels.items()}
                case = _of_case(name, cases[position]) | {column: _text(label) for column, label in labels.items()}
                state = {"status": table.state_of(position), "category": _category(table, position)}
                yield nothing | case | state | scores | rows.get(position, {})

    def _rows(self, name: str, table: SuiteTable, cases: CaseFile) -> dict[int, Record]:
        """Return what the rows say, by position; of two rows of a case the first is the one that tables count."""
        record, found = self._manifest.suites[name], dict[int, Record]()
        for _, line, _ in numbered_lines(self._output / record.file):
            row = row_or_none(line)
            position = cases.position.get(row.query_id) if row else None
            if row is None or position is None or position in found or row.fingerprint not in record.fingerprints:
                continue
            if table.state_of(position) in ("ok", "error"):
                found[position] = _of_row(row) | self._cause(name, row)
        return found

    def _cause(self, name: str, row: ExperimentResult) -> Record:
        line = self._causes.get(TrialId(name, row.query_id))
        if line is None or line.fingerprint not in ("", row.fingerprint):
            return {}
        return {"cause": _text(line.cause), "cause_detail": _text(line.detail)}


def read_trials(output: Path) -> Trials:
    """Return the trials of the last run in ``output``.

    Raises:
        DataError, SettingsError: see ``Trials``.
    """
    if output.is_file():
        raise DataError(f"{output} is a file. Name the output folder of a run, where {MANIFEST} is.")
    return Trials(output)


def _column_of(measure: str) -> str:
    """Return the name of a measure's column: its own, unless a column is called so that is no measure."""
    return f"measure.{measure}" if measure in _FIXED else measure


def _category(table: SuiteTable, position: int) -> str | None:
    return (table.categories[position] or None) if table.categories else None


def _of_case(experiment: str, kept: KeptCase) -> dict[str, Any]:
    case = kept.case
    return {
        "experiment": experiment,
        "query_id": _text(case.query.query_id),
        "query": _text(case.query.text),
        "query_type": _text(kept.labels.get("query_type")),
        "answerable": case.answerable,
        "ground_truth": _text(case.ground_truth),
    }


def _of_row(row: ExperimentResult) -> dict[str, Any]:
    answered = bool(row.ok and row.llm_answer)
    return {
        "error": row.why or None,
        "answer": row.llm_answer if answered else None,
        "abstained": row.abstained if answered else None,
        "retrieved": [None if name.startswith(_PLACE) else name for name in ranking_of(row)],
        "citations": list(row.citations) if answered else None,
        **{measure.name: measure.read(row) for measure in (*_SPENT, *_COUNTED, _COST)},
        "waited_ms": row.waited_ms,
        "confidence": row.confidence,
        "model": row.model or None,
        "profile": row.profile or None,
        "mode": row.mode,
        "fingerprint": row.fingerprint or None,
    }


def _text(value: str | None) -> str | None:
    """Return text that every format can hold; None for none."""
    return (value if value.isascii() else storable(value)) if value else None
