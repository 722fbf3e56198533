"""A figure of the distribution of the hallucination risk: a mean hides the few harmful answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rag_harness.gates.units import value_said
from rag_harness.page.charts import Distribution, Histogram, histogram
from rag_harness.page.content import Cell, Figure, Table, word_cells
from rag_harness.page.drawings.experiments import colours_of, drawn_of, left_out, together_or_apart
from rag_harness.page.figures import interval_said
from rag_harness.page.run import Run
from rag_harness.report.pairwise import RISKS
from rag_harness.report.suite_table import SuiteTable
from rag_harness.report.summary import SHORT_MEASURE_NAMES
from rag_harness.stats import quantile
from rag_harness.stats.clustered_quantiles import quantile_interval_of

_AT = (0.5, 0.95, 0.99)


def risk(run: Run) -> Figure | None:
    """Return the distribution of the risk of each experiment; None where none has one."""
    measure = next((m for m in RISKS if any(_values(table, m) for table in run.experiments.values())), "")
    if not measure:
        return None
    found = {name: values for name, table in run.experiments.items() if (values := _values(table, measure))}
    name = SHORT_MEASURE_NAMES.get(measure, measure)
    title = f"How {name} is distributed"
    drawn, colours = drawn_of(run, found), colours_of(run)
    series = tuple(
        Distribution(experiment, tuple(sorted(found[experiment].values())), colours[experiment]) for experiment in drawn
    )
    chart = Histogram(ident="risk", title=title, series=series, x_label=f"{name} of an answer, lower is better")
    rows = [
        [Cell(name), *word_cells(f"{len(values):,}", *_figures(values, run.experiments[name].clusters_of(values)))]
        for name, values in found.items()
    ]
    head = ("experiment", "answers", "mean", "median", "p95", "p99", "largest")
    left = [experiment for experiment in run.experiments if experiment not in found]
    notes = [*([f"No {name}: {', '.join(left)}."] if left else []), *left_out(run, [*found], drawn)]
    table = Table("figure-risk", head, rows, "Quantiles with 95 % intervals")
    return together_or_apart(chart, histogram, table, notes, f"Across: {chart.x_label}. Up: the share of the answers.")


def _values(table: SuiteTable, measure: str) -> Mapping[str, float]:
    return table.values(measure, {}) if measure in table.columns else {}


def _figures(found: Mapping[str, float], clusters: Sequence[str] | None) -> list[str]:
    values = sorted(found.values())
    ends = [quantile_interval_of([*found.values()], at, clusters) for at in _AT]
    between = [f" {interval_said(*each)}" if each else "" for each in ends]
    quantiles = [f"{value_said(quantile(values, at))}{said}" for at, said in zip(_AT, between, strict=True)]
    return [value_said(sum(values) / len(values)), *quantiles, value_said(values[-1])]
