"""Ranks with ties: equal values share their mean rank."""

from __future__ import annotations

import numpy as np

from rag_harness.stats.inputs import Floats


def mid_ranks(values: Floats) -> Floats:
    """Return the rank of each value from 1. Equal values have the mean of their ranks."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return np.asarray((ends - (counts - 1) / 2)[place])
