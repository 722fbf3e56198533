"""Bounds of a mean whose values have no known range: Student's t, and the bootstrap-t where the cases are few."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from rag_harness.stats.clusters import ClusterSums, cluster_sums, standard_error, weighed
from rag_harness.stats.distributions import t_quantile
from rag_harness.stats.inputs import Floats, UndefinedError, Values, checked, floats, positive
from rag_harness.stats.intervals import Interval
from rag_harness.stats.resampling import by_chunks

_NO_SPREAD = 1e-9
"""Of the standard error: a resample below it has drawn equal values only."""


def t_bounds(values: Values, confidence: float = 0.95, clusters: Sequence[Hashable] | None = None) -> Interval:
    """Return a lower and an upper bound of the mean, each of which holds with ``confidence``: clusters - 1 degrees.

    Raises:
        UndefinedError: there is one value or cluster only, or all are equal: nothing is known of their spread.
    """
    sums, error = _spread(values, clusters, "t_bounds")
    half = t_quantile(max(checked(confidence), 0.5), len(sums.sizes) - 1) * error
    return Interval(sums.mean - half, sums.mean + half)


def t_interval(values: Values, confidence: float = 0.95, clusters: Sequence[Hashable] | None = None) -> Interval:
    """Bound the mean on both sides by Student's t."""
    return t_bounds(values, (1 + checked(confidence)) / 2, clusters)


def bootstrap_t_bounds(
    values: Values,
    confidence: float = 0.95,
    clusters: Sequence[Hashable] | None = None,
    *,
    resamples: int = 10_000,
    seed: int = 0,
) -> Interval:
    """Return the same by the bootstrap-t (Efron & Tibshirani 1993, 12.5), which follows the values' skewness.

    Resamples of equal values have no ratio and are left out.

    Raises:
        UndefinedError: as ``t_bounds``.
    """
    sums, error = _spread(values, clusters, "bootstrap_t_bounds")
    count, rng = len(sums.sizes), np.random.default_rng(seed)

    def draw(rows: int) -> Floats:
        weights = rng.multinomial(count, np.full(count, 1 / count), rows).astype(float)
        return np.stack(weighed(weights, sums), axis=1)

    means, errors = by_chunks(positive(resamples), count, draw).T
    usable = errors > _NO_SPREAD * error
    if not usable.any():
        raise UndefinedError("no resample differs, so nothing is known of their spread")
    ratios = (means[usable] - sums.mean) / errors[usable]
    least, most = np.quantile(ratios, [1 - checked(confidence), confidence])
    return Interval(float(sums.mean - most * error), float(sums.mean - least * error))


def _spread(values: Values, clusters: Sequence[Hashable] | None, who: str) -> tuple[ClusterSums, float]:
    array = floats(values, who)
    sums = cluster_sums(array, clusters)
    if len(sums.sizes) < 2:
        raise UndefinedError("one case bounds nothing" if len(array) == 1 else "all cases are of one cluster")
    error = standard_error(sums)
    if error <= 1e-12 * max(1e-300, float(np.abs(array).max())):
        raise UndefinedError("all values are equal, so nothing is known of their spread")
    return sums, error
