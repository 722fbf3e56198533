"""Loader for CSV and TSV: one table, whose first row is its head."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator
from io import StringIO
from itertools import islice
from pathlib import Path

from rag_harness.dataset.ingest.charset import decoded
from rag_harness.dataset.ingest.file_reading import parsed_file
from rag_harness.dataset.ingest.markdown_blocks import add_sheet, without_marks_of_loaders
from rag_harness.dataset.ingest.markdown_writer import MarkdownWriter
from rag_harness.dataset.ingest.other_kinds import check_kind
from rag_harness.dataset.ingest.parsed import Parsed
from rag_harness.dataset.ingest.process_limits import CELLS
from rag_harness.dataset.ingest.quality import checked_text
from rag_harness.errors import UnreadableError
from rag_harness.types import Document

_DELIMITERS = ",;\t|"
"""Of two that fit equally well, the first counts."""
_SAMPLE_LINES, _SAMPLE = 50, 64 << 10
_LONGEST_CELL = 1 << 20
_GOLDEN = re.compile(rb'(?:\xef\xbb\xbf)?"?query"?\s*,\s*"?expected_document_id\b', re.IGNORECASE)
"""How a golden set begins. Read as a document, it would give the answers away."""


def is_document(file: Path) -> bool:
    """Return whether a CSV file is anything but a golden set."""
    try:
        with file.open("rb") as stream:
            return not _GOLDEN.match(stream.read(100))
    except OSError:
        return True  # the loader says why


def load(file: Path, doc_id: str) -> Document:
    """Read a table.

    Raises:
        UnreadableError, OSError: the file cannot be read, is no text, or has too many cells.
    """
    return parsed_file("csv", file).document(file, doc_id)


def parse(data: bytes, charset: str = "") -> Parsed:
    """Return the rows of ``data`` as a Markdown table. ``charset`` replaces the guess for a file that is not UTF-8."""
    check_kind(data, "CSV")
    found = decoded(data, named=charset)
    out = MarkdownWriter()
    add_sheet(out, list(_rows(found.text)))
    text = out.text()
    return Parsed(checked_text(text, without_marks_of_loaders(text)), guessed=found.guessed)


def _rows(text: str) -> Iterator[list[str]]:
    csv.field_size_limit(_LONGEST_CELL)
    delimiter, text = _delimiter(text)
    cells = 0
    try:
        for row in csv.reader(StringIO(text, newline=""), delimiter=delimiter):
            cells += len(row)
            if cells > CELLS:
                raise UnreadableError(f"has more than {CELLS:,} cells. Split it")
            yield [cell.strip() for cell in row]
    except csv.Error as error:
        raise UnreadableError(f"cannot be read as CSV: {error}. Save it anew") from None


def _delimiter(text: str) -> tuple[str, str]:
    """Return what separates the cells, and the text without Excel's own line about that."""
    said, line_end, rest = text.partition("\n")
    if said.lower().startswith("sep=") and len(said.strip()) == len("sep=;"):
        return said.strip()[-1], rest if line_end else ""
    sample = text[:_SAMPLE]
    return max(_DELIMITERS, key=lambda each: _fit(sample, each)), text


def _fit(sample: str, delimiter: str) -> tuple[float, int]:
    """Return the share of rows with the usual number of cells, and this number; zeros where that is one cell."""
    try:
        rows = [len(row) for row in islice(csv.reader(StringIO(sample), delimiter=delimiter), _SAMPLE_LINES) if row]
    except csv.Error:
        return 0.0, 0
    if not rows:
        return 0.0, 0
    width, count = Counter(rows).most_common(1)[0]
    return (count / len(rows), width) if width > 1 else (0.0, 0)
