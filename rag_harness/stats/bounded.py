"""Bounds of a mean whose values have a known range, such as a share: Gaffke's, by random weights.

Each draw weights the cases by a Dirichlet distribution, with one additional case that has the worst value of the range:
unseen cases may be as bad. For values of 0 and 1 this is Clopper & Pearson's bound. Bounds by t or bootstrap collapse
where a sample has none of the rare bad cases; this one does not (Gaffke 2005; Learned-Miller & Thomas 2020, who find no
case in which it fails, but it is not proved in general).

Equal values are weighted together, which changes nothing. Where there are very many values, similar ones are weighted
together, too. The effect of a draw on their mean is then normal, with the same variance. The worst cases are not
changed: a value with few similar ones has a bin of its own.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import lru_cache
from math import ceil

import numpy as np

from rag_harness.stats.clusters import ClusterSums, cluster_sums
from rag_harness.stats.inputs import Floats, Values, checked_confidence, floats, positive
from rag_harness.stats.intervals import Interval
from rag_harness.stats.resampling import by_chunks

ValueRange = tuple[float, float]
"""The lowest and the highest possible value of a case."""
MANY = 1000
"""Number of values from which similar ones are weighted together."""
DRAWS = 10_000
_BEYOND, _MOST_DRAWS = 25, 100_000
"""Draws that should lie beyond a bound, and the most draws for that."""
_BINS = 256
"""Bins of the whole range: values of one bin differ by at most a 256th of it."""


def bounded_bounds(
    values: Values,
    span: ValueRange = (0, 1),
    confidence: float = 0.95,
    clusters: Sequence[Hashable] | None = None,
    *,
    resamples: int | None = None,
    seed: int = 0,
) -> Interval:
    """Return a lower and an upper bound of the mean. Each holds with ``confidence``.

    More draws are made where the confidence is so high that few would lie beyond a bound.

    Raises:
        ValueError: a value lies outside the span.
    """
    array, tail = within(values, span), 1 - checked_confidence(confidence)
    resamples = max(DRAWS if resamples is None else positive(resamples), min(ceil(_BEYOND / tail), _MOST_DRAWS))
    if clusters is not None:
        return _drawn(*_grouped(array, clusters), span, tail, resamples, seed)
    if len(array) >= MANY:
        return _of_many(array, span, tail, resamples, seed)
    return _of_few(array.tobytes(), span, tail, resamples, seed)


@lru_cache(maxsize=64)  # experiments that differ only in their answers have equal values for retrieval
def _of_few(values: bytes, span: ValueRange, tail: float, resamples: int, seed: int) -> Interval:
    return _drawn(*_grouped(np.frombuffer(values), None), span, tail, resamples, seed)


def _drawn(sums: ClusterSums, counts: Floats, span: ValueRange, tail: float, resamples: int, seed: int) -> Interval:
    # The unseen case has the mean size of the clusters.
    size = float((sums.sizes * counts).sum() / counts.sum())
    rng = np.random.default_rng(seed)

    def draw(rows: int) -> Floats:
        weights = _weights(counts, rows, rng)
        more = rng.standard_exponential(rows) * size
        total, every = weights @ sums.totals, weights @ sums.sizes + more
        return np.stack([(total + more * end) / every for end in span], axis=1)

    lows, highs = by_chunks(resamples, len(counts), draw).T
    return Interval(float(np.quantile(lows, tail)), float(np.quantile(highs, 1 - tail)))


def _of_many(array: Floats, span: ValueRange, tail: float, resamples: int, seed: int) -> Interval:
    counts, means, spreads = _binned(array, span)
    rng = np.random.default_rng(seed)

    def draw(rows: int) -> Floats:
        weights = _weights(counts, rows, rng)
        more = rng.standard_exponential(rows)
        # The parts of a bin's weight are uniform on a simplex, so their mean has the variance s² / (count + 1).
        moved = np.sqrt(weights**2 @ (spreads / (counts + 1))) * rng.standard_normal(rows)
        total, every = weights @ means + moved, weights.sum(axis=1) + more
        return np.stack([(total + more * end) / every for end in span], axis=1)

    lows, highs = by_chunks(resamples, len(counts), draw).T
    low, high = float(np.quantile(lows, tail)), float(np.quantile(highs, 1 - tail))
    return Interval(max(low, span[0]), min(high, span[1]))


def _binned(array: Floats, span: ValueRange) -> tuple[Floats, Floats, Floats]:
    """Return the count, the mean and the variance of each bin with values."""
    place = np.minimum(((array - span[0]) / (span[1] - span[0]) * _BINS).astype(np.intp), _BINS - 1)
    every = np.bincount(place, minlength=_BINS)
    there = every > 0
    counts: Floats = every[there].astype(float)
    # Relative to the middle of the bin: with large sums the difference would be lost by rounding.
    middle = span[0] + (np.arange(_BINS) + 0.5) * (span[1] - span[0]) / _BINS
    apart = array - middle[place]
    shift = np.bincount(place, apart, _BINS)[there] / counts
    squares = np.bincount(place, apart**2, _BINS)[there] / counts
    return counts, middle[there] + shift, np.maximum(squares - shift**2, 0.0)


def within(values: Values, span: ValueRange) -> Floats:
    """Return the values as an array.

    Raises:
        ValueError: a value lies outside the span, or the span is empty.
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
    """Return what is weighted, and how often each occurs. Equal values without clusters are weighted together."""
    if clusters is not None:
        sums = cluster_sums(array, clusters)
        return sums, np.ones(len(sums.sizes))
    distinct, counts = np.unique(array, return_counts=True)
    return ClusterSums(np.ones(len(distinct)), distinct), counts.astype(float)
