"""Tables of a PDF: lines whose words stand in columns. A PDF draws words at places, and says nothing of tables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any

from rag_harness.dataset.ingest.pdf_lines import PageLine, cleaned, squeezed
from rag_harness.dataset.ingest.table_rows import OpenTable

LEAST_ROWS = 3
_LONGEST_CELLS = 40
"""Mean length of a table's cells at most; of two columns, the length of each. Columns of prose have longer ones."""
_FULL_CELL = 15
"""Characters of a cell that goes on in the next line at least."""
_SIZES = 1.15
"""How much larger than others a letter of a table is at most: headings below each other are none."""
_DRIFT, _START = 6, 2
"""Characters by which a cell may stand beside the one above, and the next line of a cell beside its first."""
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

    pypdf's layout shows which words stand in columns. A table is taken only if its words, row by row, are lines that
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
