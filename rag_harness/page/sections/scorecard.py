"""The study's scorecard: experiments on measures with intervals, categories of answers, and costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rag_harness.measures import Measure
from rag_harness.measures.judged.categories import kinds_shown
from rag_harness.measures.named import RANKING
from rag_harness.page.content import Block, Cell, More, Prose, Section, Table, word_cells
from rag_harness.page.figures import NONE, mean_cell, measure_title, tail_cell, why_none
from rag_harness.page.run import UNJUDGED, Run
from rag_harness.page.sections.costs import costs, times
from rag_harness.page.sections.panel_table import panel_table
from rag_harness.report.best import best_of
from rag_harness.report.direction import NEITHER
from rag_harness.report.pairwise import RISKS, TAIL
from rag_harness.report.scorecard import judged_in_order
from rag_harness.report.suite_table import SuiteTable
from rag_harness.report.wording import joined_names

_ALONE = "One experiment: there is nothing to compare it with, so nothing is marked as best."
_MARKS = (
    "★ better than every other experiment that has the measure, each difference significant by paired t and by "
    "permutation test after Holm's correction: over its family where a judge gives the measure, over its own pairs "
    "elsewhere; experiments with the same value on every case are one winner, and each carries "
    "it. Intervals that overlap do not contradict it: the tests compare case by case."
)


def scorecard(runs: Sequence[Run]) -> Section | None:
    """Return the scorecard of the first run; None where only the golden suite ran, which has a section of its own."""
    run = runs[0]
    if not run.experiments and run.selected:
        return None
    nothing = Prose("No trial was selected: there is nothing to score.", "unsure")
    blocks = [*_blocks(run)] if run.experiments else [nothing]
    return Section("scorecard", "Scorecard", [block for block in blocks if block is not None])


def measures_shown(run: Run) -> list[Measure]:
    """Return the measures that some suite of the run has a value of, or was judged on, in the report's order."""
    return measures_of(list(run.selected.values()))


def measures_of(tables: Sequence[SuiteTable]) -> list[Measure]:
    """Return the measures with a value: judged ones, those compared without a judge, then all others."""
    judged = [name for table in tables for name in judged_in_order(table)]
    known = {name: column.measure for table in tables for name, column in table.columns.items()}
    valued = [name for name in known if any(table.has(name) for table in tables)]
    rest = [name for name in (*UNJUDGED, *NEITHER, *known) if name in valued]
    return [known[name] for name in dict.fromkeys([*judged, *rest])]


def _blocks(run: Run) -> Iterator[Block | None]:
    tables = list(run.experiments.values())
    if not any(judged_in_order(table) for table in tables):
        yield Prose("No answer was judged: name measures with --rag-measures, or in a gate.", "unsure")
    measures, minor = measures_of(tables), set(RANKING) - set(UNJUDGED)
    first = [measure for measure in measures if measure.name not in minor]
    yield _table(
        run,
        "scorecard",
        first,
        "Means ± half the width of their 95 % interval; the interval itself where it is lopsided",
    )
    if rest := [measure for measure in measures if measure.name in minor]:
        yield More(
            "Other measures of retrieval", [_table(run, "scorecard-others", rest, "Means, as above; without tests")]
        )
    yield _categories(run)
    yield panel_table(run)
    yield costs(run)
    yield times(run)


def _table(run: Run, name: str, measures: Sequence[Measure], caption: str) -> Table:
    rows = [row for measure in measures for row in _rows(run, measure)]
    notes = [_MARKS if len(run.experiments) > 1 else _ALONE] if name == "scorecard" else []
    return Table(name, ("measure", *run.experiments), rows, caption, [*notes, *_missing(run, measures)])


def _rows(run: Run, measure: Measure) -> Iterator[list[Cell]]:
    best = best_of(measure.name, run.experiments, [*run.pairwise, *run.unjudged])
    means = [mean_cell(table, measure.name, name in best) for name, table in run.experiments.items()]
    yield [Cell(measure_title(measure)), *means]
    if measure.name in RISKS:
        title = measure_title(measure).replace(" ↓", f", p{TAIL * 100:.0f} ↓")
        yield [Cell(title), *(tail_cell(table, measure.name, TAIL) for table in run.experiments.values())]


def _missing(run: Run, measures: Sequence[Measure]) -> Iterator[str]:
    """Yield why experiments have no value at all, one line for each reason."""
    by_reason: dict[tuple[str, str], list[str]] = {}
    for name, table in run.experiments.items():
        for measure in measures:
            if not table.has(measure.name):
                by_reason.setdefault((name, why_none(table, measure.name)), []).append(measure.name)
    for (name, why), found in by_reason.items():
        yield f"{name} has no {joined_names(found)}: {why or 'no case is of the kind that it is about'}."


def _categories(run: Run) -> Table | None:
    """Return the share of each category of answers."""
    shares = {name: table.shares() for name, table in run.experiments.items()}
    if not any(shares.values()):
        return None
    kinds = kinds_shown(kind for share in shares.values() for kind in share if share[kind])
    rows = [[Cell(kind, kind=kind), *word_cells(*(_share(share, kind) for share in shares.values()))] for kind in kinds]
    counts = [sum(map(bool, table.categories or ())) for table in run.experiments.values()]
    rows.append([Cell("answers"), *word_cells(*(f"{n:,}" if n else NONE for n in counts))])
    notes = ["Each answer is of one kind, the first that holds; what each means is below, in Method."]
    return Table("categories", ("category", *shares), rows, "Categories of answers, in per cent", notes)


def _share(shares: dict[str, float], kind: str) -> str:
    return f"{shares[kind]:.1%}" if shares else NONE
