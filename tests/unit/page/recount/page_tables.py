"""The tables of a page, read from its HTML as anybody could."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser


@dataclass
class Shown:
    """A cell: its text, and what it says when it is asked."""

    text: str = ""
    hint: str = ""


@dataclass
class ShownTable:
    """A table: its id, the names of its columns, its rows and its caption."""

    name: str = ""
    head: list[str] = field(default_factory=list)
    rows: list[list[Shown]] = field(default_factory=list)
    caption: str = ""


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tables: dict[str, ShownTable] = {}
        self._table: ShownTable | None = None
        self._into: list[str] | None = None
        self._skipped = 0

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        said = dict(attrs)
        if tag == "table" and (said.get("id") or "").startswith("table-"):
            self._table = self.tables.setdefault(str(said["id"]), ShownTable(str(said["id"])))
            assert not self._table.head, f"two tables are called {said['id']}"
        elif self._table is None:
            return
        elif tag in ("svg", "abbr"):
            self._skipped += 1
        elif tag == "tr" and self._table.head:
            self._table.rows.append([])
        elif tag in ("th", "td", "caption"):
            self._into = []
            self._hint = said.get("title") or ""

    def handle_data(self, data: str) -> None:
        if self._into is not None and not self._skipped:
            self._into.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag == "table":
            self._table = None
        elif tag in ("svg", "abbr") and self._table is not None:
            self._skipped -= 1
        elif tag in ("th", "td", "caption") and self._into is not None:
            self._keep(tag, " ".join("".join(self._into).split()))
            self._into = None

    def _keep(self, tag: str, text: str) -> None:
        assert self._table is not None
        if tag == "caption":
            self._table.caption = text
        elif self._table.rows:
            self._table.rows[-1].append(Shown(text, self._hint))
        else:
            self._table.head.append(text)


def tables_in(html: str) -> dict[str, ShownTable]:
    """Return the tables of a page by their id."""
    reader = _Reader()
    reader.feed(html)
    return reader.tables


def whole(tables: dict[str, ShownTable], name: str) -> ShownTable:
    """Return a table with the columns of its further parts, which are called like it and a number."""
    table = tables[name]
    parts = [part for other, part in tables.items() if re.fullmatch(rf"{re.escape(name)}-\d+", other)]
    rows = [[*row, *(cell for part in parts for cell in part.rows[n][1:])] for n, row in enumerate(table.rows)]
    return ShownTable(name, [*table.head, *(column for part in parts for column in part.head[1:])], rows, table.caption)
