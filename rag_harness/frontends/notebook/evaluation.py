"""The result of an evaluation: figures with intervals, a frame of trials, gates, and their display."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import Any

from rag_harness.core import escaping
from rag_harness.core.errors import SettingsError
from rag_harness.core.escaping import terminal_line
from rag_harness.core.settings import Settings
from rag_harness.core.types import GOLDEN, REVIEWED
from rag_harness.evaluation.measures import columns_of, measure_named
from rag_harness.frontends.notebook.run import Arrived
from rag_harness.runs.gates import Gate, GateRules, Reference, Verdict, judge, parse_gate, verdict_lines
from rag_harness.runs.gates.configuration import check_promises, check_turns, read_gates, unit_of
from rag_harness.runs.gates.evidence import corrections
from rag_harness.runs.gates.verdict import bounds, value_said
from rag_harness.tables.answer_warnings import error_lines, foreign_said
from rag_harness.tables.conversations import over_conversations, rules_over_conversations
from rag_harness.tables.suite_table import SuiteTable
from rag_harness.tables.summary import table
from rag_harness.tables.trials import FlatTable, Frame, TrialRecords, frame_of

_PASSING = ("passed", "xfailed")
_EVIDENCE = 95.0


@dataclass(frozen=True, repr=False)
class GateCheck:
    """The verdicts of gates. ``str`` and ``repr`` are the lines that a run of pytest prints."""

    verdicts: Sequence[Verdict]

    @property
    def passed(self) -> bool:
        """Whether every gate has passed. One that could not be judged, or is undecided, has not."""
        return all(each.state in _PASSING for each in self.verdicts)

    def __repr__(self) -> str:
        return "\n".join(map(escaping.terminal_block, verdict_lines(self.verdicts)))


def check_gates(texts: Sequence[str], suite: str, table: SuiteTable, settings: Settings, not_run: int) -> GateCheck:
    """Return the verdict of each gate.

    Args:
        texts: gates; one without an experiment is about ``suite``.
        suite: the experiment that was evaluated.
        table: its cases.
        settings: of the evaluation.
        not_run: how many questions were not asked.

    Raises:
        SettingsError: a gate cannot be read, names something unknown, or a measure that was not asked for.
    """
    if not texts:
        raise SettingsError('check: there is no gate. For example: check("recall@5 >= 0.7")')
    slices = {REVIEWED: {"yes", "no"}}
    for key, values in table.slices().items():
        slices.setdefault(key, set()).update(values)
    # Each by itself: of two on the same measure, a run of pytest takes the later one.
    gates = [
        gate
        for text in texts
        for gate in read_gates([_about(text, suite, settings.k)], settings.k, [suite], lambda _: slices)
    ]
    check_promises(gates, 1)
    check_turns(gates, lambda _: slices)
    for gate in gates:
        _check_measured(gate, table)
    judged = [_asked(gate, settings) for gate in gates]
    return GateCheck([_verdict(gate, suite, table, settings, not_run) for gate in judged])


def _about(text: str, suite: str, k: int) -> str:
    gate = parse_gate(text, k)
    return f"{suite}: {text}" if gate.suite == GOLDEN and not text.lstrip().startswith(GOLDEN) else text


def _check_measured(gate: Gate, table: SuiteTable) -> None:
    if isinstance(gate.right, Reference):
        raise SettingsError(
            f"check: {gate} compares with {gate.right.name}, which is for the gates of a run of pytest."
        )
    name = measure_named(gate.measure).name
    if name not in table.columns:
        raise SettingsError(f'check: {name} was not looked at. Evaluate with measures=["{name}"], and check then.')


def _asked(gate: Gate, settings: Settings) -> Gate:
    if settings.verdict == "point" or gate.confidence is not None:
        return gate
    return replace(gate, confidence=_EVIDENCE)


def _verdict(gate: Gate, suite: str, table: SuiteTable, settings: Settings, not_run: int) -> Verdict:
    if not_run and not settings.gate_partial:
        return Verdict(gate, "failed", reason=f"cannot be judged: {not_run} questions were not asked", lacking=True)
    if why := foreign_said(gate, [table], settings):
        return Verdict(gate, "not judged", reason=why)
    if "retrieval" in measure_named(gate.measure).needs:
        # Who asks about contexts says that there should be some.
        table = table.retrieving()
    tables, rules = {suite: table}, _rules(table, settings)
    correct = corrections(settings.folder("judges"), settings.path(settings.output))
    if gate.turns is None:
        return judge(gate, tables, settings.gate_partial, None, unit_of(gate), correct, rules)
    whole = over_conversations(gate, tables)
    rules = rules_over_conversations(rules, whole)
    return judge(gate, whole, settings.gate_partial, None, unit_of(gate), correct, rules)


def _rules(table: SuiteTable, settings: Settings) -> GateRules:
    return GateRules(
        max_unmeasured=settings.max_unmeasured,
        population=settings.population,
        cluster=settings.cluster,
        clusters=lambda _: table.cluster_by_case,
        counts_drafts=settings.gate_unreviewed,
    )


_ALWAYS = ("recall@5", "mrr@10", "evidence_recall", "token_f1", "citation_recall", "abstention_rate", "expectations")
"""What is shown where it has a value. Every measure of the run is a column of the frame."""
_LAST = "error_rate"


@dataclass(frozen=True, slots=True)
class MeasureFigure:
    """A measure over the questions.

    Attributes:
        mean: over the n questions with a value; None where none has one. A failed trial counts the worst.
        low, high: 95 % interval of the mean, by the method of the gates; None where the questions allow none.
        n: questions with a value.
        unmeasured: questions without a value that could have had one: a judge failed, say.
        unit: of the values.
        of: questions that allow the measure, where some answers gave nothing to measure; 0 elsewhere.
        alike: on how many pages or in how many conversations the n questions are; empty where each stands alone.
        why_not: why no question has a value, most of them; empty where some has.
    """

    mean: float | None
    low: float | None
    high: float | None
    n: int
    unmeasured: int
    unit: str
    why_not: str = ""
    of: int = 0
    alike: str = ""

    @property
    def cells(self) -> tuple[str, str, str]:
        """Mean, interval and n as text."""
        if self.mean is None:
            return "-", self.why_not, "0"
        has_both = self.low is not None and self.high is not None
        between = bounds(self.low, self.high, self.unit) if has_both else "-"  # type: ignore[arg-type]
        lacking = f" ({self.unmeasured} unmeasured)" if self.unmeasured else ""
        number = f"{self.n} of {self.of}" if self.of else f"{self.n}"
        return value_said(self.mean, self.unit), between, f"{number}{self.alike}{lacking}"


def figures_by_measure(table: SuiteTable, named: Sequence[str]) -> Mapping[str, MeasureFigure]:
    """Return the figures that are shown: of the measures that were named, and of those usual ones with a value."""
    asked = [measure_named(name).name for name in named]
    judged = [name for name in columns_of(asked) if name in table.columns]
    usual = [name for name in _ALWAYS if table.has(name)]
    return {name: _figure(table, name) for name in dict.fromkeys([*asked, *judged, *usual, _LAST])}


def _figure(table: SuiteTable, name: str) -> MeasureFigure:
    values = list(table.values(name, {}).values())
    unit, unmeasured = table.columns[name].measure.unit, table.unmeasured(name, {})
    if not values:
        why = table.absent(name, {}).most_common(1)
        return MeasureFigure(None, None, None, 0, unmeasured, unit, why[0][0] if why else "")
    low, high = table.interval(name) or (None, None)
    left_out = table.left_out(name, {}).total()
    of = len(values) + unmeasured + left_out if left_out else 0
    alike = table.describe_clusters(table.values(name, {}))
    return MeasureFigure(table.aggregate([name])[name], low, high, len(values), unmeasured, unit, of=of, alike=alike)


# Figures of an evaluation as text, Markdown and HTML. What others wrote is made harmless: names, errors, reasons.

_HEADS = ("measure", "mean", "95 % interval", "n")


def as_text(title: str, figures: Mapping[str, MeasureFigure], notes: Sequence[str]) -> str:
    """Return lines of plain text, the columns aligned."""
    rows = [tuple(map(terminal_line, row)) for row in _rows(figures)]
    return "\n".join([terminal_line(title), *table([_HEADS, *rows]), *map(terminal_line, notes)])


def as_markdown(title: str, figures: Mapping[str, MeasureFigure], notes: Sequence[str]) -> str:
    """Return a table and a list in GitHub's Markdown."""
    rows = ["| " + " | ".join(map(escaping.markdown_text, row)) + " |" for row in _rows(figures)]
    head = [f"**{escaping.markdown_text(title)}**", "", f"| {' | '.join(_HEADS)} |", "|---|---:|---:|---:|", *rows]
    return "\n".join([*head, *([""] if notes else []), *(f"- {escaping.markdown_text(each)}" for each in notes)])


