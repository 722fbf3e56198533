"""A figure of the rank of the first relevant document: the share of the questions that have one among the first k."""

from __future__ import annotations

from collections.abc import Sequence

from rag_harness.gates.bounds import interval_of_mean
from rag_harness.page.charts import Estimate, Lines, Series, lines
from rag_harness.page.content import Cell, Figure, Table, word_cells
from rag_harness.page.drawings.estimated import estimate_in_words
from rag_harness.page.drawings.experiments import colours_of, drawn_of, left_out, together_or_apart
from rag_harness.page.run import Run
from rag_harness.report.suite_table import SuiteTable

_MEASURE = "mrr@10"
_DEPTHS = (1, 2, 3, 5, 10)
_AXES = "Across: k. Up: the share of the cases with a relevant document among the first k."


def ranks(run: Run) -> Figure | None:
    """Return the share of the cases by depth; None where nothing was retrieved."""
    found = {name: firsts for name, table in run.experiments.items() if (firsts := _ranks(table))}
    alike = {name: _alike(run.experiments[name]) for name in found}
    if not found:
        return None
    title = "Found among the first k"
    shares = {name: [_share(firsts, k, alike[name]) for k in _DEPTHS] for name, firsts in found.items()}
    drawn, colours = drawn_of(run, found), colours_of(run)
    series = tuple(Series(name, tuple(shares[name]), colours[name]) for name in drawn)
    depths, include = tuple(map(str, _DEPTHS)), (0.0, 1.0)
    chart = Lines(ident="ranks", title=title, categories=depths, series=series, percent=True, include=include)
    rows = [
        [Cell(name), *word_cells(*map(estimate_in_words, values), f"{len(found[name]):,}")]
        for name, values in shares.items()
    ]
    head = ("experiment", *(f"k = {k}" for k in _DEPTHS), "n")
    table = Table("figure-ranks", head, rows, "Share of the cases")
    how = "by conversation or other clusters" if any(alike.values()) else "Clopper and Pearson"
    notes = [f"From {_MEASURE}, with 95 % intervals ({how}).", *left_out(run, [*found], drawn)]
    return together_or_apart(chart, lines, table, [_AXES, *notes])


def _ranks(table: SuiteTable) -> list[int]:
    """Return the rank of each case, which is the reciprocal of the measure's value; 0 is beyond the tenth."""
    values = table.values(_MEASURE, {}) if _MEASURE in table.columns else {}
    return [round(1 / value) if value > 0 else 0 for value in values.values()]


def _alike(table: SuiteTable) -> Sequence[str] | None:
    """Return the cluster of each case that has a rank; None without clusters."""
    return table.clusters_of(table.values(_MEASURE, {}))


def _share(firsts: Sequence[int], k: int, alike: Sequence[str] | None) -> Estimate:
    found = [float(1 <= rank <= k) for rank in firsts]
    share, between = sum(found) / len(found), interval_of_mean(found, "share", alike)
    if between is None:
        return Estimate(share)
    return Estimate(share, min(between[0], share), max(between[1], share))
