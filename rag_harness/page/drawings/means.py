"""Figures of the experiments' means: as lines from the first to the last experiment, and as grouped bars."""

from __future__ import annotations

from collections.abc import Sequence

from rag_harness.page.charts import Bars, Lines, Series, bars, lines
from rag_harness.page.content import Cell, Figure, Table
from rag_harness.page.drawings.estimated import PLAIN, STUDY, estimate, estimate_cell
from rag_harness.page.figures import measure_title
from rag_harness.page.run import Run
from rag_harness.report.summary import SHORT_MEASURE_NAMES

_MOST = 6
"""Most lines in one chart: more cannot be told apart."""
_BARS = "Where bars are missing the measure is not defined for the experiment; lines are 95 % intervals."


def progression(run: Run) -> Figure | None:
    """Return the means of the measures over the experiments, in their order; None for fewer than two."""
    names, measures = tuple(run.experiments), _shown(run)
    if len(names) < 2 or not measures:
        return None
    series = tuple(
        Series(SHORT_MEASURE_NAMES.get(m, m), tuple(estimate(t, m) for t in run.experiments.values())) for m in measures
    )
    title = f"From {names[0]} to {names[-1]}"
    chart = Lines(ident="progression", title=title, categories=names, series=series, include=(0.0, 1.0))
    note = "Means with 95 % intervals; a line breaks where a measure is not defined. Higher is better."
    return Figure(title, [lines(chart)], _table(run, measures, "figure-progression"), [note])


def grouped(run: Run) -> Figure | None:
    """Return the same as bars, the experiments beside each other; None without a value."""
    measures = _shown(run)
    if not measures:
        return None
    series = tuple(Series(name, tuple(estimate(t, m) for m in measures)) for name, t in run.experiments.items())
    categories = tuple(SHORT_MEASURE_NAMES.get(measure, measure) for measure in measures)
    chart = Bars(
        ident="grouped", title="Experiments side by side", categories=categories, series=series, include=(1.0,)
    )
    return Figure("Experiments side by side", [bars(chart)], _table(run, measures, "figure-grouped"), [_BARS])


def _shown(run: Run) -> list[str]:
    """Return shares where higher is better that some experiment has: the study's, then others."""
    tables = run.experiments.values()
    found = [name for name in (*STUDY, "factuality", *PLAIN) if any(table.has(name) for table in tables)]
    return found[:_MOST]


def _table(run: Run, measures: Sequence[str], name: str) -> Table:
    known = {n: column.measure for table in run.experiments.values() for n, column in table.columns.items()}
    tables = run.experiments.values()
    rows = [[Cell(measure_title(known[m])), *(estimate_cell(table, m) for table in tables)] for m in measures]
    return Table(name, ("measure", *run.experiments), rows, "Means with their 95 % intervals")