def as_html(title: str, figures: Mapping[str, MeasureFigure], notes: Sequence[str]) -> str:
    """Return a table with its title as caption, and a list. It has no script, and takes the notebook's style."""
    heads = "".join(f'<th scope="col">{_safe(each)}</th>' for each in _HEADS)
    rows = "".join(
        f'<tr><th scope="row">{_safe(first)}</th>{"".join(f"<td>{_safe(each)}</td>" for each in others)}</tr>'
        for first, *others in _rows(figures)
    )
    said = f"<ul>{''.join(f'<li>{_safe(each)}</li>' for each in notes)}</ul>" if notes else ""
    return (
        f"<div><table><caption>{_safe(title)}</caption><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
        f"{said}</div>"
    )


def _rows(figures: Mapping[str, MeasureFigure]) -> list[tuple[str, ...]]:
    return [(name, *figure.cells) for name, figure in figures.items()]


def _safe(text: str) -> str:
    return escape(escaping.html_text(text))


_NO_VERSION = (
    "The next evaluation asks all of it again, for code cannot be seen whole. version=… says that the answers of a "
    "version stay the same."
)


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """The result of an evaluation. Later evaluations into the same folder do not change it.

    Attributes:
        experiment: its name, in rows and gates.
        output: the folder with its rows, scores and ``run.json``, as a run of pytest writes them.
        figures: mean, 95 % interval and n, by measure.
        notes: notes on the rows: failed trials, questions that were not asked, reused rows.
    """

    experiment: str
    output: Path
    figures: Mapping[str, MeasureFigure]
    notes: Sequence[str]
    _table: SuiteTable = field(repr=False)
    _trials: FlatTable = field(repr=False)
    _settings: Settings = field(repr=False)
    _not_run: int = 0

    def frame(self, frame: Frame | None = None) -> Any:
        """Return the trials, a row each, with the columns of ``load_results``.

        Args:
            frame: "pandas", "polars", or "records" for a list of dicts; None takes pandas where it is installed, else
                polars.

        Raises:
            PrerequisiteError: the package is not installed; says what to do.
        """
        return frame_of(self._trials, [self.experiment], frame)

    def check(self, *gates: str) -> GateCheck:
        """Return the verdict of each gate: ``result.check("recall@5 >= 0.7", "error_rate <= 0.05 @95%")``.

        A gate that names no experiment is about this one.

        Raises:
            SettingsError: a gate cannot be read, names something unknown, or a measure that was not asked for.
        """
        return check_gates(gates, self.experiment, self._table, self._settings, self._not_run)

    def __repr__(self) -> str:
        return as_text(self._title, self.figures, self.notes)

    def _repr_html_(self) -> str:
        return as_html(self._title, self.figures, self.notes)

    def _repr_markdown_(self) -> str:
        return as_markdown(self._title, self.figures, self.notes)

    @property
    def _title(self) -> str:
        n = self._table.selected_of({})
        return f"{self.experiment}: {n} question{'s' * (n != 1)}"


