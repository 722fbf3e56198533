"""Writer of Markdown for loaders: elements, headings, paragraphs, lists and tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

MOST_SPANNED = 50
"""Most empty cells that are added for a cell over several columns."""
_MOST_ROWS = 1_000
_LONGEST_REPEATED = 200
"""Characters of a cell over several rows that are repeated in each of them. A longer one is in the first alone."""


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
        """Add a cell to the current row. Its text is repeated in each of its ``rows``: rows are read one by one."""
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


# Writer of Markdown from the beginnings and ends of a page's elements. Either may lack the other.

DEEPEST_LIST = 8
"""Most levels of lists and quotes. Deeper ones are written at this level."""
LONGEST_ADDRESS = 500

_BLANK = re.compile(r"\s+")
# Plain text that Markdown would read as a heading, list, quote, fence, table, rule or HTML.
_BEGINS = re.compile(r"(?=(?:#{1,6}|[-+*])(?:\s|$)|>|<|\||`{3}|~{3}|=+\s*$|(?:[-*_]\s*){3,}$)")
_NUMBERED = re.compile(r"(\d{1,9})([.)](?:\s|$))")
_TICKS = re.compile(r"`{3,}")
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*):", re.IGNORECASE)
_ADDRESS = str.maketrans({" ": "%20", "(": "%28", ")": "%29", "<": "%3C", ">": "%3E", "\n": "", "\t": ""})


@dataclass
class _List:
    number: int | None

    def marker(self) -> str:
        if self.number is None:
            return "- "
        self.number += 1
        return f"{self.number - 1}. "


@dataclass
class _Inside:
    """A quote or a list item around the current block. Only the first block of an item gets the marker."""

    marker: str
    quote: bool = False
    used: bool = False

    def prefix(self) -> str:
        return "> " if self.quote else " " * len(self.marker) if self.used else self.marker


class MarkdownWriter:
    """Collects blocks in order. White space becomes one blank, except in code."""

    def __init__(self) -> None:
        self._blocks: list[tuple[str, bool]] = []
        self._inline: list[str] = []
        self._marks: dict[str, tuple[list[str], int, str]] = {}
        self._heading = 0
        self._code: list[str] | None = None
        self._lists: list[_List] = []
        self._inside: list[_Inside] = []
        self._tables: list[OpenTable] = []

    def text(self) -> str:
        """End all that is open and return the whole text."""
        self.end_code()
        while self._tables:
            self.end_table()
        self.end_block()
        parts = [
            part
            for (block, item), (_, before) in zip(self._blocks, [("", False), *self._blocks], strict=False)
            for part in ("\n" if item and before else "\n\n", block)
        ]
        return "".join(parts[1:]) + "\n" if parts else ""

    def write(self, text: str) -> None:
        """Add text to the current block."""
        if self._code is not None:
            self._code.append(text)
        else:
            self._inline.append(_BLANK.sub(" ", text))

    def line_break(self) -> None:
        """Begin a new line."""
        if self._code is not None:
            self._code.append("\n")
        else:
            self._inline.append(" " if self._cell else "\n")

    def rule(self) -> None:
        """Add a rule between blocks. It has no hyphens, because these would begin front matter at the top of a page."""
        self.end_block()
        if not self._cell:
            self.add_block("* * *")

    def end_block(self) -> None:
        """End the current block, if there is one. In a table cell this is a blank."""
        if self._code is not None:
            return
        if self._cell:
            self._inline.append(" ")
            return
        lines = [" ".join(line.split()) for line in "".join(self._inline).split("\n")]
        self._inline = []
        block = " ".join(filter(None, lines)) if self._heading else "\n".join(map(_escaped, filter(None, lines)))
        if block:
            self.add_block(f"{'#' * self._heading} {block}" if self._heading else block)

    def begin_heading(self, level: int) -> None:
        """Begin a heading. A table with a heading is for layout."""
        self._to_layout()
        self.end_block()
        self._heading = level

    def end_heading(self) -> None:
        """End the heading."""
        self.end_block()
        self._heading = 0

    def begin_list(self, numbered: bool, start: str) -> None:
        """Begin a list."""
        self.end_block()
        first = int(start) if start.isascii() and start.isdigit() and len(start) < 6 else 1
        self._lists.append(_List(first if numbered else None))

    def end_list(self) -> None:
        """End a list."""
        self.end_block()
        del self._lists[-1:]

    def begin_item(self) -> None:
        """Begin a list item, also outside of a list."""
        self.end_block()
        self._inside.append(_Inside(self._lists[-1].marker() if self._lists else "- "))

    def begin_quote(self) -> None:
        """Begin a quote."""
        self.end_block()
        self._inside.append(_Inside("", quote=True))

    def end_inside(self, quote: bool) -> None:
        """End the open quote or list item."""
        self.end_block()
        if self._inside and self._inside[-1].quote == quote:
            self._inside.pop()

    def begin_code(self) -> None:
        """Begin a code block, which keeps blanks and lines. In a cell it is plain text."""
        self.end_block()
        if not self._cell:
            self._code = self._code or []

    def end_code(self) -> None:
        """End the code block."""
        code = "".join(self._code or []).replace("\r\n", "\n").replace("\r", "\n")
        self._code = None
        code = code.removeprefix("\n").rstrip()
        if code.strip():
            fence = "`" * max(3, 1 + max(map(len, _TICKS.findall(code)), default=0))
            self.add_block(f"{fence}\n{code}\n{fence}")

    def begin_mark(self, kind: str, value: str = "") -> None:
        """Begin a link to ``value``, or inline code."""
        if self._code is None:
            self._marks[kind] = (self._inline, len(self._inline), value)

    def end_mark(self, kind: str) -> None:
        """End a link or inline code. If a block has ended in between, it stays plain text."""
        inline, start, value = self._marks.pop(kind, ([], 0, ""))
        text = "".join(inline[start:])
        if inline is not self._inline or not text.strip() or "\n" in text:
            return
        marked = f"`{text.strip()}`" if kind == "code" and "`" not in text else text
        address = _address(value)
        self._inline[start:] = [f"[{text.strip()}]({address})" if kind == "link" and address else marked]

    def begin_table(self) -> None:
        """Begin a table. A table that contains another is for layout."""
        self._to_layout()
        self.end_block()
        self._tables.append(OpenTable())

    def end_table(self) -> None:
        """End the innermost table."""
        if not self._tables:
            return
        self.end_cell()
        for block in self._tables.pop().blocks():
            self.add_block(block)

    def end_row(self) -> None:
        """End the current row and begin another."""
        self.end_cell()
        if self._tables:
            self._tables[-1].end_row()

    def begin_cell(self, spans: str, rows: str) -> None:
        """Begin a cell over so many columns and rows, which are numbers or empty."""
        self.end_cell()
        self.end_block()
        if self._tables and not self._tables[-1].layout:
            self._tables[-1].in_cell = True
            self._marks["cell"] = (self._inline, 0, f"{spans},{rows}")

    def end_cell(self) -> None:
        """End the current cell. In a layout table it becomes a block."""
        if not self._cell:
            self.end_block()
            return
        spans, _, rows = self._marks.pop("cell", ([], 0, ""))[2].partition(",")
        self._tables[-1].add("".join(self._inline), spans, rows)
        self._tables[-1].in_cell = False
        self._inline = []

    @property
    def _cell(self) -> bool:
        return bool(self._tables) and self._tables[-1].in_cell

    def _to_layout(self) -> None:
        """Treat a table as layout: its cells so far become blocks."""
        if not self._cell:
            return
        table = self._tables[-1]
        table.layout, table.in_cell = True, False
        for block in table.blocks():
            self.add_block(block)

    def add_block(self, block: str) -> None:
        """Add a block that is Markdown already, after all that has ended."""
        shown = self._inside[:DEEPEST_LIST]
        item = bool(shown) and not shown[-1].quote and not shown[-1].used
        first = "".join(each.prefix() for each in shown)
        for each in shown:
            each.used = True
        rest = "".join(each.prefix() for each in shown)
        head, *lines = block.split("\n")
        self._blocks.append(("\n".join([first + head, *((rest + line).rstrip() for line in lines)]), item))


def _escaped(line: str) -> str:
    plain = _NUMBERED.match(line)
    if plain:
        return f"{plain[1]}\\{line[plain.end(1) :]}"
    return f"\\{line}" if _BEGINS.match(line) else line


def _address(value: str) -> str:
    address = value.strip().translate(_ADDRESS)
    scheme = _SCHEME.match(address)
    if not address or address.startswith("#") or len(address) > LONGEST_ADDRESS or not address.isprintable():
        return ""
    return address if scheme is None or scheme[1].lower() in ("http", "https", "mailto") else ""


_HEADING = re.compile(r"#{1,6}(?= )")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
# The writer removes blanks and brackets from addresses.
_MARKS = re.compile(r"(?<=\])\([^()\s]+\)|^\|(?: --- \|)+$|\|", re.MULTILINE)


def add_heading(out: MarkdownWriter, level: int, text: str) -> None:
    """Add a heading; an empty one is left out."""
    out.begin_heading(level)
    out.write(text)
    out.end_heading()


def add_paragraph(out: MarkdownWriter, *lines: str) -> None:
    """Add a paragraph of lines; empty lines are left out."""
    out.end_block()
    for line in filter(None, lines):
        out.write(line)
        out.line_break()
    out.end_block()


def add_table(out: MarkdownWriter, rows: Iterable[Sequence[str]]) -> None:
    """Add a table whose first row is its head. All rows get the width of the widest; one column is paragraphs."""
    kept = [row for row in rows if any(row)]
    width = max(map(len, kept), default=0)
    if width < 2:
        for row in kept:
            add_paragraph(out, *row)
        return
    out.end_block()
    made = OpenTable(rows=[[" ".join(cell.split()) for cell in (*row, *[""] * (width - len(row)))] for row in kept])
    for block in made.blocks():
        out.add_block(block)


def add_sheet(out: MarkdownWriter, rows: Iterable[Sequence[str]]) -> None:
    """Add rows of a sheet: rows of one cell above a table are text, the rest is the table, from its first column on."""
    kept = [row for row in rows if any(row)]
    first = next((at for at, row in enumerate(kept) if sum(map(bool, row)) > 1), len(kept))
    for row in kept[:first]:
        add_paragraph(out, *row)
    table = kept[first:]
    left = min((next(at for at, cell in enumerate(row) if cell) for row in table), default=0)
    right = max((max(at for at, cell in enumerate(row) if cell) for row in table), default=-1) + 1
    add_table(out, [row[left:right] for row in table])


def deeper(markdown: str, levels: int) -> str:
    """Return Markdown with its headings so many levels deeper, six at most. Code stays as it is."""
    lines, fence = [], ""
    for line in markdown.split("\n"):
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence) and not line.strip().strip(fence[0]):
            fence = ""
        head = None if fence else _HEADING.match(line)
        lines.append(f"{'#' * min(6, head.end() + levels)}{line[head.end() :]}" if head else line)
    return "\n".join(lines)


def without_marks_of_loaders(markdown: str) -> str:
    """Return text without the addresses of links and the marks of tables, which never count as garbage."""
    return _MARKS.sub(" ", markdown)
