"""Quantiles and their distribution-free intervals."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, inf

import numpy as np

from rag_harness.stats.binomial import binomial_distribution
from rag_harness.stats.inputs import Values, checked_confidence, floats
from rag_harness.stats.intervals import Interval


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return the value that ``share`` of the ordered values do not exceed (nearest rank); 0 where there are none."""
    if not ordered:
        return 0.0
    rank = ceil(round(share * len(ordered), 9))  # rounded, because 0.07 * 100 is a little more than 7
    return ordered[max(rank, 1) - 1]


def quantile_interval(values: Values, share: float, confidence: float = 0.95) -> Interval:
    """Return an interval of a quantile of the values' distribution, whatever that distribution is.

    The bounds are two of the ordered values (David & Nagaraja 2003, Order Statistics, 7.1). The i-th value is above the
    quantile only where fewer than i values are below the quantile, which has a binomial probability. Each tail is at
    most (1 - confidence) / 2. Where no value is far enough out, the bound is infinite.
    """
    if not 0 < share < 1:
        raise ValueError(f"quantile_interval needs a share between 0 and 1, e.g. 0.95; got {share}.")
    ordered = np.sort(floats(values, "quantile_interval"))
    n, tail = len(ordered), (1 - checked_confidence(confidence)) / 2
    at_most = binomial_distribution(n, share)
    # The i-th value, counted from 1, is above the quantile where at most i - 1 values are below it.
    low = int(np.count_nonzero(at_most <= tail))
    high = int(np.argmax(at_most >= 1 - tail)) + 1
    return Interval(float(ordered[low - 1]) if low else -inf, float(ordered[high - 1]) if high <= n else inf)
