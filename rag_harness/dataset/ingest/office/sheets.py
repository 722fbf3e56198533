"""Loader for xlsx: its sheets as tables. A sheet is a page; hidden sheets are left out and counted."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

from rag_harness.dataset.ingest.file_reading import parsed_file
from rag_harness.dataset.ingest.markdown_blocks import add_heading, add_sheet, without_marks_of_loaders
from rag_harness.dataset.ingest.markdown_writer import MarkdownWriter
from rag_harness.dataset.ingest.office.package import OfficePackage, below
from rag_harness.dataset.ingest.office.sheet_cells import SheetMarks, marks_of, shown_value
from rag_harness.dataset.ingest.parsed import Parsed, joined_pages
from rag_harness.dataset.ingest.process_limits import CELLS
from rag_harness.dataset.ingest.quality import checked_text
from rag_harness.errors import UnreadableError
from rag_harness.registry import missing_package
from rag_harness.types import Document


def load(file: Path, doc_id: str) -> Document:
    """Read a workbook.

    Raises:
        UnreadableError, OSError: the file cannot be read, or the package that reads it is not installed.
    """
    return parsed_file("xlsx", file).document(file, doc_id)


def parse(data: bytes) -> Parsed:
    """Return the sheets with the values that were there when the file was saved; no formula is computed."""
    package = OfficePackage(data, "xlsx")
    sheets = list(_sheets(package))
    marks: dict[str, SheetMarks] = {}
    for name, part, _ in sheets:
        marks[name] = marks_of(package.pieces(part), CELLS - sum(each.cells for each in marks.values()))
    try:
        from openpyxl import load_workbook
    except ImportError as error:
        raise UnreadableError(missing_package("loader 'xlsx'", error)) from None
    book = load_workbook(BytesIO(data), read_only=True, data_only=True, keep_links=False)
    texts, hidden = [], 0
    for name, _, seen in sheets:
        text = _text(name, book[name], marks[name]) if name in book.sheetnames and marks[name].cells else ""
        texts.append(text if seen else "")
        hidden += 0 if seen else sum(map(str.isalnum, text))
    whole, starts = joined_pages(texts)
    if not whole.strip():
        raise UnreadableError(f"no value in its {len(sheets)} sheets. Remove it, or fill it")
    lacks = tuple(_lack(name, each.without_value) for name, each in marks.items() if each.without_value)
    checked = checked_text(whole, without_marks_of_loaders(whole))
    return Parsed(checked, package.title(), starts, hidden, unread_parts=lacks)


def _sheets(package: OfficePackage) -> Iterator[tuple[str, str, bool]]:
    """Yield name and part of each sheet with cells, in order, and whether a reader sees it."""
    main = package.main()
    targets = package.targets(main)
    for each in below(package.xml(main), "sheet"):
        relation = next((value for key, value in each.items() if key.endswith("}id")), "")
        part, kind = targets.get(relation, ("", ""))
        if kind == "worksheet":
            yield each.get("name", ""), part, each.get("state", "visible") == "visible"


def _lack(name: str, count: int) -> str:
    what = "a formula has no stored value" if count == 1 else f"{count:,} formulas have no stored value"
    return f"sheet {name}: {what}. Open and save the file in a program that computes them"


def _text(name: str, sheet: Any, marks: SheetMarks) -> str:
    sheet.reset_dimensions()  # what the file says of its size may be a lie of a billion cells
    out = MarkdownWriter()
    add_heading(out, 2, name)
    block: list[list[str]] = []
    for number, row in enumerate(sheet.iter_rows(), 1):
        cells = [shown_value(cell.value, cell.number_format) if cell.value is not None else "" for cell in row]
        if any(cells):
            block.append(marks.filled(number, cells))
        elif block:
            add_sheet(out, block)
            block = []
    add_sheet(out, block)
    return out.text().strip()
