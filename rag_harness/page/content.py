"""What a section says, whatever shows it: text, tables, figures. Nothing here knows HTML or Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Tone = Literal["", "good", "bad", "unsure", "mute"]
"""How a cell is meant; whatever shows it says so by more than a colour."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table.

    Attributes:
        text: what people read.
        tone: good, bad, unsure, mute; "" is neither.
        is_best: the best of its row or column, by a test.
        trial: id of the trial that it links to; "" links to none.
        drawing: SVG beside the text; only HTML shows it.
        hint: more, for who asks.
    """

    text: str
    tone: Tone = ""
    is_best: bool = False
    trial: str = ""
    drawing: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table: the first column names its rows.

    Attributes:
        name: a word that is unique on the page: the table's id, and how a test finds it.
    """

    name: str
    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    caption: str = ""
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Figure:
    """Drawings, and the table of what they draw.

    Attributes:
        names: of the drawings, where there are several; "" is one that needs none.
        layout: several drawings have a line of their own, the ``first`` above the others, or all ``alike``.
    """

    title: str
    drawings: Sequence[str]
    table: Table
    notes: Sequence[str] = ()
    names: Sequence[str] = ()
    layout: Literal["", "first", "alike"] = ""


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed trial, for people: what was asked, why it failed, what to do.

    Attributes:
        category: the kind of the answer.
        apart: why kind and cause contradict each other; empty where they do not.
    """

    trial: str
    query: str
    category: str
    cause: str
    evidence: str
    remedy: str
    figures: str = ""
    apart: str = ""


@dataclass(frozen=True, slots=True)
class Failures:
    """The worst trials of an experiment."""

    experiment: str
    shown: Sequence[Failure]
    total: int


@dataclass(frozen=True, slots=True)
class Facts:
    """Names and what they are."""

    pairs: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Prose:
    """A paragraph; a tone makes it a warning or a note."""

    text: str
    tone: Tone = ""


@dataclass(frozen=True, slots=True)
class Code:
    """Commands, a line each."""

    lines: Sequence[str]


@dataclass(frozen=True, slots=True)
class More:
    """Blocks that are folded until they are asked for, and that paper leaves out."""

    title: str
    blocks: Sequence[Block]


Block: TypeAlias = "Table | Figure | Failures | Facts | Prose | Code | More"


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the report. ``ident`` is its address in the page."""

    ident: str
    title: str
    blocks: Sequence[Block] = field(default_factory=tuple)


def words(*texts: str) -> list[Cell]:
    """Return cells of plain text."""
    return [Cell(text) for text in texts]
