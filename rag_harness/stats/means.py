"""Means and quantiles with their intervals, also for clusters and for differences."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import lru_cache
from math import ceil, fsum, inf, isfinite, sqrt
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from rag_harness.stats.distributions import (
    beta_quantile,
    binomial_distribution,
    finite_share_bounds,
    share_bounds,
    t_quantile,
)
from rag_harness.stats.inputs import (
    Floats,
    Interval,
    UndefinedError,
    Values,
    by_chunks,
    checked_confidence,
    floats,
    positive,
)

# Means that do not depend on the order of values.


def mean_or_none(values: Iterable[float | None]) -> float | None:
    """Return the mean of the values that are not None, or None if all are. The order does not change a digit."""
    measured = [value for value in values if value is not None]
    if not all(map(isfinite, measured)):
        raise ValueError("mean_or_none got NaN or infinity. A value that could not be measured is None.")
    return fsum(measured) / len(measured) if measured else None


def mean_of(values: Floats) -> float | None:
    """Return the mean of an array; None where it is empty."""
    import numpy as np

    if not np.isfinite(values).all():
        raise ValueError("mean_of got NaN or infinity. A value that could not be measured is left out.")
    ones = int(np.count_nonzero(values == 1))
    # Most measures are 0 or 1: then the sum is a count, and exact.
    total = float(ones) if ones == np.count_nonzero(values) else fsum(values.tolist())
    return total / len(values) if len(values) else None


Statistic: TypeAlias = Callable[..., float]
"""Takes as many lists as the statistic needs."""
_Indices: TypeAlias = npt.NDArray[np.intp]
_DEFINED = 0.95
"""Least share of resamples in which the statistic is defined: with fewer, the bounds would be of another statistic."""


class Estimate(NamedTuple):
    """``value`` is None where it is undefined, ``interval`` where there are too few items; ``reason`` says why."""

    value: float | None
    interval: Interval | None = None
    reason: str = ""


def estimate(
    statistic: Statistic,
    *columns: Values,
    clusters: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> Estimate:
    """Return a statistic of the columns, with the percentile bootstrap over items as its interval (Efron 1979).

    Items of one cluster (a conversation, a document) are similar, so they are drawn together.
    """
    arrays = [floats(column, "estimate") for column in columns]
    try:
        value = statistic(*arrays)
    except UndefinedError as why:
        return Estimate(None, reason=str(why))
    members = members_of(clusters, len(arrays[0]))
    if len(members) < 2:
        return Estimate(value, reason="one item or cluster only, so no interval")
    drawn = _drawn(statistic, arrays, members, positive(resamples), np.random.default_rng(seed))
    if len(drawn) < _DEFINED * resamples:
        return Estimate(value, reason="too few items for an interval: many resamples do not define it")
    if min(drawn) == max(drawn):
        return Estimate(value, reason="no resample differs, so no interval")
    tail = (1 - checked_confidence(confidence)) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail])
    return Estimate(value, Interval(float(low), float(high)))


def members_of(clusters: Sequence[Hashable] | None, n: int) -> list[_Indices]:
    """Return the positions of each cluster's items. Without clusters each of ``n`` items is a cluster by itself."""
    if clusters is None:
        return list(np.arange(n).reshape(n, 1))
    if len(clusters) != n:
        raise ValueError(f"clusters are one a value; got {len(clusters)} for {n} values.")
    places: dict[Hashable, list[int]] = {}
    for place, cluster in enumerate(clusters):
        places.setdefault(cluster, []).append(place)
    return [np.asarray(each) for each in places.values()]


def _drawn(
    statistic: Statistic,
    arrays: Sequence[Floats],
    members: Sequence[_Indices],
    resamples: int,
    rng: np.random.Generator,
) -> list[float]:
    found = []
    for chosen in rng.integers(0, len(members), (resamples, len(members))):
        places = np.concatenate([members[number] for number in chosen])
        try:
            found.append(statistic(*(array[places] for array in arrays)))
        except UndefinedError:
            continue
    return found


# Clusters of similar cases, e.g. of one page or conversation: sums over clusters, and clustered standard errors.


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


# Bounds of a mean whose values have a known range, such as a share: Gaffke's, by random weights.
#
# Each draw weights the cases by a Dirichlet distribution, with one additional case that has the worst value of the
# range: unseen cases may be as bad. For values of 0 and 1 this is Clopper & Pearson's bound. Bounds by t or bootstrap
# collapse where a sample has none of the rare bad cases; this one does not (Gaffke 2005; Learned-Miller & Thomas 2020,
# who find no case in which it fails, but it is not proved in general).
#
# Equal values are weighted together, which changes nothing. Where there are very many values, similar ones are weighted
# together, too. The effect of a draw on their mean is then normal, with the same variance. The worst cases are not
# changed: a value with few similar ones has a bin of its own.

