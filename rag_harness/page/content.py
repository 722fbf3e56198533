"""The content of a section, the formats of its figures, and Markdown of limited length."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import Literal, TypeAlias
from urllib.parse import quote

from rag_harness.core.errors import SettingsError
from rag_harness.core.escaping import escaped, markdown_code, markdown_text
from rag_harness.core.types import GOLDEN
from rag_harness.evaluation.measures import Measure
from rag_harness.page.run import Run
from rag_harness.runs.gates.verdict import bounds, value_said
from rag_harness.stats import quantile
from rag_harness.stats.means import quantile_interval_of
from rag_harness.tables.suite_table import SliceLabels, SuiteTable
from rag_harness.tables.summary import SHORT_MEASURE_NAMES
from rag_harness.tables.wording import better_of, joined_names

Tone = Literal["", "good", "bad", "unsure", "mute"]
"""The meaning of a cell. It is shown by more than a colour."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table.

    Attributes:
        text: the readable text.
        tone: good, bad, unsure, mute; "" is neutral.
        is_best: whether it is the best of its row or column, by a test.
        trial: id of the trial that it links to; "" means without a link.
        beside: id of the trial that the link shows next to it; "" without one.
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


NONE = "–"
"""Text for a missing value."""
_LOPSIDED = 0.1


def interval_said(low: float | None, high: float | None, unit: str = "share", signed: bool = False) -> str:
    """Return an interval as text; an end that is None is open."""
    return bounds(-inf if low is None else low, inf if high is None else high, unit, signed, digits=3)


def measure_title(measure: Measure) -> str:
    """Return a measure's name, the study's short one where there is one, and whether higher or lower is better."""
    return name_said(measure.name) + {"lower": " ↓", "higher": " ↑", "": ""}[better_of(measure)]


def name_said(name: str) -> str:
    """Return a measure's name with the study's short one."""
    short = SHORT_MEASURE_NAMES.get(name, name)
    return name if short == name or short.lower() == name else f"{name} ({short})"


def mean_cell(table: SuiteTable, measure: str, is_best: bool = False, where: SliceLabels | None = None) -> Cell:
    """Return mean ± half the width of its 95 % interval; only the mean for one case; a note without a value."""
    cases = table.values(measure, where or {}) if measure in table.columns else {}
    values = list(cases.values())
    if not values:
        return no_value(table, measure)
    counted = f"n = {len(values)}{table.describe_clusters(cases)}"
    mean, unit = table.aggregate([measure], where)[measure] or 0.0, table.columns[measure].measure.unit
    if len(values) == 1:
        return Cell(f"{value_said(mean, unit)} (1 case)", hint="one case has no interval")
    found = table.interval(measure, where)
    if found is None:
        return Cell(value_said(mean, unit), is_best=is_best, hint=f"{counted}; all are equal")
    low, high = found
    between, half = interval_said(low, high, unit), (high - low) / 2
    # ± means a symmetric interval. Near the end of a range intervals are not symmetric.
    is_even = isfinite(half) and abs((low + high) / 2 - mean) <= _LOPSIDED * half
    text = f"{value_said(mean, unit)} {f'±{value_said(half, unit)}' if is_even else between}"
    return Cell(text, is_best=is_best, hint=f"{counted}; 95 % interval {between}")


def tail_cell(table: SuiteTable, measure: str, share: float) -> Cell:
    """Return a quantile with its 95 % interval. An end is open where there are too few cases."""
    found = table.values(measure, {}) if measure in table.columns else {}
    if not found:
        return no_value(table, measure)
    values, unit = [*found.values()], table.columns[measure].measure.unit
    said, counted = (
        value_said(quantile(sorted(values), share), unit),
        f"n = {len(values)}{table.describe_clusters(found)}",
    )
    between = quantile_interval_of(values, share, table.clusters_of(found))
    if between is None:
        return Cell(said, hint=f"{counted}, so it has no interval")
    return Cell(f"{said} {interval_said(between.low, between.high, unit)}", hint=f"{counted}; 95 % interval")


def no_value(table: SuiteTable, measure: str) -> Cell:
    """Return a cell with the reason why the value is missing."""
    return Cell(NONE, "mute", hint=why_none(table, measure))


