"""Loader for PDF: the text of its pages in order, with headings and tables."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from itertools import pairwise
from math import hypot
from pathlib import Path
from typing import Any

from rag_harness.core.errors import UnreadableError
from rag_harness.core.types import Document
from rag_harness.data.loaders.child_process import OUTPUT_BYTES, PAGES, Parsed, joined_pages
from rag_harness.data.loaders.markdown_writer import OpenTable, without_marks_of_loaders
from rag_harness.data.loaders.reading import parsed_file
from rag_harness.data.loaders.text import check_kind, checked_text

_LARGER = 1.15
"""How much larger than most of the text a heading is at least."""
_LEVELS = 4
_LONGEST, _FULL_LINE = 120, 30
"""Characters of a heading at most, and of one that goes on in the next line at least."""
_MOST_OF_TEXT = 0.3
"""Share of the letters that may be in larger sizes. With more, size says nothing about headings."""
_MOST_TITLES = 5_000
_LIGATURES = str.maketrans({"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"})

Titles = Mapping[int, Mapping[str, int]]
"""By page, from 0: the squeezed titles of the outline there, with their depths, from 1."""


@dataclass(frozen=True, slots=True)
class PageLine:
    """A line, and the size of its smallest letter; 0 where that is not known. A table is one line without a size."""

    text: str
    size: float = 0.0


def lines_of(page: Any) -> list[PageLine]:
    """Return the lines of a page, as pypdf orders them. pypdf raises any error at a damaged page."""
    pieces: list[tuple[str, float]] = []

    def hear(text: str, cm: Sequence[float], tm: Sequence[float], _: object, size: float) -> None:
        if text:
            pieces.append((text, abs(size) * hypot(tm[2], tm[3]) * hypot(cm[2], cm[3])))

    text = page.extract_text(visitor_text=hear)
    if "".join(piece for piece, _ in pieces) != text:
        pieces = [(text, 0.0)]
    return list(_lines(pieces))


def cleaned(text: str) -> str:
    """Return text without NUL and lone surrogates, which fonts with damaged tables give, and without ligatures."""
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return whole.replace("\0", "").translate(_LIGATURES)


def squeezed(text: str) -> str:
    """Return text without white space, which readers of one PDF place differently."""
    return "".join(text.split())


def titles_of(reader: Any) -> Titles:
    """Return the titles of the outline; empty where the file has none, or a damaged one."""
    found: dict[int, dict[str, int]] = {}
    stack: list[tuple[Any, int]] = []
    with suppress(Exception):
        stack = [(reader.outline, 0)]
    seen = 0
    while stack and seen < _MOST_TITLES:
        each, depth = stack.pop()
        if isinstance(each, list):
            stack += [(inner, depth + 1) for inner in reversed(each)]
            continue
        seen += 1
        with suppress(Exception):
            page = reader.get_destination_page_number(each)
            if page is not None and (title := squeezed(cleaned(str(each.title)))):
                found.setdefault(page, {}).setdefault(title, depth)
    return found


def with_headings(pages: Sequence[Sequence[PageLine]], titles: Titles) -> Iterator[str]:
    """Yield the text of each page, with a mark of Markdown before each heading: by its size, or by the outline."""
    level_of = _levels(pages)
    running = _running(pages)
    for number, lines in enumerate(pages):
        made: list[str] = []
        last = 0.0
        for line in lines:
            level = 0
            if _may_be_heading(line.text) and squeezed(line.text) not in running:
                level = level_of.get(line.size) or min(6, titles.get(number, {}).get(squeezed(line.text), 0))
            if level and line.size and line.size == last and _FULL_LINE <= len(made[-1]) < _LONGEST:
                made[-1] = f"{made[-1]} {line.text.strip()}"  # a heading of two lines
            else:
                made.append(f"{'#' * level} {line.text.strip()}" if level else line.text)
            last = line.size if level else 0.0
        yield "\n".join(made).strip()


def _lines(pieces: Sequence[tuple[str, float]]) -> Iterator[PageLine]:
    line = ""
    sizes: list[float] = []
    for text, size in pieces:
        for at, part in enumerate(text.split("\n")):
            if at:
                yield PageLine(cleaned(line), min(sizes, default=0.0))
                line, sizes = "", []
            line += part
            if part.strip():
                sizes.append(round(2 * size) / 2)
    yield PageLine(cleaned(line), min(sizes, default=0.0))


def _levels(pages: Sequence[Sequence[PageLine]]) -> dict[float, int]:
    letters: Counter[float] = Counter()
    for lines in pages:
        for line in lines:
            letters[line.size] += len(squeezed(line.text))
    del letters[0.0]
    if not letters:
        return {}
    usual = letters.most_common(1)[0][0]
    larger = sorted((size for size in letters if size >= usual * _LARGER), reverse=True)
    if sum(letters[size] for size in larger) > _MOST_OF_TEXT * letters.total():
        return {}
    return {size: min(at, _LEVELS) for at, size in enumerate(larger, 1)}


def _running(pages: Sequence[Sequence[PageLine]]) -> set[str]:
    """Return lines that most pages have: they name the document, and begin nothing."""
    counts = Counter(text for lines in pages for text in {squeezed(line.text) for line in lines})
    return {text for text, count in counts.items() if count > 2 and 2 * count > len(pages)}


def _may_be_heading(text: str) -> bool:
    said = text.strip()
    whole = 0 < len(said) <= _LONGEST and "\n" not in said and not said.startswith("#")
    return whole and said[-1] not in ".,;" and sum(map(str.isalpha, said)) > 1


# Tables of a PDF: lines whose words are in columns. A PDF draws words at places, and does not mark tables.

LEAST_ROWS = 3
_LONGEST_CELLS = 40
"""Mean length of a table's cells at most; of two columns, the length of each. Columns of prose have longer ones."""
_FULL_CELL = 15
"""Characters of a cell that goes on in the next line at least."""
_SIZES = 1.15
"""How much larger than others a letter of a table is at most: headings below each other are none."""
_DRIFT, _START = 6, 2
"""Characters by which a cell may be beside the one above, and the next line of a cell beside its first."""
_GAP = 3
"""Blanks between two cells of most rows at least."""
_WIDE_GAP, _WIDE_DRIFT = 4, 24
"""Where all cells of three and more columns are so far apart, pypdf may place them so much beside each other."""
_CELL = re.compile(r"\S+(?: \S+)*")
_MARK = re.compile(r"[^\w]*|\(?(?:\d{1,3}|[a-z]|[ivx]{1,5})[.)]", re.IGNORECASE)
"""What stands before the points of a list."""