ValueRange = tuple[float, float]
"""The lowest and the highest possible value of a case."""
MANY_VALUES = 1000
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
        return _resampled_bounds(*_grouped(array, clusters), span, tail, resamples, seed)
    if len(array) >= MANY_VALUES:
        return _of_many(array, span, tail, resamples, seed)
    return _of_few(array.tobytes(), span, tail, resamples, seed)


@lru_cache(maxsize=64)  # experiments that differ only in their answers have equal values for retrieval
def _of_few(values: bytes, span: ValueRange, tail: float, resamples: int, seed: int) -> Interval:
    return _resampled_bounds(*_grouped(np.frombuffer(values), None), span, tail, resamples, seed)


def _resampled_bounds(
    sums: ClusterSums, counts: Floats, span: ValueRange, tail: float, resamples: int, seed: int
) -> Interval:
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
    """Return the weighted units, and how often each occurs. Equal values without clusters are weighted together."""
    if clusters is not None:
        sums = cluster_sums(array, clusters)
        return sums, np.ones(len(sums.sizes))
    distinct, counts = np.unique(array, return_counts=True)
    return ClusterSums(np.ones(len(distinct)), distinct), counts.astype(float)


def t_bounds(values: Values, confidence: float = 0.95, clusters: Sequence[Hashable] | None = None) -> Interval:
    """Return a lower and an upper bound of the mean. Each holds with ``confidence``; degrees of freedom: clusters - 1.

    Raises:
        UndefinedError: there is only one value or cluster, or all are equal: their variance is unknown.
    """
    sums, error = _spread(values, clusters, "t_bounds")
    half = t_quantile(max(checked_confidence(confidence), 0.5), len(sums.sizes) - 1) * error
    return Interval(sums.mean - half, sums.mean + half)


def skewed_t_bounds(values: Values, confidence: float = 0.95, clusters: Sequence[Hashable] | None = None) -> Interval:
    """Return the same bounds, wider on the side of the values' longer tail; never narrower than Student's t.

    ``skew_term`` is added there. In simulations it is wrong as rarely as the bootstrap-t, and needs no draws.

    Raises:
        UndefinedError: as ``t_bounds``.
    """
    sums, error = _spread(values, clusters, "skewed_t_bounds")
    count = len(sums.sizes)
    t = t_quantile(max(checked_confidence(confidence), 0.5), count - 1)
    residuals = sums.totals - sums.mean * sums.sizes
    skewness = float(np.mean(residuals**3) / np.mean(residuals**2) ** 1.5)
    more = skew_term(skewness, t, count)
    return Interval(sums.mean - error * (t + max(-more, 0.0)), sums.mean + error * (t + max(more, 0.0)))


def skew_term(skewness: float, t: float, n: int) -> float:
    """Return what skewness adds to the quantile t of a studentized mean of n values: skewness · (t² + 2) / (3 √n).

    Edgeworth's expansion has (2t² + 1) / 6 for smooth values (Johnson 1978, Hall 1992). This is a little more, as the
    count of a rare event needs: the upper bound of a Poisson count k is k + t √k + (t² + 2) / 3 + …
    """
    return skewness * (t * t + 2) / (3 * sqrt(n))


def _spread(values: Values, clusters: Sequence[Hashable] | None, who: str) -> tuple[ClusterSums, float]:
    array = floats(values, who)
    sums = cluster_sums(array, clusters)
    if len(sums.sizes) < 2:
        raise UndefinedError("one case bounds nothing" if len(array) == 1 else "all cases are of one cluster")
    error = standard_error(sums)
    if error <= 1e-12 * max(1e-300, float(np.abs(array).max())):
        raise UndefinedError("all values are equal, so nothing is known of their spread")
    return sums, error


# Chooses the bounds of a mean by the range of its values, by simulations (docs/dev/results/verdicts.md).
#
# An interval consists of the two bounds, each at a confidence at which both hold together. So the interval beside a
# value and the bound that decides about it never contradict each other.


def mean_interval(
    values: Values,
    span: ValueRange | None = None,
    confidence: float = 0.95,
    clusters: Sequence[Hashable] | None = None,
    population: int | None = None,
) -> Interval:
    """Return an interval of a mean that contains it with ``confidence``, in the unit of the values.

    The arguments are those of ``mean_bounds``.

    Raises:
        UndefinedError, ValueError: as ``mean_bounds``.
    """
    return mean_bounds(values, span, (1 + checked_confidence(confidence)) / 2, clusters, population)


