"""The trials of a run as records, CSV, Parquet, or a frame of pandas or polars."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Protocol
from urllib.parse import quote

from rag_harness.core.errors import DataError, PrerequisiteError, SettingsError, unknown
from rag_harness.core.escaping import csv_cell
from rag_harness.core.files import write_atomically
from rag_harness.core.registry import missing_package
from rag_harness.core.types import Case, TrialId
from rag_harness.evaluation.measures.answers import (
    CompletionTokens,
    CostUsd,
    LlmMs,
    PromptTokens,
    RerankMs,
    RetrievalMs,
    TotalMs,
    TtftMs,
)
from rag_harness.evaluation.measures.correctness import correctness
from rag_harness.records.cases import CaseFile, StoredCase
from rag_harness.records.document_ranking import ranking_of
from rag_harness.records.manifest import MANIFEST, of_run, read_manifest
from rag_harness.records.row import ExperimentResult, rows_in, storable
from rag_harness.records.scores import CauseLine, read_causes
from rag_harness.tables.reader import asked_measures, read_tables
from rag_harness.tables.suite_table import SuiteTable

Kind = Literal["name", "text", "flag", "number", "count", "names", "counts"]
"""Kind of a column: a recurring word, text, true or false, a float, an integer, a list of texts, a list of integers."""
Record = dict[str, Any]
"""A trial by column. A missing value is None, never NaN or empty text."""

_SPENT = (TotalMs(), RetrievalMs(), RerankMs(), LlmMs(), TtftMs())
_COUNTED = (PromptTokens(), CompletionTokens())
_COST = CostUsd()
_QUESTION: Mapping[str, Kind] = {
    "experiment": "name", "query_id": "text", "query": "text", "query_type": "text",
}  # fmt: skip
_ANSWER: Mapping[str, Kind] = {
    "answerable": "flag", "status": "text", "error": "text", "answer": "text", "abstained": "flag",
    "ground_truth": "text", "retrieved": "names", "citations": "counts", "correct_by": "text", "category": "text",
    "cause": "text", "cause_detail": "text",
}  # fmt: skip
_TOOK: Mapping[str, Kind] = {
    **dict.fromkeys([measure.name for measure in _SPENT], "number"), "waited_ms": "number",
    **dict.fromkeys([measure.name for measure in _COUNTED], "count"), _COST.name: "number", "confidence": "number",
    "model": "text", "profile": "text", "mode": "text", "fingerprint": "text",
}  # fmt: skip
_FIXED = {**_QUESTION, **_ANSWER, **_TOOK}
READ_OFF = {*(measure.name for measure in (*_SPENT, *_COUNTED, _COST)), "confidence"}
"""Measures that are fields of the row. Their columns exist in every run, and are not repeated."""
_PLACE = "\0"
"""Prefix of a rank whose document already has an earlier rank."""


def columns_for(labels: Sequence[str], measures: Sequence[str]) -> dict[str, Kind]:
    """Return the kind of each column, in their order, given the column names of labels and measures."""
    return {
        **_QUESTION,
        **dict.fromkeys(labels, "text"),
        **_ANSWER,
        **dict.fromkeys(measures, "number"),
        **_TOOK,
    }


def label_column(label: str) -> str:
    """Return the name of a label's column."""
    return f"label.{text_or_none(label)}"


def measure_column(measure: str) -> str:
    """Return the name of a measure's column: its own name, unless another column has it."""
    return measure if measure not in _FIXED else f"measure.{measure}"


def of_case(experiment: str, kept: StoredCase) -> dict[str, Any]:
    """Return what is known of a trial before it runs."""
    case = kept.case
    return {
        "experiment": experiment,
        "query_id": text_or_none(case.query.query_id),
        "query": text_or_none(case.query.text),
        "query_type": text_or_none(kept.labels.get("query_type")),
        "answerable": case.answerable,
        "ground_truth": text_or_none(case.ground_truth),
    }


