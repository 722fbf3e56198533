"""Clusters of similar cases, e.g. of one page or conversation: sums over clusters, and clustered standard errors."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from rag_harness.stats.estimate import members_of
from rag_harness.stats.inputs import Floats


class ClusterSums(NamedTuple):
    """Number and sum of each cluster's values, shape (clusters,)."""

    sizes: Floats
    totals: Floats

    @property
    def mean(self) -> float:
        """The mean of all values."""
        return float(self.totals.sum() / self.sizes.sum())


def cluster_sums(values: Floats, clusters: Sequence[Hashable] | None = None) -> ClusterSums:
    """Sum each cluster. Without ``clusters`` each value is a cluster by itself."""
    if clusters is None:
        return ClusterSums(np.ones(len(values)), values)
    members = members_of(clusters, len(values))
    return ClusterSums(np.array([float(len(at)) for at in members]), np.array([values[at].sum() for at in members]))


def weighed(weights: Floats, sums: ClusterSums) -> tuple[Floats, Floats]:
    """Return mean and standard error where each cluster counts as often as in ``weights``, (resamples, clusters).

    SE² = C / (C - 1) · Σ_c (Σ residuals)² / n² (Miller 2024, arXiv 2411.00640). Without clusters this is s² / n.
    """
    sizes, totals = sums
    # Residuals from the overall mean are near 0, so their sums of squares lose no digits.
    centred = totals - sums.mean * sizes
    every = weights @ sizes
    shift = weights @ centred / every
    squares = weights @ centred**2 - 2 * shift * (weights @ (centred * sizes)) + shift**2 * (weights @ sizes**2)
    count = len(sizes)
    return sums.mean + shift, np.sqrt(np.maximum(squares, 0) * count / max(count - 1, 1)) / every


def standard_error(sums: ClusterSums) -> float:
    """Return the standard error of the mean, in the unit of the values."""
    return float(weighed(np.ones((1, len(sums.sizes))), sums)[1][0])
