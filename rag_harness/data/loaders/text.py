"""Loaders for plain text, Markdown, CSV and TSV."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator
from io import StringIO
from itertools import islice
from pathlib import Path

from rag_harness.core.errors import UnreadableError
from rag_harness.core.types import Document
from rag_harness.data.loaders.child_process import CELLS, Parsed
from rag_harness.data.loaders.decoding import check_kind, checked_text, decoded
from rag_harness.data.loaders.markdown_writer import MarkdownWriter, add_sheet, without_marks_of_loaders
from rag_harness.data.loaders.reading import parsed_file, read_bytes

# Loader for plain text in any charset. Text that looks like Markdown is later cut like Markdown.


def load_text(file: Path, doc_id: str) -> Document:
    """Read a text file.

    Raises:
        UnreadableError, OSError: the file cannot be read, or is not text.
    """
    return parsed_file("txt", file).document(file, doc_id)


def parse_text(data: bytes, charset: str = "") -> Parsed:
    """Return the text of ``data``. ``charset`` replaces the guess for a file that is not UTF-8."""
    check_kind(data, "text")
    found = decoded(data, named=charset)
    return Parsed(checked_text(found.text), guessed=found.guessed)


_TITLE_WITHIN = 1 << 18
"""Characters in which a title is searched for. Splitting 32 MB into lines takes half a gigabyte."""


def load_markdown(file: Path, doc_id: str) -> Document:
    """Read a page.

    Raises:
        UnicodeDecodeError, UnreadableError, OSError: the file cannot be read.
    """
    # Line ends and a byte order mark stay, so that offsets are offsets in the file.
    text = read_bytes(file).decode("utf-8")
    if "\0" in text:
        raise UnreadableError("holds NUL bytes: a binary file, or UTF-16. Save it as UTF-8")
    return Document(doc_id, text, _first_heading(text) or file.stem)


def _first_heading(text: str) -> str:
    for line in text[:_TITLE_WITHIN].removeprefix("\ufeff").splitlines():
        if line.startswith("# "):
            return line[2:].strip()
    return ""


_DELIMITERS = ",;\t|"
"""Of two that fit equally well, the first counts."""
_SAMPLE_LINES, _SAMPLE = 50, 64 << 10
_LONGEST_CELL = 1 << 20
_GOLDEN = re.compile(rb'(?:\xef\xbb\xbf)?"?query"?\s*,\s*"?expected_document_id\b', re.IGNORECASE)
"""How a golden set begins. Read as a document, it would give the answers away."""


def is_csv_document(file: Path) -> bool:
    """Return whether a CSV file is anything but a golden set."""
    try:
        with file.open("rb") as stream:
            return not _GOLDEN.match(stream.read(100))
    except OSError:
        return True  # the loader says why


def load_csv(file: Path, doc_id: str) -> Document:
    """Read a table.

    Raises:
        UnreadableError, OSError: the file cannot be read, is not text, or has too many cells.
    """
    return parsed_file("csv", file).document(file, doc_id)


def parse_csv(data: bytes, charset: str = "") -> Parsed:
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
