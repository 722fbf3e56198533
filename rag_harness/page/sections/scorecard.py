"""The study's scorecard: experiments on measures with their intervals, the kinds of answers, what it all took."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rag_harness.measures import Measure
from rag_harness.measures.judged import CATEGORIES
from rag_harness.page.content import Block, Cell, More, Prose, Section, Table, words
from rag_harness.page.figures import NONE, listed, mean_cell, measure_title, tail_cell, why_none
from rag_harness.page.run import UNJUDGED, Run
from rag_harness.page.sections.costs import costs, times
from rag_harness.report.best import best_of
from rag_harness.report.pairwise import RISKS, TAIL
from rag_harness.report.scorecard import judged_in_order

_FURTHER = ("abstention_rate", "confidence")
"""Shown beside what is compared: of neither is more better on every query."""
_ALONE = "One experiment: there is nothing to compare it with, so nothing is marked as best."
_MARKS = (
    "★ better than every other experiment that has the measure, each difference significant by paired t and by "
    "permutation test after Holm's correction; over all pairs of a family where a judge gives the measure, over its own "
    "pairs elsewhere. Intervals that overlap do not contradict it: the tests compare case by case."
)


def scorecard(runs: Sequence[Run]) -> Section:
    """Return the scorecard of the first run."""
    run = runs[0]
    if not run.experiments:
        return Section("scorecard", "Scorecard", [Prose("No trial was selected: there is nothing to score.", "unsure")])
    return Section("scorecard", "Scorecard", [block for block in _blocks(run) if block is not None])


def measures_shown(run: Run) -> list[Measure]:
    """Return the measures of the report, in their order: judged ones, those compared without a judge, all others."""
    tables = list(run.experiments.values())
    judged = list(dict.fromkeys(name for table in tables for name in judged_in_order(table)))
    known = {name: column.measure for table in tables for name, column in table.columns.items()}
    valued = [name for name in known if any(name in table.columns and table.values(name, {}) for table in tables)]
    rest = [name for name in (*UNJUDGED, *_FURTHER, *known) if name in valued]
    return [known[name] for name in dict.fromkeys([*judged, *rest])]


def _blocks(run: Run) -> Iterator[Block | None]:
    shown = measures_shown(run)
    judged = {name for table in run.experiments.values() for name in judged_in_order(table)}
    if not judged:
        yield Prose("No answer was judged: name measures with --rag-measures, or in a gate.", "unsure")
    first = [m for m in shown if m.name in judged or m.name in (*UNJUDGED, *_FURTHER) or "_metamorphic" in m.name]
    caption = "Means ± half the width of their 95 % interval"
    yield _table(run, "scorecard", first, caption)
    rest = [measure for measure in shown if measure not in first]
    if rest:
        yield More("All other measures", [_table(run, "scorecard-others", rest, "Means, as above; without tests")])
    yield _categories(run)
    yield costs(run)
    yield times(run)


def _table(run: Run, name: str, measures: Sequence[Measure], caption: str) -> Table:
    rows = [row for measure in measures for row in _rows(run, measure)]
    notes = [_MARKS if len(run.experiments) > 1 else _ALONE] if name == "scorecard" else []
    return Table(name, ("measure", *run.experiments), rows, caption, [*notes, *_missing(run, measures)])


def _rows(run: Run, measure: Measure) -> Iterator[list[Cell]]:
    cells = run.unjudged if measure.name in UNJUDGED else run.pairwise
    best = best_of(measure.name, run.experiments, cells)
    means = [mean_cell(table, measure.name, name == best) for name, table in run.experiments.items()]
    yield [Cell(measure_title(measure)), *means]
    if measure.name in RISKS:
        title = measure_title(measure).replace(" ↓", f", p{TAIL * 100:.0f} ↓")
        yield [Cell(title), *(tail_cell(table, measure.name, TAIL) for table in run.experiments.values())]


def _missing(run: Run, measures: Sequence[Measure]) -> Iterator[str]:
    """Yield why experiments have no value at all, a line a reason."""
    by_reason: dict[tuple[str, str], list[str]] = {}
    for name, table in run.experiments.items():
        for measure in measures:
            if measure.name not in table.columns or not table.values(measure.name, {}):
                by_reason.setdefault((name, why_none(table, measure.name)), []).append(measure.name)
    for (name, why), found in by_reason.items():
        yield f"{name} has no {listed(found)}: {why or 'no case is of the kind that it is about'}."


def _categories(run: Run) -> Table | None:
    """Return the share of each kind of answer."""
    shares = {name: table.shares() for name, table in run.experiments.items()}
    if not any(shares.values()):
        return None
    kinds = [kind for kind in CATEGORIES if any(share.get(kind) for share in shares.values())]
    rows = [[Cell(kind), *words(*(_share(share, kind) for share in shares.values()))] for kind in kinds]
    counts = [sum(map(bool, table.categories or ())) for table in run.experiments.values()]
    rows.append([Cell("answers"), *words(*(f"{n:,}" if n else NONE for n in counts))])
    notes = ["Each answer is of one kind, the first that holds; what each means is below, in Method."]
    return Table("categories", ("kind of answer", *shares), rows, "Kinds of answers, in per cent", notes)


def _share(shares: dict[str, float], kind: str) -> str:
    return f"{shares[kind]:.1%}" if shares else NONE
