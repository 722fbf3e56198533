"""Intervals, paired tests and corrections: pure functions over one value per query.

A value that could not be measured (None) is left out by the caller, who also says how many there were; for a paired
function the whole pair is left out. NaN, infinity and empty input are a ValueError. Equal seeds give equal results.

Agreement of raters and what it corrects are in ``agreement``, ``alpha`` and ``ppi``, which few runs import.
"""

from __future__ import annotations

from rag_harness.stats.corrections import holm
from rag_harness.stats.difference_bounds import difference_bounds, difference_interval
from rag_harness.stats.inputs import Values
from rag_harness.stats.intervals import Interval
from rag_harness.stats.mean_bounds import mean_bounds, mean_interval
from rag_harness.stats.means import mean_or_none
from rag_harness.stats.permutation import permutation_test
from rag_harness.stats.quantiles import quantile, quantile_interval
from rag_harness.stats.shares import clopper_pearson

__all__ = [
    "Interval",
    "Values",
    "clopper_pearson",
    "difference_bounds",
    "difference_interval",
    "holm",
    "mean_bounds",
    "mean_interval",
    "mean_or_none",
    "permutation_test",
    "quantile",
    "quantile_interval",
]
