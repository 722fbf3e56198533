"""Whole blocks of Markdown for loaders that know their headings, paragraphs and tables at once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rag_harness.dataset.ingest.markdown_writer import MarkdownWriter
from rag_harness.dataset.ingest.table_rows import OpenTable

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
