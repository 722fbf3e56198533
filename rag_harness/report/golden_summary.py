"""The golden suite's aggregates: by query type and in total, and the first misses with what was retrieved instead."""

from __future__ import annotations

from collections.abc import Sequence

from rag_harness.measures.golden_run import RetrievalResult
from rag_harness.report.misses import missed
from rag_harness.report.suite_table import SuiteTable
from rag_harness.report.summary import table as aligned

GOLDEN_MEASURES = ("recall@1", "recall@3", "recall@5", "recall@10", "mrr@10", "ndcg@10")
SLICE = "query_type"
MOST_SLICES = 8
_MOST_MISSES = 5


def golden_lines(table: SuiteTable, results: Sequence[RetrievalResult]) -> list[str]:
    """Return the table of measures and the misses."""
    slices = sorted(table.slices().get(SLICE, set()))[:MOST_SLICES]
    rows = [_row(table, {SLICE: each}, each) for each in slices if table.selected_of({SLICE: each})]
    misses = [result for result in results if not result.found]
    lines = aligned([("golden", "n", *GOLDEN_MEASURES), *rows, _row(table, {}, "all")])
    cut = _cut(table, results)
    lines += [f"{cut} of all: 95 % interval {_interval(table, cut)}", _ranks(results)]
    for result in misses[:_MOST_MISSES]:
        lines += missed(result)
    if len(misses) > _MOST_MISSES:
        lines.append(
            f"… and {len(misses) - _MOST_MISSES} more misses; --rag-misses=FILE writes all, --rag-strict fails on each"
        )
    return lines


def _row(table: SuiteTable, where: dict[str, str], name: str) -> tuple[str, ...]:
    values = table.aggregate(GOLDEN_MEASURES, where)
    shown = (f"{value:.3f}" if value is not None else "-" for value in values.values())
    return (name, str(table.selected_of(where)), *shown)


def _cut(table: SuiteTable, results: Sequence[RetrievalResult]) -> str:
    """Return the recall that the run is about: at its k, where that is a column."""
    names = [f"recall@{results[0].k}"] if results else []
    return next((name for name in names if name in GOLDEN_MEASURES and table.has(name)), "recall@10")


def _interval(table: SuiteTable, measure: str) -> str:
    found = table.interval(measure) if table.has(measure) else None
    return f"{found[0]:.3f} to {found[1]:.3f}" if found else "-"


def _ranks(results: Sequence[RetrievalResult]) -> str:
    """Return a histogram of the ranks of the first expected document."""
    borders = ((1, 1), (2, 3), (4, 5), (6, 10), (11, 100))
    ranks = [result.rank for result in results if result.rank is not None]
    counts = [
        (f"{low}-{high}" if low != high else f"{low}", sum(low <= r <= high for r in ranks)) for low, high in borders
    ]
    shown = ", ".join(f"{name}: {count}" for name, count in counts if count)
    return f"first found at rank {shown or '-'}; never: {len(results) - len(ranks)}"