_LEADER = re.compile(r"(?:\. ?){4}")
"""The dots of a table of contents."""

Cell = tuple[int, int, str]
"""Where a text begins and ends in its line, and the text."""


def with_tables(page: Any, lines: list[PageLine]) -> list[PageLine]:
    """Return the lines of a page with each table as one line of Markdown. All else stays as it is.

    pypdf's layout shows which words are in columns. A table is taken only if its words, row by row, are lines that
    follow each other in ``lines``: neither columns of prose nor rows of several lines are mixed up.
    """
    with suppress(Exception):  # pypdf raises any error at a damaged page; its text is there already
        layout = cleaned(page.extract_text(extraction_mode="layout", layout_mode_space_vertically=False))
        for rows in tables_in(layout):
            lines = _replaced(lines, rows)
    return lines


def tables_in(layout: str) -> Iterator[list[list[str]]]:
    """Yield the rows of each table in a text whose blanks show the layout of a page."""
    table = _Columns()
    for line in [*layout.split("\n"), ""]:
        cells = [(found.start(), found.end(), found[0]) for found in _CELL.finditer(line)]
        if not table.takes(cells):
            if table.is_table():
                yield table.rows
            table = _Columns()
            table.takes(cells)


class _Columns:
    """Rows that may be a table: lines with cells below each other."""

    def __init__(self) -> None:
        self.rows: list[list[str]] = []
        self._last: list[Cell] = []
        self._lengths: list[int] = []
        self._apart = 0

    def takes(self, cells: list[Cell]) -> bool:
        """Add a line if it goes on with the table, or begins one. Return whether it does."""
        width = len(self._last)
        if not self.rows:
            return len(cells) > 1 and self._add(cells, list(range(len(cells))))
        if len(cells) == width and _are_rows(cells, self._last):
            return self._add(cells, list(range(width)))
        if len(cells) == 1:
            return self._goes_on(cells[0])
        if 1 < len(cells) < width:
            places = _places(cells, self._last)
            return bool(places) and self._add(cells, places)
        if len(self.rows) == 1 and len(cells) > width > 1 and (places := _places(self._last, cells)):
            head = dict(zip(places, self.rows.pop(), strict=True))
            self.rows.append([head.get(at, "") for at in range(len(cells))])
            return self._add(cells, list(range(len(cells))))
        return False

    def is_table(self) -> bool:
        """Return whether the lines are a table, rather than points of a list or columns of prose."""
        narrow = len(self._last) == 2
        length = max(self._lengths, default=0) if narrow else sum(self._lengths) / max(1, len(self._lengths))
        # The gaps between sentences are two blanks wide, in every line.
        apart = 2 * self._apart >= len(self.rows) >= LEAST_ROWS
        leaders = any(_LEADER.search(cell) for row in self.rows for cell in row)
        marks = any(map(_are_marks, zip(*self.rows, strict=True)))
        return apart and length <= _LONGEST_CELLS and not (marks or leaders)

    def _add(self, cells: list[Cell], places: list[int]) -> bool:
        width = max(len(self._last), len(cells))
        found = dict(zip(places, cells, strict=True))
        self.rows.append([found[at][2] if at in found else "" for at in range(width)])
        self._last = [found[at] if at in found else self._last[at] for at in range(width)]
        self._lengths += [len(text) for _, _, text in cells]
        self._apart += any(right[0] - left[1] >= _GAP for left, right in pairwise(cells))
        return True

    def _goes_on(self, cell: Cell) -> bool:
        """Add the next line of a cell that is not the first of its row."""
        for at, above in enumerate(self._last[1:], 1):
            if abs(cell[0] - above[0]) <= _START and len(self.rows[-1][at]) >= _FULL_CELL:
                self.rows[-1][at] += f" {cell[2]}"
                self._lengths.append(len(cell[2]))
                return True
        return False


