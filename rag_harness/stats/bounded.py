"""Bounds of a mean whose values have a known range, such as a share: Gaffke's, by weights drawn at random.

Each draw weighs the cases by a Dirichlet distribution, and one case more that has the worst value of the range: what
the sample has not shown could be as bad as that. Of values that are 0 or 1 it is Clopper & Pearson's bound; unlike t
and bootstraps it does not collapse where a sample happens to miss the rare bad cases (Gaffke 2005; Learned-Miller &
Thomas 2020, who find no case in which it fails, though nobody has proved that there is none).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import lru_cache

import numpy as np

from rag_harness.stats.clusters import ClusterSums, cluster_sums
from rag_harness.stats.inputs import Floats, Values, checked, floats, positive
from rag_harness.stats.intervals import Interval
from rag_harness.stats.resampling import by_chunks

Span = tuple[float, float]
"""The least and the greatest value that a case can have."""
_INTERVAL_CASE = 0.5
"""Half an unseen case on either side, as Jeffreys' interval of a share has: both tails err, but not at once."""


def bounded_bounds(
    values: Values,
    span: Span = (0, 1),
    confidence: float = 0.95,
    clusters: Sequence[Hashable] | None = None,
    *,
    unseen: float = 1,
    resamples: int = 10_000,
    seed: int = 0,
) -> Interval:
    """Return a lower and an upper bound of the mean, each of which holds with ``confidence``.

    ``unseen`` is the weight, in cases, of what was not seen.

    Raises:
        ValueError: a value lies outside the span.
    """
    array = within(values, span)
    sums, counts = _grouped(array, clusters)
    # The unseen case is as large as the clusters are on average.
    size = float((sums.sizes * counts).sum() / counts.sum())
    rng, tail = np.random.default_rng(seed), 1 - checked(confidence)

    def draw(rows: int) -> Floats:
        weights = _weights(counts, rows, rng)
        more = rng.standard_gamma(unseen, rows) * size
        total, every = weights @ sums.totals, weights @ sums.sizes + more
        return np.stack([(total + more * end) / every for end in span], axis=1)

    lows, highs = by_chunks(positive(resamples), len(counts), draw).T
    return Interval(float(np.quantile(lows, tail)), float(np.quantile(highs, 1 - tail)))


def bounded_interval(values: Values, span: Span = (0, 1), confidence: float = 0.95) -> Interval:
    """Bound the mean on both sides, in the unit of the values."""
    return _interval(within(values, span).tobytes(), span, (1 + checked(confidence)) / 2)


@lru_cache(maxsize=8)  # as of the bootstrap's: experiments often have equal values
def _interval(values: bytes, span: Span, confidence: float) -> Interval:
    return bounded_bounds(np.frombuffer(values), span, confidence, unseen=_INTERVAL_CASE)


def within(values: Values, span: Span) -> Floats:
    """Return the values as an array.

    Raises:
        ValueError: one lies outside the span, or the span is none.
    """
    array, (low, high) = floats(values, "a bounded mean"), span
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        raise ValueError(f"a bounded mean needs two finite ends; got {low:g} to {high:g}.")
    if array.min() < low or array.max() > high:
        raise ValueError(f"values lie between {low:g} and {high:g}; got {array.min():g} to {array.max():g}.")
    return array


def _weights(counts: Floats, rows: int, rng: np.random.Generator) -> Floats:
    size = (rows, len(counts))
    return rng.standard_exponential(size) if counts.max() == 1 else rng.standard_gamma(counts, size)


def _grouped(array: Floats, clusters: Sequence[Hashable] | None) -> tuple[ClusterSums, Floats]:
    """Return what is weighed, and how many of each: equal values that stand alone are weighed together."""
    if clusters is not None:
        sums = cluster_sums(array, clusters)
        return sums, np.ones(len(sums.sizes))
    distinct, counts = np.unique(array, return_counts=True)
    return ClusterSums(np.ones(len(distinct)), distinct), counts.astype(float)
