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

import numpy as np

from rag_harness.stats.clusters import ClusterSums, cluster_sums
from rag_harness.stats.inputs import Floats, Values, checked, floats, positive
from rag_harness.stats.intervals import Interval
from rag_harness.stats.resampling import by_chunks

Span = tuple[float, float]
"""The least and the greatest value that a case can have."""
MANY = 1000
"""Values from which those that are near each other are weighed together."""
_BINS = 256
"""Of the whole range: the values of a bin differ by a 256th of it at most."""
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
    if clusters is None and len(array) >= MANY:
        return _of_many(array, span, confidence, unseen, positive(resamples), seed)
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


def _of_many(array: Floats, span: Span, confidence: float, unseen: float, resamples: int, seed: int) -> Interval:
    counts, means, spreads = _binned(array, span)
    rng, tail = np.random.default_rng(seed), 1 - checked(confidence)

    def draw(rows: int) -> Floats:
        weights = _weights(counts, rows, rng)
        more = rng.standard_gamma(unseen, rows)
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