def of_row(row: ExperimentResult, case: Case | None = None) -> dict[str, Any]:
    """Return the result of a trial. The fields of an answer are empty where there is none, or none was asked for."""
    answered = bool(row.ok and row.llm_answer)
    return {
        **({"query": text_or_none(row.query)} if case is not None and case.scenario is not None else {}),
        "error": row.error_text or None,
        "answer": row.llm_answer if answered else None,
        "abstained": row.abstained if answered else None,
        "retrieved": [None if name.startswith(_PLACE) else name for name in ranking_of(row, case)],
        "citations": list(row.citations) if answered else None,
        "correct_by": text_or_none(correctness(case, row).by) if case is not None else None,
        **{measure.name: measure.read(row) for measure in (*_SPENT, *_COUNTED, _COST)},
        "waited_ms": row.waited_ms,
        "confidence": row.confidence,
        "model": row.model or None,
        "profile": row.profile or None,
        "mode": row.mode,
        "fingerprint": row.fingerprint or None,
    }


def text_or_none(value: str | None) -> str | None:
    """Return text that every format can hold; None for empty text."""
    return (value if value.isascii() else storable(value)) if value else None


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


class Records(Protocol):
    """Records with the kind of each column, in their order."""

    @property
    def columns(self) -> Mapping[str, Kind]: ...

    def __iter__(self) -> Iterator[Record]: ...


@dataclass(frozen=True, slots=True)
class FlatTable:
    """Records that are in memory."""

    columns: Mapping[str, Kind]
    records: Sequence[Record]

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)


# Writes a record as a line of CSV (RFC 4180) that a spreadsheet shows without running it.

_NO_DOCUMENT = "-"
_TO_QUOTE = re.compile(r"[\s%]|^-$")


class _Echo:
    """The file object for csv's writer, whose calls then return the text."""

    def write(self, text: str) -> str:
        return text


def csv_lines(trials: Records) -> Iterator[bytes]:
    """Yield the column names and a line for each record, in UTF-8."""
    writer: Any = csv.writer(_Echo(), lineterminator="\r\n")
    yield writer.writerow([csv_cell(name) for name in trials.columns]).encode()
    for record in trials:
        yield writer.writerow([_cell(record[name]) for name in trials.columns]).encode()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    return csv_cell(value if isinstance(value, str) else _joined(value))


def _joined(values: Sequence[str | int | None]) -> str:
    return " ".join(_NO_DOCUMENT if value is None else _word(str(value)) for value in values)


def _word(text: str) -> str:
    """Return a text without white space. White space and ``%`` are percent-encoded, as in addresses."""
    return _TO_QUOTE.sub(lambda found: quote(found[0]) if found[0] != _NO_DOCUMENT else "%2D", text)


# A run's trials for notebooks: as a frame of pandas or polars, as CSV, as Parquet. See ``trials-table.md``.

Frame = Literal["pandas", "polars", "records"]
_GROUP = 10_000
"""Rows of a group of a Parquet file. At most so many records are in memory, beside those of a suite."""
_WITHOUT = 'frame="records" gives a list of dicts and needs neither.'


def write_csv(output: Path, file: Path) -> None:
    """Write the trials of the last run in ``output`` as CSV: RFC 4180, UTF-8. A cell without a value is empty.

    Raises:
        PrerequisiteError: ``output`` holds no run, or the file cannot be written.
    """
    _write(file, csv_lines(read_trials(output)))


def write_parquet(output: Path, file: Path) -> None:
    """Write the trials of the last run in ``output`` as Parquet, with types, lists and nulls.

    Raises:
        PrerequisiteError: ``output`` holds no run, the file cannot be written, or pyarrow is not installed.
    """
    _check_installed("format 'parquet'", "pyarrow")
    _write(file, _parquet(read_trials(output)))


def write_records(records: Records, file: Path) -> None:
    """Write records as the file's name ends: ``.csv`` or ``.parquet``.

    Raises:
        PrerequisiteError: the file cannot be written, or pyarrow is not installed.
    """
    if file.suffix == ".csv":
        _write(file, csv_lines(records))
    else:
        _check_installed("format 'parquet'", "pyarrow")
        _write(file, _parquet(records))


def load_results(path: str | PathLike[str], frame: Frame | None = None) -> Any:
    """Return the trials of the last run in the output folder ``path``, a row each.

    Args:
        path: the folder that ``--rag-output`` named.
        frame: "pandas" or "polars" for a frame, "records" for a list of dicts; None takes pandas where it is installed,
            else polars.

    Raises:
        PrerequisiteError: ``path`` holds no run, or the package is not installed; says what to do.
    """
    _check_frame(frame)
    trials = read_trials(Path(path))
    return frame_of(trials, trials.experiments, frame)


