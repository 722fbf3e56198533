"""A figure of the rank of the first relevant document."""

from __future__ import annotations

from collections import Counter

from rag_harness.page.charts import Bars, Estimate, Series, bars
from rag_harness.page.content import Cell, Figure, Table, word_cells
from rag_harness.page.drawings.estimated import estimate_in_words
from rag_harness.page.run import Run
from rag_harness.report.suite_table import SuiteTable
from rag_harness.stats import clopper_pearson

_MEASURE = "mrr@10"
_RANKS = {"1": (1, 1), "2": (2, 2), "3": (3, 3), "4–5": (4, 5), "6–10": (6, 10)}
_NOWHERE = "not in 10"


def ranks(run: Run) -> Figure | None:
    """Return the share of cases by that rank; None where nothing was retrieved."""
    found = {name: ranked for name, table in run.experiments.items() if (ranked := _ranks(table)).total()}
    if not found:
        return None
    title = "Rank of the first relevant document"
    categories = (*_RANKS, _NOWHERE)
    shares = {name: [_share(count[kind], count.total()) for kind in categories] for name, count in found.items()}
    series = tuple(Series(name, tuple(values)) for name, values in shares.items())
    chart = Bars(ident="ranks", title=title, categories=categories, series=series, percent=True)
    rows = [
        [Cell(name), *word_cells(*map(estimate_in_words, values), f"{found[name].total():,}")]
        for name, values in shares.items()
    ]
    head = ("experiment", *(f"rank {name}" for name in _RANKS), _NOWHERE, "n")
    note = f"From {_MEASURE}, over the cases with a relevant document. Lines are 95 % intervals (Clopper and Pearson)."
    return Figure(title, [bars(chart)], Table("figure-ranks", head, rows, "Share of the cases"), [note])


def _ranks(table: SuiteTable) -> Counter[str]:
    """Return the number of cases by rank, which is the reciprocal of the measure's value for a case."""
    values = table.values(_MEASURE, {}) if _MEASURE in table.columns else {}
    return Counter(_kind(value) for value in values.values())


def _kind(reciprocal: float) -> str:
    rank = round(1 / reciprocal) if reciprocal > 0 else 0
    return next((name for name, (first, last) in _RANKS.items() if first <= rank <= last), _NOWHERE)


def _share(n: int, total: int) -> Estimate:
    low, high = clopper_pearson(n, total)
    return Estimate(n / total, min(low, n / total), max(high, n / total))