def evaluation_of(settings: Settings, experiment: str, arrived: Arrived, is_reusable: bool) -> Evaluation:
    """Return what is in the files of an evaluation that has just ended.

    Args:
        settings: of the evaluation.
        experiment: its name.
        arrived: what came.
        is_reusable: whether a later evaluation reuses its rows.
    """
    output = settings.path(settings.output)
    trials = TrialRecords(output, only=experiment)
    table = trials.tables[experiment]
    return Evaluation(
        experiment,
        output,
        figures_by_measure(table, settings.measures),
        [*_notes(table, arrived, settings), *([] if is_reusable else [_NO_VERSION])],
        table,
        FlatTable(trials.columns, list(trials)),
        settings,
        len(arrived.not_run),
    )


def _notes(table: SuiteTable, arrived: Arrived, settings: Settings) -> Iterator[str]:
    if arrived.resumed:
        yield f"{_counted(len(arrived.resumed), 'answer')} of an earlier run reused."
    if arrived.set_aside:
        rows = _counted(arrived.set_aside, "row")
        yield f"{rows} of an earlier evaluation moved to {settings.output}/previous/."
    if arrived.not_run:
        why = next(iter(arrived.not_run.values()))
        yield f"{_counted(len(arrived.not_run), 'question')} not asked: {why}. What is done is kept."
    lines, more = error_lines([table])
    yield from lines
    if more > 0:
        yield f"{_counted(more, 'more trial')} failed: see the column error of frame()."


def _counted(n: int, one: str) -> str:
    return f"{n} {one}{'s' * (n != 1)}"