def frame_of(records: Records, experiments: Sequence[str], frame: Frame | None = None) -> Any:
    """Return records as a frame, a row each; ``experiments`` are the categories of that column, in their order.

    Raises:
        PrerequisiteError: the package is not installed; says what to do.
    """
    _check_frame(frame)
    return _MADE[frame or _usual()](records, experiments)


def _check_frame(frame: Frame | None) -> None:
    if frame is not None and frame not in _MADE:
        raise SettingsError(unknown("frame", frame, _MADE))
    if frame in ("pandas", "polars"):
        _check_installed(f"frame {frame!r}", frame, _WITHOUT)


def _usual() -> Frame:
    frames: tuple[Frame, ...] = ("pandas", "polars")
    found = next((name for name in frames if find_spec(name)), None)
    if found is None:
        raise PrerequisiteError(
            f"A frame needs pandas or polars, and neither is installed: pip install pandas. {_WITHOUT}"
        )
    return found


def _check_installed(wanted_by: str, package: str, otherwise: str = "") -> None:
    try:
        import_module(package)
    except ImportError as error:
        raise PrerequisiteError(f"{missing_package(wanted_by, error)}. {otherwise}".rstrip()) from error


def _write(file: Path, content: bytes | Iterable[bytes]) -> None:
    try:
        write_atomically(file, content)
    except OSError as error:
        raise PrerequisiteError(
            f"Cannot write {file}: {error.strerror or error}. Name a file in a folder that can be written to."
        ) from error


def _pandas(trials: Records, experiments: Sequence[str]) -> Any:
    import pandas

    types = {"text": "string", "flag": "boolean", "number": "Float64", "count": "Int64"}

    def series(values: list[Any], kind: Kind) -> Any:
        if kind == "name":
            return pandas.Categorical(values, categories=[*experiments])
        return pandas.Series(values, dtype=types.get(kind, "object"))

    return pandas.DataFrame({name: series(*found) for name, found in _by_column(trials).items()})


def _polars(trials: Records, _: Sequence[str]) -> Any:
    import polars

    types: Mapping[Kind, Any] = {
        "name": polars.Categorical,
        "text": polars.String,
        "flag": polars.Boolean,
        "number": polars.Float64,
        "count": polars.Int64,
        "names": polars.List(polars.String),
        "counts": polars.List(polars.Int64),
    }
    columns = _by_column(trials).items()
    return polars.DataFrame([polars.Series(name, values, types[kind]) for name, (values, kind) in columns])


def _records(trials: Records, _: Sequence[str]) -> list[Record]:
    return list(trials)


def _by_column(trials: Records) -> dict[str, tuple[list[Any], Kind]]:
    columns: dict[str, tuple[list[Any], Kind]] = {name: ([], kind) for name, kind in trials.columns.items()}
    for record in trials:
        for name, (values, _) in columns.items():
            values.append(record[name])
    return columns


def _parquet(trials: Records) -> bytes:
    """Return the file's bytes. It is made in memory, where a run's frame fits: Parquet's writer needs to seek."""
    import pyarrow
    import pyarrow.parquet

    types: Mapping[Kind, Any] = {
        "name": pyarrow.dictionary(pyarrow.int32(), pyarrow.string()),
        "text": pyarrow.string(),
        "flag": pyarrow.bool_(),
        "number": pyarrow.float64(),
        "count": pyarrow.int64(),
        "names": pyarrow.list_(pyarrow.string()),
        "counts": pyarrow.list_(pyarrow.int64()),
    }
    schema, sink = (
        pyarrow.schema((name, types[kind]) for name, kind in trials.columns.items()),
        pyarrow.BufferOutputStream(),
    )
    with pyarrow.parquet.ParquetWriter(sink, schema, compression="zstd") as writer:
        for group in _groups(trials):
            writer.write_table(pyarrow.Table.from_pylist(group, schema=schema))
    return bytes(sink.getvalue().to_pybytes())


def _groups(trials: Records) -> Iterator[list[Record]]:
    records = iter(trials)
    while group := list(islice(records, _GROUP)):
        yield group


_MADE: Mapping[Frame, Callable[[Records, Sequence[str]], Any]] = {
    "pandas": _pandas,
    "polars": _polars,
    "records": _records,
}
