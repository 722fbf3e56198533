"""Confidence intervals, paired tests and corrections: pure functions over one value per query.

The caller leaves out missing values (None), and reports their number; for a paired function it leaves out the whole
pair. NaN, infinity and empty input raise a ValueError. Equal seeds give equal results.

Gates, tables, page, calibration and diagnosis call it. It knows no measure and no row. ``agreement`` is a
module that few runs import. Begin reading with ``means.py`` and ``paired_tests.py``.
"""

from __future__ import annotations

from rag_harness.stats.distributions import clopper_pearson
from rag_harness.stats.inputs import Interval, Values
from rag_harness.stats.means import mean_bounds, mean_interval, mean_or_none, quantile, quantile_interval
from rag_harness.stats.paired_tests import difference_bounds, difference_interval, holm, holm_counts, permutation_test

__all__ = [
    "Interval",
    "Values",
    "clopper_pearson",
    "difference_bounds",
    "difference_interval",
    "holm",
    "holm_counts",
    "mean_bounds",
    "mean_interval",
    "mean_or_none",
    "permutation_test",
    "quantile",
    "quantile_interval",
]
