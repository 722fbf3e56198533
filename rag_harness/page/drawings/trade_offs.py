"""Figures of quality against time and money, with the Pareto front of the experiments."""

from __future__ import annotations

import numpy as np

from rag_harness.page.charts import Estimate, Point, Scatter, scatter
from rag_harness.page.content import Cell, Figure, Table, word_cells
from rag_harness.page.drawings.estimated import QUALITY, estimate, estimate_in_words
from rag_harness.page.drawings.experiments import colours_of
from rag_harness.page.run import Run
from rag_harness.report.suite_table import SuiteTable
from rag_harness.report.summary import SHORT_MEASURE_NAMES
from rag_harness.stats import quantile
from rag_harness.stats.clustered_quantiles import quantile_interval_of

_FEWEST = 2
_FRONT = "The stepped line joins the experiments that no other beats on both. Bars are 95 % intervals."


def quality_for_time(run: Run) -> Figure | None:
    """Return quality against the median time of a trial; None where fewer than two experiments have both.

    Times of replayed answers are those of recorded calls, so they do not count.
    """
    points = {name: found for name, table in run.experiments.items() if (found := _time(table))}
    return _figure(run, points, "time", "Quality against latency", "median time of a trial, ms", "ms")


def quality_for_money(run: Run) -> Figure | None:
    """Return quality against the cost of a trial; None where no price is known."""
    points = {name: found for name, table in run.experiments.items() if (found := _cost(table))}
    if not any(point.value for point in points.values()):
        return None
    return _figure(run, points, "cost", "Quality against cost", "cost of a trial, USD", "usd")


def _figure(run: Run, taken: dict[str, Estimate], ident: str, title: str, label: str, unit: str) -> Figure | None:
    # An experiment without a context lacks the first measure, so what most experiments have is drawn.
    measure = max(QUALITY, key=lambda each: sum(run.tables[name].has(each) for name in taken))
    if sum(run.tables[name].has(measure) for name in taken) < _FEWEST:
        return None
    quality = {name: estimate(run.tables[name], measure) for name in taken}
    colours = colours_of(run)
    points = tuple(
        Point(name, taken[name], value, colours[name]) for name, value in quality.items() if value is not None
    )
    name = SHORT_MEASURE_NAMES.get(measure, measure)
    chart = Scatter(ident=f"quality-{ident}", title=title, points=points, x_label=label, y_label=name)
    rows = [
        [Cell(point.name), *word_cells(estimate_in_words(point.x, unit), estimate_in_words(point.y))]
        for point in points
    ]
    table = Table(f"figure-{ident}", ("experiment", label, name), rows, "With 95 % intervals")
    return Figure(title, [scatter(chart)], table, [_FRONT, *_not_drawn(run, {point.name for point in points}, unit)])


def _not_drawn(run: Run, drawn: set[str], unit: str) -> list[str]:
    """Say which experiments are not drawn, and why."""
    left = [name for name in run.experiments if name not in drawn]
    replayed = [name for name in left if unit == "ms" and run.tables[name].totals.recorded.any()]
    others = [name for name in left if name not in replayed]
    notes = [f"Not drawn, for their times are of recorded calls: {', '.join(replayed)}."] if replayed else []
    return [*notes, f"Not drawn, for want of one of the two: {', '.join(others)}."] if others else notes


def _time(table: SuiteTable) -> Estimate | None:
    times = table.totals.times["total"]
    there = np.flatnonzero(~np.isnan(times) & ~table.totals.recorded)
    found = times[there].tolist()
    if not found:
        return None
    middle = quantile(sorted(found), 0.5)
    between = quantile_interval_of(found, 0.5, table.clusters_of([table.ids[int(place)] for place in there]))
    return Estimate(middle, *(end if np.isfinite(end) else None for end in between or ()))


def _cost(table: SuiteTable) -> Estimate | None:
    totals = table.totals
    return None if totals.cost_usd is None or not totals.rows else Estimate(totals.cost_usd / totals.rows)
