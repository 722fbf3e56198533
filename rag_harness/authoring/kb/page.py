"""A parsed Markdown page: links, anchors, tables, diagrams and the words that a reader sees."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

FRONT_MATTER = re.compile(r"\A---[ \t]*\n.*?\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)


class At(NamedTuple):
    """A piece of text and the line that it starts on, 1-based."""

    line: int
    text: str


@dataclass
class Page:
    """A parsed page. ``problems`` are valid Markdown that no author means; ``ragged`` are bad table rows.

    ``headings`` have level and text. ``grids`` have the rows of each table, the header first, with cells as a reader
    sees them.
    """

    doc_id: str
    text: str
    title: str = ""
    links: list[At] = field(default_factory=list)
    anchors: dict[str, int] = field(default_factory=dict)
    headings: list[tuple[int, str]] = field(default_factory=list)
    tables: int = 0
    grids: list[list[list[str]]] = field(default_factory=list)
    lists: int = 0
    ragged: list[At] = field(default_factory=list)
    diagrams: list[At] = field(default_factory=list)
    paragraphs: list[At] = field(default_factory=list)
    problems: list[At] = field(default_factory=list)

    @cached_property
    def squeezed(self) -> str:
        """The source with each run of white space as one blank."""
        return squeeze(self.text)

    @property
    def body(self) -> str:
        """The source without front matter."""
        front = FRONT_MATTER.match(self.text)
        return self.text[front.end() :] if front else self.text

    @cached_property
    def folded(self) -> str:
        """The source without front matter and bold marks, with each run of white space as one blank."""
        return fold(self.body)


def fold(text: str) -> str:
    """Return ``text`` without bold marks, with each run of white space as one blank."""
    return squeeze(text.replace("**", "").replace("__", ""))


def squeeze(text: str) -> str:
    """Return ``text`` with each run of white space as one blank."""
    return " ".join(text.split())