def mean_bounds(
    values: Values,
    span: ValueRange | None = None,
    confidence: float = 0.95,
    clusters: Sequence[Hashable] | None = None,
    population: int | None = None,
) -> Interval:
    """Return a lower and an upper bound of a mean. Each holds by itself with ``confidence``.

    Args:
        values: one for each case.
        span: lowest and highest possible value, where that is known.
        confidence: confidence of each bound.
        clusters: cluster of each case; None where there are none.
        population: number of all cases, where the mean is about these only; None where it is about all cases like
            these.

    Raises:
        UndefinedError: the values allow no bounds. The message has the reason.
        ValueError: no values, NaN, a value outside the span, more values than the population has.
    """
    array = within(values, span) if span else floats(values, "mean_bounds")
    checked_confidence(confidence)
    if population is not None and len(array) > population:
        raise ValueError(f"{len(array)} values cannot be of a population of {population}.")
    if clusters is not None and len(clusters) != len(array):
        raise ValueError(f"clusters are one a value; got {len(clusters)} for {len(array)} values.")
    if population == len(array):
        return Interval(float(array.mean()), float(array.mean()))
    alone = clusters is None or len(set(clusters)) == len(array)
    if alone and span and np.isin(array, span).all():
        return _share(array, span, confidence, population)
    bounds = _open(array, span, confidence, None if alone else clusters)
    return bounds if population is None else of_these(bounds, array, span, population)


def _open(array: Floats, span: ValueRange | None, confidence: float, clusters: Sequence[Hashable] | None) -> Interval:
    if clusters is not None and len(set(clusters)) < 2:
        raise UndefinedError("all cases are of one cluster, which bounds nothing")
    if span is None:
        return skewed_t_bounds(array, confidence, clusters)
    bounds = bounded_bounds(array, span, confidence, clusters)
    if clusters is None:
        return bounds
    try:
        return _wider(_held(t_bounds(array, confidence, clusters), span), bounds)
    except UndefinedError:
        return bounds


def _share(array: Floats, span: ValueRange, confidence: float, population: int | None) -> Interval:
    successes, n = int((array == span[1]).sum()), len(array)
    found = (
        share_bounds(successes, n, confidence)
        if population is None
        else finite_share_bounds(successes, n, population, confidence)
    )
    return Interval(*(span[0] + share * (span[1] - span[0]) for share in found))


def _held(bounds: Interval, span: ValueRange) -> Interval:
    return Interval(max(bounds.low, span[0]), min(bounds.high, span[1]))


def _wider(first: Interval, second: Interval) -> Interval:
    return Interval(min(first.low, second.low), max(first.high, second.high))


def of_these(bounds: Interval, array: Floats, span: ValueRange | None, population: int) -> Interval:
    """Narrow the bounds to the mean of a finite population that the values are a part of.

    The finite-population correction is sqrt(1 - n / N). The seen values and the span may narrow the bounds further.
    """
    mean, kept = float(array.mean()), sqrt(1 - len(array) / population)
    low, high = (mean + kept * (end - mean) for end in bounds)
    if span is None:
        return Interval(low, high)
    least, most = ((array.sum() + (population - len(array)) * end) / population for end in span)
    return Interval(max(low, float(least)), min(high, float(most)))


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


MANY_CASES = 20_000
"""Number of cases from which this is faster."""
_REACH = 8
"""Standard deviations of a quantile's rank that are considered: only 1e-15 of the samples are further out."""


def drawn_differences(first: Floats, second: Floats, place: int, resamples: int, rng: np.random.Generator) -> Floats:
    """Return the quantile of ``first`` minus that of ``second`` in bootstrap samples of the cases.

    A sample's quantile is one of the values near the quantile. For a case without a value near it, only the side of its
    values matters. So such cases are counted and not drawn.

    Args:
        first: values of one side, shape (cases,).
        second: values of the other side, of the same cases.
        place: position of the quantile among the sorted values, from 0.
        resamples: number of samples.
        rng: random number generator.
    """
    cases, counts = np.unique(_paired(_around(first, place), _around(second, place)), return_counts=True)
    n = len(first)

    def drawn(rows: int) -> Floats:
        times = rng.multinomial(n, counts / n, rows)
        return _quantiles(cases.real, times, place) - _quantiles(cases.imag, times, place)

    return by_chunks(resamples, len(cases), drawn)