def why_none(table: SuiteTable, measure: str) -> str:
    """Return why no case has a value."""
    if measure not in table.columns:
        return "not measured"
    return ", ".join(
        f"{n} of {table.selected_of({})} have {why}" for why, n in table.absent(measure, {}).most_common(2)
    )


_MORE = "…"


@dataclass(frozen=True, slots=True)
class Room:
    """How much a comment may say.

    Attributes:
        rows: the most rows of a table.
        name: the most characters of a name, with what escapes them.
        text: the most characters of a sentence, with what escapes them.
    """

    rows: int
    name: int
    text: int

    @property
    def few(self) -> int:
        """The most items of a list of details."""
        return max(1, min(3, self.rows // 2))

    def said(self, text: str) -> str:
        """Return a sentence; the end of a long one is left out."""
        return _cut(text, self.text, lambda flat, n: f"{flat[:n].rstrip()}{_MORE}")

    def short(self, text: str) -> str:
        """Return a text that shares its line with others, in a third of the room."""
        return _cut(text, self.text // 3, lambda flat, n: f"{flat[:n].rstrip()}{_MORE}")

    def named(self, name: str, times: int = 1) -> str:
        """Return a name. The middle of a long one is left out: variants differ at the end."""
        return _cut(name, times * self.name, _without_middle)

    def cut_name(self, name: str) -> str:
        """Return a name as it is; without its middle where it is long."""
        flat = escaped(" ".join(name.split()))
        return flat if len(flat) <= self.name else _without_middle(flat, self.name - 1)

    def first(self, names: Sequence[str]) -> str:
        """Return names as text; of many the first."""
        shown = [self.named(name) for name in names[: self.rows]]
        more = [f"{len(names) - len(shown):,} more"] if len(names) > len(shown) else []
        return joined_names([*shown, *more])


def table_rows(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table; its cells are Markdown."""
    yield _row(head)
    yield _row(["---"] * len(head))
    yield from map(_row, rows)


def below(note: str) -> Iterator[str]:
    """Yield a note below a table, which an empty line ends."""
    if note:
        yield from ("", f"<sub>{note}</sub>")


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _without_middle(flat: str, n: int) -> str:
    return f"{flat[: n - n // 2]}{_MORE}{flat[len(flat) - n // 2 :]}"


def _cut(text: str, most: int, shortened: Callable[[str, int], str]) -> str:
    """Return text as Markdown of at most so many characters, with what escapes them."""
    flat = " ".join(text.split())
    said, n = markdown_text(flat), most
    while len(said) > most and n > 1:
        said = markdown_text(shortened(flat, n))
        n = min(n - 1, n * most // len(said))
    return said


_SAFE = "/:?[]@!$&'*+,;=%~"
"""Characters of an address that stay as they are. A parenthesis or an angle bracket would end a link of Markdown."""
_ADDRESS = re.compile(r"https?://[^\s/?#][^\s#]*|(?!//)[^\s:?#]+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Links:
    """Links to trials.

    Attributes:
        run: the run that they are of.
        report: the address of the page; empty where it is not known, and trials are named only.
    """

    run: Run
    report: str = ""

    def to(self, trial: str, room: Room, in_table: bool = False) -> str:
        """Return the trial's name as code, which can be copied into a command; as a link where that is possible."""
        address = self.run.address(trial)
        name = markdown_code(room.cut_name(address))
        # A pipe ends a table's cell even in code, and is shown there without its backslash.
        name = name.replace("|", "\\|") if in_table else name
        # The report lists the trials of experiments only.
        if not self.report or trial.startswith(f"{GOLDEN}-"):
            return name
        return f"[{name}]({quote(self.report, safe=_SAFE)}#trials?open={quote(address, safe='')})"


def check_address(report: str) -> None:
    """Make sure that this is the address of a page.

    Raises:
        SettingsError: it is not.
    """
    if not _ADDRESS.fullmatch(report):
        raise SettingsError(
            f"--link {report}: that is not an address of a page. Write https://… or a path such as report.html, "
            "without a space and without #."
        )