def _are_marks(column: Sequence[str]) -> bool:
    """Return whether a column has nothing but bullets and numbers of points."""
    return bool(_MARK.fullmatch(column[0])) and all(_MARK.fullmatch(cell) or cell.isdigit() for cell in column)


def _are_rows(cells: Sequence[Cell], above: Sequence[Cell]) -> bool:
    """Return whether two lines of as many cells have them below each other."""
    wide = len(cells) > 2 and all(b[0] - a[1] >= _WIDE_GAP for row in (cells, above) for a, b in pairwise(row))
    drift = _WIDE_DRIFT if wide else _DRIFT if len(cells) > 2 else _START
    return all(_are_aligned(one, other, drift) for one, other in zip(cells, above, strict=True))


def _are_aligned(one: Cell, other: Cell, drift: int = _DRIFT) -> bool:
    """Return whether two cells begin, end, or have their middles below each other."""
    start, end = one[0] - other[0], one[1] - other[1]
    return min(abs(start), abs(end), abs(start + end) // 2) <= drift


def _places(few: Sequence[Cell], many: Sequence[Cell]) -> list[int]:
    """Return the column of each of ``few`` cells; none where one has no column, or several."""
    places = [[at for at, other in enumerate(many) if _are_aligned(cell, other)] for cell in few]
    found = [each[0] for each in places if len(each) == 1]
    return found if len(found) == len(few) and found == sorted(set(found)) else []


def _replaced(lines: list[PageLine], rows: Sequence[Sequence[str]]) -> list[PageLine]:
    wanted = squeezed("".join(cell for row in rows for cell in row))
    for first in range(len(lines)):
        last, rest = first, wanted
        while last < len(lines) and rest and rest.startswith(text := squeezed(lines[last].text)):
            rest, last = rest[len(text) :], last + 1
        sizes = [line.size for line in lines[first:last] if line.size]
        if not rest and squeezed(lines[first].text) and max(sizes, default=0) <= _SIZES * min(sizes, default=0):
            return [*lines[:first], PageLine(f"\n{_markdown(rows)}\n"), *lines[last:]]
    return lines


def _markdown(rows: Sequence[Sequence[str]]) -> str:
    table = OpenTable()
    for row in rows:
        for cell in row:
            table.add(cell)
        table.end_row()
    return "\n".join(table.blocks())


# Loader for PDF: the text of its pages, in order. Only files whose names begin with ``pdf`` know pypdf.

_TABLES_WITHIN = 3 << 20
"""Bytes of drawing in which tables are looked for. That takes as long as the text; all of it has 14 s."""
_NO_CIPHER = "is encrypted with AES. Save it without its password, or run: pip install cryptography"


def load(file: Path, doc_id: str) -> Document:
    """Read a PDF.

    Raises:
        UnreadableError, OSError: the file cannot be read, or is a scan without text.
    """
    return parsed_file("pdf", file).document(file, doc_id)


def parse(data: bytes) -> Parsed:
    """Return the text of ``data`` with the offset of each page, its headings and simple tables as Markdown.

    An unreadable page is empty.
    """
    reader = _opened(data)
    pages: list[list[PageLine]] = []
    unread: dict[int, str] = {}
    length = 0
    for number, page in enumerate(_pages(reader), 1):
        if isinstance(page, Exception):
            unread[number] = f"{type(page).__name__}: {page}"
        pages.append([] if isinstance(page, Exception) else page)
        length += sum(len(line.text) for line in pages[-1])
        if length > OUTPUT_BYTES:
            raise UnreadableError(f"holds more than {OUTPUT_BYTES >> 20} MB of text. Split it")
    if not any(line.text.strip() for lines in pages for line in lines):
        why = next(iter(unread.values()), "a scan? Recognise its text first")
        raise UnreadableError(f"no text in its {len(pages)} pages: {why}"[:300])
    looked = _find_tables(reader, pages)
    text, starts = joined_pages(list(with_headings(pages, titles_of(reader))))
    lacks = () if looked == len(pages) else (f"tables: looked for on pages 1 to {looked} of {len(pages)}",)
    checked = checked_text(text, without_marks_of_loaders(text))
    return Parsed(checked, _title(reader), starts, unread_pages=tuple(unread), unread_parts=lacks)


def _find_tables(reader: Any, pages: list[list[PageLine]]) -> int:
    """Write the tables of the first pages as Markdown; return how many pages were looked at."""
    size = 0
    for number, lines in enumerate(pages):
        with suppress(Exception):  # a page without content, or a damaged one
            size += len(reader.pages[number].get_contents().get_data())
        if size > _TABLES_WITHIN:
            return number
        if len(lines) >= LEAST_ROWS:
            pages[number] = with_tables(reader.pages[number], lines)
    return len(pages)


def _opened(data: bytes) -> Any:
    from pypdf import PdfReader
    from pypdf.errors import DependencyError, PdfReadError

    try:
        reader = PdfReader(BytesIO(data), strict=False)
        if reader.is_encrypted and not reader.decrypt(""):
            raise UnreadableError("is encrypted. Save it without its password")
    except DependencyError:
        raise UnreadableError(_NO_CIPHER) from None
    except PdfReadError:
        if b"%PDF-" in data:
            raise
        check_kind(data, "a PDF")
        raise UnreadableError("is not a PDF. Remove it, or save it again") from None
    count = len(reader.pages)
    if not count:
        raise UnreadableError("has no page. Remove it, or save it again")
    if count > PAGES:
        raise UnreadableError(f"has {count} pages, more than {PAGES}. Split it")
    return reader


def _pages(reader: Any) -> Iterator[list[PageLine] | Exception]:
    from pypdf.errors import DependencyError

    for number in range(len(reader.pages)):
        try:
            yield lines_of(reader.pages[number])
        except MemoryError:
            raise
        except DependencyError:  # the next pages need it, too
            raise UnreadableError(_NO_CIPHER) from None
        except Exception as error:  # pypdf raises any error at a damaged page; the other pages may be fine
            yield error


def _title(reader: Any) -> str:
    try:
        return " ".join(str(reader.metadata.title or "").split())[:300] if reader.metadata else ""
    except Exception:  # any part of the file may be damaged
        return ""
