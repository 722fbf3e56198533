"""Cells -> the rows of a Markdown table."""

from __future__ import annotations

from dataclasses import dataclass, field

MOST_SPANNED = 50
"""Empty cells that a cell which spans columns stands for."""


@dataclass
class Table:
    """One table as it is read. ``layout`` is one that arranges a page: its cells are blocks, not cells."""

    layout: bool = False
    in_cell: bool = False
    rows: list[list[str]] = field(default_factory=list)
    _row: list[str] = field(default_factory=list)

    def add(self, text: str, spans: str = "") -> None:
        """Add a cell to the row that is read."""
        more = min(int(spans) - 1, MOST_SPANNED) if spans.isascii() and spans.isdigit() and len(spans) < 5 else 0
        self._row += [" ".join(text.split()), *[""] * more]

    def end_row(self) -> None:
        """End the row that is read; a row without text is none."""
        if any(self._row):
            self.rows.append(self._row)
        self._row = []

    def blocks(self) -> list[str]:
        """Return the table as one block; as a block a cell where it has one column alone or is for layout."""
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
