"""Writes a record as a line of CSV (RFC 4180) that a spreadsheet shows without running it."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote

from rag_harness.report.flat_table import Records
from rag_harness.shown.cells import cell

_NO_DOCUMENT = "-"
_TO_QUOTE = re.compile(r"[\s%]|^-$")


class _Echo:
    """The file object for csv's writer, whose calls then return the text."""

    def write(self, text: str) -> str:
        return text


def csv_lines(trials: Records) -> Iterator[bytes]:
    """Yield the column names and a line for each record, in UTF-8."""
    writer: Any = csv.writer(_Echo(), lineterminator="\r\n")
    yield writer.writerow([cell(name) for name in trials.columns]).encode()
    for record in trials:
        yield writer.writerow([_cell(record[name]) for name in trials.columns]).encode()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    return cell(value if isinstance(value, str) else _joined(value))


def _joined(values: Sequence[str | int | None]) -> str:
    return " ".join(_NO_DOCUMENT if value is None else _word(str(value)) for value in values)


def _word(text: str) -> str:
    """Return a text without white space. White space and ``%`` are percent-encoded, as in addresses."""
    return _TO_QUOTE.sub(lambda found: quote(found[0]) if found[0] != _NO_DOCUMENT else "%2D", text)
