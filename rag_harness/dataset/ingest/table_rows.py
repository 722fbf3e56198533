"""Rows of a Markdown table, made from cells."""

from __future__ import annotations

from dataclasses import dataclass, field

MOST_SPANNED = 50
"""Most empty cells that are added for a cell over several columns."""
_MOST_ROWS = 1_000
_LONGEST_REPEATED = 200
"""Characters of a cell over several rows that are repeated in each of them. A longer one stands in the first alone."""


@dataclass
class OpenTable:
    """One table while it is read. A table with ``layout`` arranges the page, and its cells are blocks."""

    layout: bool = False
    in_cell: bool = False
    rows: list[list[str]] = field(default_factory=list)
    _row: list[str] = field(default_factory=list)
    _own: bool = False
    _held: dict[int, tuple[str, int]] = field(default_factory=dict)

    def add(self, text: str, spans: str = "", rows: str = "") -> None:
        """Add a cell to the current row. Its text stands in each of its ``rows``, since rows are read one by one."""
        self._fill()
        more = min(max(0, _number(spans) - 1), MOST_SPANNED)
        cells = [" ".join(text.split()), *[""] * more]
        below = min(_number(rows) - 1, _MOST_ROWS)
        if below > 0 and not self.layout:
            first = cells[0] if len(cells[0]) <= _LONGEST_REPEATED else ""
            held = enumerate([first, *cells[1:]], len(self._row))
            self._held |= {at: (cell, below + 1) for at, cell in held}
        self._own = self._own or any(cells)
        self._row += cells

    def end_row(self) -> None:
        """End the current row. A row without text of its own is dropped."""
        if self._row:
            last = max(self._held, default=-1)
            while len(self._row) <= last:
                self._row.append(self._held.get(len(self._row), ("", 0))[0])
            self._held = {at: (text, left - 1) for at, (text, left) in self._held.items() if left > 1}
        if self._own:
            self.rows.append(self._row)
        self._row, self._own = [], False

    def _fill(self) -> None:
        """Add the cells that begin in a row above."""
        while len(self._row) in self._held:
            self._row.append(self._held[len(self._row)][0])

    def blocks(self) -> list[str]:
        """Return the table as one block. A layout table, or one with a single column, gives one block for each cell."""
        self.end_row()
        rows, self.rows = self.rows, []
        widest = max(map(len, rows), default=0)
        if self.layout or widest < 2:
            return [cell for row in rows for cell in row if cell]
        head, *body = rows
        width = len(head)
        lines = [_line(head, width), _line(["---"] * width, width), *(_line(row, width) for row in body)]
        return ["\n".join(lines)]


def _number(said: str) -> int:
    return int(said) if said.isascii() and said.isdigit() and len(said) < 5 else 1


def _line(cells: list[str], width: int) -> str:
    padded = [*(cell.replace("|", "\\|") for cell in cells), *[""] * (width - len(cells))]
    return f"| {' | '.join(padded)} |"
