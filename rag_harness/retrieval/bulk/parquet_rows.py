"""Windows of documents from rows of Parquet files. Columns: id, text; optional: title, metadata."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from rag_harness.errors import DataError
from rag_harness.retrieval.bulk.arrow_files import FilePlace
from rag_harness.retrieval.bulk.bulk_messages import DocumentWindow
from rag_harness.types import Document

ROWS, CHARACTERS = 512, 2_000_000
"""Limits of a window: rows, and characters after which it gets no more rows. A window is of one file."""
_COLUMNS = ("id", "text", "title", "metadata")
_READ = 64
"""Rows to read at a time."""
_BUFFER = 1 << 20


@dataclass(frozen=True)
class ParquetTable:
    """A Parquet file of documents whose columns were checked.

    Attributes:
        rows: number of rows.
        columns: the columns to read.
    """

    place: FilePlace
    rows: int
    columns: Sequence[str]


def looked_at(places: Sequence[FilePlace]) -> list[ParquetTable]:
    """Return the files after checking their columns and all ids.

    Raises:
        DataError: a file is no Parquet, or a column is missing or has the wrong type; or two rows have the same id.
    """
    import numpy as np

    tables, ids = [], []
    for place in places:
        file = _opened(place)
        tables.append(_table(place, file))
        ids.append(np.fromiter(map(hash, _ids(place, file)), np.int64))
    hashes = np.sort(np.concatenate(ids)) if ids else np.empty(0, np.int64)
    twice = hashes[1:][hashes[1:] == hashes[:-1]]
    if len(twice):
        _name_twice(tables, {int(each) for each in twice})
    return tables


def windows(tables: Sequence[ParquetTable]) -> Iterator[DocumentWindow]:
    """Yield the rows of all files in order, in windows. Memory holds one window."""
    numbers = count()
    for table in tables:
        for rows in _grouped(_rows(table)):
            documents = [each for each in rows if isinstance(each, Document)]
            yield DocumentWindow(next(numbers), (), documents, [each for each in rows if isinstance(each, str)])


def _table(place: FilePlace, file: Any) -> ParquetTable:
    import pyarrow.types as kinds

    fields = {field.name: field.type for field in file.schema_arrow}
    missing = [name for name in ("id", "text") if name not in fields]
    if missing:
        raise DataError(
            f"{place.said} has no column {' and no column '.join(missing)}; it has {', '.join(fields) or 'none'}. "
            f"Documents are rows with id and text, and title and metadata where there are some: rename them."
        )
    for name in {"id", "text", "title"} & fields.keys():
        kind = fields[name].value_type if kinds.is_dictionary(fields[name]) else fields[name]
        if not (_is_text(kind) or (name == "id" and kinds.is_integer(kind))):
            raise DataError(f"{place.said}: column {name} is {kind}, not text. Cast it to string.")
    if "metadata" in fields and not _is_mapping(fields["metadata"]):
        raise DataError(
            f"{place.said}: column metadata is {fields['metadata']}. Make it a struct, a map, or JSON as text."
        )
    return ParquetTable(place, file.metadata.num_rows, [name for name in _COLUMNS if name in fields])


def _is_text(kind: Any) -> bool:
    import pyarrow.types as kinds

    return bool(kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_string_view(kind))


def _is_mapping(kind: Any) -> bool:
    import pyarrow.types as kinds

    return _is_text(kind) or kinds.is_struct(kind) or kinds.is_map(kind)


def _opened(place: FilePlace) -> Any:
    import pyarrow
    import pyarrow.parquet

    try:
        # A buffer, so that memory never holds a whole column of a row group.
        return pyarrow.parquet.ParquetFile(place.open(), buffer_size=_BUFFER, pre_buffer=False)
    except (pyarrow.ArrowInvalid, OSError) as error:
        raise DataError(f"{place.said} cannot be read as Parquet: {error}. Was it cut short?") from error


def _batches(place: FilePlace, file: Any, columns: Sequence[str], size: int) -> Iterator[Any]:
    import pyarrow

    try:
        yield from file.iter_batches(batch_size=size, columns=list(columns), use_threads=False)
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"{place.said} is damaged: {' '.join(str(error).split())} Write it again.") from error


def _ids(place: FilePlace, file: Any) -> Iterator[str]:
    for batch in _batches(place, file, ["id"], 1 << 16):
        yield from (str(each) for each in batch.column(0).to_pylist() if each is not None)


def _name_twice(tables: Sequence[ParquetTable], hashes: set[int]) -> None:
    places: dict[str, list[str]] = {}
    for table in tables:
        for doc_id in _ids(table.place, _opened(table.place)):
            if hash(doc_id) in hashes:
                places.setdefault(doc_id, []).append(table.place.said)
    twice = {doc_id: files for doc_id, files in places.items() if len(files) > 1}
    if twice:
        doc_id, files = next(iter(twice.items()))
        where = ", ".join(f"{number} in {said}" for said, number in Counter(files).items())
        raise DataError(f"{len(twice)} ids stand in several rows, e.g. {doc_id!r}: {where}. Give each row its own.")


def _rows(table: ParquetTable) -> Iterator[Document | str]:
    file = _opened(table.place)
    number = 0
    for batch in _batches(table.place, file, table.columns, _READ):
        for row in batch.to_pylist(maps_as_pydicts="lossy"):
            number += 1
            yield _document(row, f"{table.place.said}, row {number}")


def _document(row: Mapping[str, Any], where: str) -> Document | str:
    """Return the document of a row, or why the row is none."""
    if row["id"] is None or row["text"] is None:
        return f"{where}: {'id' if row['id'] is None else 'text'} is null."
    try:
        metadata = _metadata(row.get("metadata"))
    except ValueError as error:
        return f"{where}: metadata is no JSON object ({error})."
    doc_id = str(row["id"])
    return Document(doc_id, row["text"], row.get("title") or str(metadata.get("title") or doc_id), metadata)


def _metadata(value: Any) -> dict[str, Any]:
    """Return the metadata of a document as plain JSON. Dates and similar values become text; nulls are left out."""
    if isinstance(value, str):
        value = json.loads(value) if value.strip() else {}
        if not isinstance(value, Mapping):
            raise ValueError(f"it is a {type(value).__name__}")
    plain = json.loads(json.dumps(value or {}, default=str))
    return {name: each for name, each in plain.items() if each is not None}


def _grouped(rows: Iterator[Document | str]) -> Iterator[list[Document | str]]:
    group: list[Document | str] = []
    size = 0
    for row in rows:
        group.append(row)
        size += len(row.text) if isinstance(row, Document) else 0
        if len(group) == ROWS or size >= CHARACTERS:
            yield group
            group, size = [], 0
    if group:
        yield group
