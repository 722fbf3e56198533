"""A run's trials for notebooks: as a frame of pandas or polars, as CSV, as Parquet. See ``trials-table.md``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from rag_harness.errors import PrerequisiteError, SettingsError, unknown
from rag_harness.files.atomic import write_atomically
from rag_harness.registry import missing_package
from rag_harness.report.flat_table import Records
from rag_harness.report.trial_columns import Kind, Record
from rag_harness.report.trial_csv import csv_lines
from rag_harness.report.trial_records import read_trials

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
