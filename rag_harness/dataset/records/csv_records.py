"""Records of a CSV file: with commas, semicolons or tabs, a byte order mark or none, as spreadsheets write them."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from rag_harness.dataset.records.field_names import field_meant
from rag_harness.dataset.records.source_record import SourceRecord
from rag_harness.dataset.records.source_text import check_there, not_utf8
from rag_harness.errors import DataError

_DELIMITERS = ",;\t"
_LONGEST_CELL = 16 << 20
_QUOTE = "Put cells with separators in quotes, and double the quotes inside."


def csv_records(file: Path) -> Iterator[SourceRecord]:
    """Yield a record for each row that is not blank. The file is read row by row.

    Raises:
        DataError: the file is missing, empty, not UTF-8 or no CSV; the header lacks a name or has one twice, or there
            are two; a row has more or fewer cells than the header.
    """
    check_there(file)
    # A cell may hold a whole list of contexts; the module's own limit is 128 kB. It is one for the whole process.
    csv.field_size_limit(max(_LONGEST_CELL, csv.field_size_limit()))
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            rows = _rows(file, stream)
            line, header = next(rows, (1, []))
            names = _checked(header, f"{file}:{line}")
            for number, (line, row) in enumerate(rows):
                if _is_header(row, names, is_first=not number):
                    raise DataError(f"{file}:{line}: a second header: {', '.join(row)}. Remove one of the two.")
                if len(row) != len(header):
                    raise DataError(f"{file}:{line}: {len(row)} cells under a header of {len(header)}. {_QUOTE}")
                values = {name: cell or None for name, cell in zip(names, row, strict=True) if name}
                yield SourceRecord(f"{file}:{line}", values, line)
    except UnicodeDecodeError:
        raise not_utf8(file, _first_undecoded(file)) from None


def _rows(file: Path, stream: IO[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not blank, each with the number of its first line."""
    begin, delimiter = 1, ","
    head = stream.readline()
    if head.lower().startswith("sep=") and len(head.strip()) == len("sep=;"):  # Excel's own line about the separator
        begin, delimiter = 2, head.strip()[-1]
    else:
        delimiter = max(_DELIMITERS, key=_outside_quotes(head).count)
        stream.seek(0)
    reader = csv.reader(stream, delimiter=delimiter, strict=True)
    line = begin
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                yield line, row
            line = begin + reader.line_num
    except csv.Error as error:
        raise DataError(f"{file}:{line}: no CSV: {error}. {_QUOTE}") from None


def _outside_quotes(text: str) -> str:
    return "".join(text.split('"')[::2])


def _is_header(row: Sequence[str], names: Sequence[str], *, is_first: bool) -> bool:
    """Return whether a row names columns: those of the header again, or, as the first row, a question and its gold."""
    if row[0].strip() == names[0] and [cell.strip() for cell in row] == names:
        return True
    if not is_first:
        return False
    meant = {field_meant(cell) for cell in row} - {""}
    return len(meant) > 1 and "query" in meant


def _checked(header: Sequence[str], where: str) -> list[str]:
    """Return the names of the columns. The first may have none: pandas writes the index of a frame there."""
    names = [name.strip() for name in header]
    unnamed = [place for place, name in enumerate(names, 1) if not name and place > 1]
    if unnamed:
        raise DataError(f"{where}: column {unnamed[0]} has no name. Name it, or remove it.")
    twice = [name for name, count in Counter(filter(None, names)).items() if count > 1]
    if twice:
        raise DataError(f"{where}: column {twice[0]!r} stands there twice. Rename one.")
    if not any(names):
        raise DataError(f"{where}: no header. The first row names the columns.")
    return names


def _first_undecoded(file: Path) -> int:
    with file.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            try:
                line.decode("utf-8-sig")
            except UnicodeDecodeError:
                return number
    return 1