def _around(values: Floats, place: int) -> Floats:
    """Return the values; those too far out to be a sample's quantile become infinite, with their sign."""
    n, share = len(values), place / len(values)
    reach = int(_REACH * sqrt(n * share * (1 - share))) + 1
    ends = max(0, place - reach), min(n - 1, place + reach)
    low, high = np.partition(values, ends)[[*ends]]
    return np.where(values < low, -inf, np.where(values > high, inf, values))


def _paired(first: Floats, second: Floats) -> npt.NDArray[np.complex128]:
    """Return pairs as complex numbers, which sort fast. They are made in two steps, because inf * 1j is NaN."""
    pairs = np.empty(len(first), np.complex128)
    pairs.real, pairs.imag = first, second
    return pairs


def _quantiles(values: Floats, times: npt.NDArray[np.int64], place: int) -> Floats:
    """Return the value at a position of each sample; ``times`` has the counts of values, shape (samples, values)."""
    order = np.argsort(values)
    upto = times[:, order].cumsum(axis=1)
    return np.asarray(values[order][(upto > place).argmax(axis=1)])


# Bounds of a quantile where cases are alike: those of the share of cases up to a value, turned round (Woodruff 1952).
#
# The share of cases up to a value has Clopper & Pearson's bounds for as many independent cases as the clusters are
# worth (Korn & Graubard 1998, Survey Methodology 24).


def clustered_quantile_bounds(
    values: Values, share: float, clusters: Sequence[Hashable], confidence: float = 0.95
) -> Interval:
    """Return a lower and an upper bound of a quantile. Each holds by itself with ``confidence``.

    The quantile is at most x where at least ``share`` of all cases lie up to x; that is sure where the lower bound of
    this share says so. An end is infinite where no value is far enough out.

    Raises:
        UndefinedError: all cases are of one cluster.
        ValueError: no values, NaN, or a share that is not between 0 and 1.
    """
    if not 0 < share < 1:
        raise ValueError(f"a quantile needs a share between 0 and 1, e.g. 0.95; got {share}.")
    unsorted = floats(values, "clustered_quantile_bounds")
    if len(set(clusters)) < 2:
        raise UndefinedError("all cases are of one cluster, which bounds nothing")
    worth = _worth(unsorted, share, clusters, checked_confidence(confidence))
    distinct, counts = np.unique(unsorted, return_counts=True)
    up_to = np.cumsum(counts) / len(unsorted)
    before = np.concatenate([[0.0], up_to[:-1]])
    above = _first(up_to, lambda part: _low(part, worth, confidence) >= share)
    below = _first(before, lambda part: _high(part, worth, confidence) > share)
    return Interval(
        float(distinct[below - 1]) if below else -inf, float(distinct[above]) if above < len(distinct) else inf
    )


def quantile_interval_of(values: Values, share: float, clusters: Sequence[Hashable] | None) -> Interval | None:
    """Return the 95 % interval of a quantile, by cluster where cases have any; None where all are of one cluster."""
    if clusters is None or len(set(clusters)) == len(clusters):
        return quantile_interval(values, share)
    try:
        return clustered_quantile_bounds(values, share, clusters, 0.975)
    except UndefinedError:
        return None


def _worth(array: Floats, share: float, clusters: Sequence[Hashable], confidence: float) -> float:
    """Return how many independent cases say as much of the share up to the quantile as these clusters do."""
    ordered, n, count = np.sort(array).tolist(), len(array), len(set(clusters))
    # How alike few cases beyond a far quantile are is hardly known. At the median it is known better.
    effect = max(_design_effect((array <= quantile(ordered, at)).astype(float), clusters) for at in (share, 0.5))
    t = max(confidence, 0.75)
    return max(1.0, n / effect * (t_quantile(t, n - 1) / t_quantile(t, count - 1)) ** 2)


def _design_effect(inside: Floats, clusters: Sequence[Hashable]) -> float:
    """Return the design effect of a share: by how much clusters increase its variance."""
    mean, n = float(inside.mean()), len(inside)
    sums = cluster_sums(inside, clusters)
    if not 0 < mean < 1:
        return n / len(sums.sizes)
    return max(1.0, standard_error(sums) ** 2 * n / (mean * (1 - mean)))


def _first(parts: Floats, holds: Callable[[float], bool]) -> int:
    """Return the place of the first of growing parts for which something holds; their number where it never does."""
    low, high = 0, len(parts)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(float(parts[middle])) else (middle + 1, high)
    return low


def _low(share: float, n: float, confidence: float) -> float:
    return beta_quantile(1 - confidence, share * n, n - share * n + 1) if share > 0 else 0.0


def _high(share: float, n: float, confidence: float) -> float:
    return beta_quantile(confidence, share * n + 1, n - share * n) if share < 1 else 1.0
