"""Ranks, equal values sharing theirs."""

from __future__ import annotations

import numpy as np

from rag_harness.stats.inputs import Floats


def mid_ranks(values: Floats) -> Floats:
    """Return the rank of each value from 1; equal values have the mean of the ranks that they take up."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return np.asarray((ends - (counts - 1) / 2)[place])
