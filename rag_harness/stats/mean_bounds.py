"""Chooses the bounds of a mean by the range of its values, by simulations (docs/dev/results/verdicts.md).

An interval consists of the two bounds, each at a confidence at which both hold together. So the interval beside a value
and the bound that decides about it never contradict each other.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import sqrt

import numpy as np

from rag_harness.stats.bounded import ValueRange, bounded_bounds, within
from rag_harness.stats.inputs import Floats, UndefinedError, Values, checked_confidence, floats
from rag_harness.stats.intervals import Interval
from rag_harness.stats.shares import finite_share_bounds, share_bounds
from rag_harness.stats.students import skewed_t_bounds, t_bounds


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
        UndefinedError: the values allow no bounds; says why.
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
