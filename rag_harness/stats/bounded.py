"""Bounds of a mean whose values have a known range, such as a share: Gaffke's, by weights drawn at random.

Each draw weighs the cases by a Dirichlet distribution, and one case more that has the worst value of the range: what
the sample has not shown could be as bad as that. Of values that are 0 or 1 it is Clopper & Pearson's bound; unlike t
and bootstraps it does not collapse where a sample happens to miss the rare bad cases (Gaffke 2005; Learned-Miller &
Thomas 2020, who find no case in which it fails, though nobody has proved that there is none).

Equal values are weighed together, which changes nothing. Of very many, those that are near each other are, too: how
far a draw may move their mean is then a normal number, of the variance that it has. The worst cases stay what they are:
a value that few others are near has a bin of its own.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import lru_cache
from math import ceil

import numpy as np

from rag_harness.stats.clusters import ClusterSums, cluster_sums
from rag_harness.stats.inputs import Floats, Values, checked, floats, positive
from rag_harness.stats.intervals import Interval
from rag_harness.stats.resampling import by_chunks

Span = tuple[float, float]
"""The least and the greatest value that a case can have."""
MANY = 1000
"""Values from which those that are near each other are weighed together."""
DRAWS = 10_000
_BEYOND, _MOST_DRAWS = 25, 100_000
"""Draws that are to lie beyond a bound, and the most that are made for that."""
_BINS = 256
"""Of the whole range: the values of a bin differ by a 256th of it at most."""


def bounded_bounds(
    values: Values,
    span: Span = (0, 1),
    confidence: float = 0.95,
    clusters: Sequence[Hashable] | None = None,
    *,
    resamples: int | None = None,
    seed: int = 0,
) -> Interval:
    """Return a lower and an upper bound of the mean, each of which holds with ``confidence``.

    More is drawn where the confidence is so high that few draws would lie beyond a bound.

    Raises:
        ValueError: a value lies outside the span.
    """
    array, tail = within(values, span), 1 - checked(confidence)
    resamples = max(DRAWS if resamples is None else positive(resamples), min(ceil(_BEYOND / tail), _MOST_DRAWS))
    if clusters is not None:
        return _drawn(*_grouped(array, clusters), span, tail, resamples, seed)
    if len(array) >= MANY:
        return _of_many(array, span, tail, resamples, seed)
    return _of_few(array.tobytes(), span, tail, resamples, seed)


@lru_cache(maxsize=64)  # experiments that differ in their answers alone have equal values of what they found
def _of_few(values: bytes, span: Span, tail: float, resamples: int, seed: int) -> Interval:
    return _drawn(*_grouped(np.frombuffer(values), None), span, tail, resamples, seed)


def _drawn(sums: ClusterSums, counts: Floats, span: Span, tail: float, resamples: int, seed: int) -> Interval:
    # The unseen case is as large as the clusters are on average.
    size = float((sums.sizes * counts).sum() / counts.sum())
    rng = np.random.default_rng(seed)

    def draw(rows: int) -> Floats:
        weights = _weights(counts, rows, rng)
        more = rng.standard_exponential(rows) * size
        total, every = weights @ sums.totals, weights @ sums.sizes + more
        return np.stack([(total + more * end) / every for end in span], axis=1)

    lows, highs = by_chunks(resamples, len(counts), draw).T
    return Interval(float(np.quantile(lows, tail)), float(np.quantile(highs, 1 - tail)))


def _of_many(array: Floats, span: Span, tail: float, resamples: int, seed: int) -> Interval:
    counts, means, spreads = _binned(array, span)
    rng = np.random.default_rng(seed)

    def draw(rows: int) -> Floats:
        weights = _weights(counts, rows, rng)
        more = rng.standard_exponential(rows)
        # Of a bin's weight the parts are uniform on a simplex: their mean varies by s² / (count + 1).
        moved = np.sqrt(weights**2 @ (spreads / (counts + 1))) * rng.standard_normal(rows)
        total, every = weights @ means + moved, weights.sum(axis=1) + more
        return np.stack([(total + more * end) / every for end in span], axis=1)

    lows, highs = by_chunks(resamples, len(counts), draw).T
    low, high = float(np.quantile(lows, tail)), float(np.quantile(highs, 1 - tail))
    return Interval(max(low, span[0]), min(high, span[1]))


def _binned(array: Floats, span: Span) -> tuple[Floats, Floats, Floats]:
    """Return of each bin that has values how many, their mean, and their variance."""
    place = np.minimum(((array - span[0]) / (span[1] - span[0]) * _BINS).astype(np.intp), _BINS - 1)
    every = np.bincount(place, minlength=_BINS)
    there = every > 0
    counts: Floats = every[there].astype(float)
    # From the middle of the bin: of large sums the difference would be rounded away.
    middle = span[0] + (np.arange(_BINS) + 0.5) * (span[1] - span[0]) / _BINS
    apart = array - middle[place]
    shift = np.bincount(place, apart, _BINS)[there] / counts
    squares = np.bincount(place, apart**2, _BINS)[there] / counts
    return counts, middle[there] + shift, np.maximum(squares - shift**2, 0.0)


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
