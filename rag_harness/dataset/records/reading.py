"""Reads the records of a file, by the ending of its name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from rag_harness.dataset.records.csv_records import csv_records
from rag_harness.dataset.records.json_records import json_records
from rag_harness.dataset.records.parquet_records import parquet_records
from rag_harness.dataset.records.source_record import SourceRecord
from rag_harness.errors import DataError

READERS: Mapping[str, Callable[[Path], Iterator[SourceRecord]]] = {
    ".csv": csv_records,
    ".tsv": csv_records,
    ".json": json_records,
    ".jsonl": json_records,
    ".ndjson": json_records,
    ".parquet": parquet_records,
}
"""How a file is read, by its ending."""
TABLES = (".csv", ".tsv", ".parquet")
"""Endings of tables: their rows have the same columns."""


def records_in(file: Path) -> Iterator[SourceRecord]:
    """Yield the records of ``file``, in their order.

    Raises:
        DataError: the file is missing, empty or malformed, or of a kind that is not read; names file and line or row.
        PrerequisiteError: a package is missing that the file needs.
    """
    reader = READERS.get(file.suffix.lower())
    if reader is None:
        raise DataError(f"{file} ends in none of {', '.join(READERS)}, so it cannot be told what it is. Rename it.")
    yield from reader(file)


def is_table(file: Path) -> bool:
    """Return whether a file is a table, by its ending."""
    return file.suffix.lower() in TABLES
