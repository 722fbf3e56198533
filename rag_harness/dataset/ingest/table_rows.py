"""Rows of a Markdown table, made from cells."""

from __future__ import annotations

from dataclasses import dataclass, field

MOST_SPANNED = 50
"""Most empty cells that are added for a cell over several columns."""


@dataclass
class OpenTable:
    """One table while it is read. A table with ``layout`` arranges the page, and its cells are blocks."""

    layout: bool = False
    in_cell: bool = False
    rows: list[list[str]] = field(default_factory=list)
    _row: list[str] = field(default_factory=list)

    def add(self, text: str, spans: str = "") -> None:
        """Add a cell to the current row."""
        more = min(int(spans) - 1, MOST_SPANNED) if spans.isascii() and spans.isdigit() and len(spans) < 5 else 0
        self._row += [" ".join(text.split()), *[""] * more]

    def end_row(self) -> None:
        """End the current row. A row without text is dropped."""
        if any(self._row):
            self.rows.append(self._row)
        self._row = []

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


def _line(cells: list[str], width: int) -> str:
    padded = [*(cell.replace("|", "\\|") for cell in cells), *[""] * (width - len(cells))]
    return f"| {' | '.join(padded)} |"
