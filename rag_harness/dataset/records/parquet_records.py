"""Records of a Parquet file; the only file here that knows pyarrow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rag_harness.dataset.records.source_record import SourceRecord
from rag_harness.dataset.records.source_text import check_there
from rag_harness.errors import DataError, PrerequisiteError
from rag_harness.registry import missing_package

_READ = 256
"""Rows to read at a time."""


def parquet_records(file: Path) -> Iterator[SourceRecord]:
    """Yield a record for each row.

    Raises:
        DataError: the file is missing, empty or no Parquet.
        PrerequisiteError: pyarrow is not installed; names the extra.
    """
    check_there(file)
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise PrerequisiteError(missing_package(f"Parquet file {file}", error)) from None
    number = 0
    try:
        with pyarrow.parquet.ParquetFile(file) as opened:
            for batch in opened.iter_batches(batch_size=_READ, use_threads=False):
                for row in batch.to_pylist():
                    number += 1
                    yield SourceRecord(f"{file}, row {number}", row, number)
    except (pyarrow.ArrowException, OSError) as error:
        said = " ".join(str(error).split())
        raise DataError(f"{file} cannot be read as Parquet: {said} Was it cut short?") from None
