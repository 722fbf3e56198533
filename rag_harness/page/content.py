"""The content of a section, independent of HTML: text, tables, figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Tone = Literal["", "good", "bad", "unsure", "mute"]
"""The meaning of a cell. It is shown by more than a colour."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table.

    Attributes:
        text: text for people.
        tone: good, bad, unsure, mute; "" is neutral.
        is_best: whether it is the best of its row or column, by a test.
        trial: id of the trial that it links to; "" is no link.
        beside: id of the trial that the link shows beside it; "" for none.
        drawing: SVG beside the text; only HTML shows it.
        hint: additional text on demand.
        kind: kind of answer that the text names: HTML shows its colour and pattern before the text.
    """

    text: str
    tone: Tone = ""
    is_best: bool = False
    trial: str = ""
    beside: str = ""
    drawing: str = ""
    hint: str = ""
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table. The first column names its rows.

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
    """Drawings, and a table with their data.

    Attributes:
        names: names of several drawings; "" for a drawing without one.
        layout: several drawings are below each other, or ``alike`` and beside each other, or ``pairs``, the second of
            each beside the first, or many and ``small``.
    """

    title: str
    drawings: Sequence[str]
    table: Table
    notes: Sequence[str] = ()
    names: Sequence[str] = ()
    layout: Literal["", "alike", "pairs", "small"] = ""


@dataclass(frozen=True, slots=True)
class FailedTrial:
    """A failed trial for people: question, cause, remedy."""

    trial: str
    query: str
    cause: str
    evidence: str
    remedy: str
    figures: str = ""


@dataclass(frozen=True, slots=True)
class Failures:
    """The worst trials of an experiment."""

    experiment: str
    shown: Sequence[FailedTrial]
    total: int


@dataclass(frozen=True, slots=True)
class LookedUpHit:
    """A hit of a question that was looked up: its rank, the name of its document, and whether that was expected."""

    rank: int
    name: str
    is_expected: bool = False


@dataclass(frozen=True, slots=True)
class LookedUpQuestion:
    """A question that was looked up, for people.

    Attributes:
        ident: id of the question.
        expected: names of the documents that should be found.
        outcome: where the first of them was found, or that none was; ``tone`` says whether that is good.
        hits: the first documents in their order, and below them those that were expected.
        figures: measures of the question.
        error: why it could not be looked up; empty where it was.
    """

    ident: str
    query: str
    expected: str
    outcome: str
    tone: Tone
    hits: Sequence[LookedUpHit]
    figures: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class LookedUpQuestions:
    """Questions of the golden suite, the misses first."""

    title: str
    shown: Sequence[LookedUpQuestion]
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Facts:
    """Names with their values."""

    pairs: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Prose:
    """A paragraph. A tone makes it a warning or a note."""

    text: str
    tone: Tone = ""


@dataclass(frozen=True, slots=True)
class Topic:
    """What is said about one topic of the first screen.

    Attributes:
        ident: its address in the page.
        label: what a reader asks.
        texts: what is said, a paragraph each.
        trial: id of the trial that shows it; empty for none.
    """

    ident: str
    label: str
    texts: Sequence[str]
    tone: Tone = ""
    trial: str = ""


@dataclass(frozen=True, slots=True)
class Topics:
    """What a reader has to know first, a topic beside the other."""

    all: Sequence[Topic]


@dataclass(frozen=True, slots=True)
class Terms:
    """Terms, each with the sentence that explains it."""

    pairs: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Code:
    """Commands, one in each line."""

    lines: Sequence[str]


@dataclass(frozen=True, slots=True)
class More:
    """Blocks that are folded until somebody opens them; they are not printed."""

    title: str
    blocks: Sequence[Block]


Block: TypeAlias = "Table | Figure | Failures | LookedUpQuestions | Facts | Prose | Topics | Terms | Code | More"


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the report. ``ident`` is its address in the page."""

    ident: str
    title: str
    blocks: Sequence[Block] = field(default_factory=tuple)


def word_cells(*texts: str) -> list[Cell]:
    """Return cells of plain text."""
    return [Cell(text) for text in texts]
