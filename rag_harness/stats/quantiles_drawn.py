"""The bootstrap of a quantile's difference, of many cases, without drawing all of them."""

from __future__ import annotations

from math import inf, sqrt

import numpy as np
import numpy.typing as npt

from rag_harness.stats.inputs import Floats
from rag_harness.stats.resampling import by_chunks

MANY = 20_000
"""Cases from which it pays."""
_REACH = 8
"""Standard deviations of a quantile's rank that are looked at: 1e-15 of the samples have theirs further out."""


def drawn_differences(first: Floats, second: Floats, place: int, resamples: int, rng: np.random.Generator) -> Floats:
    """Return the quantile of ``first`` minus that of ``second`` in samples of the cases, as many, with replacement.

    A sample's quantile is one of the values around the quantile. Of cases with neither value among these it matters
    on which side they are and nothing else, so they are counted and not drawn.

    Args:
        first: values of one side, shape (cases,).
        second: values of the other side, of the same cases.
        place: of the quantile among the sorted values, from 0.
        resamples: how many samples.
        rng: draws them.
    """
    cases, counts = np.unique(_paired(_around(first, place), _around(second, place)), return_counts=True)
    n = len(first)

    def drawn(rows: int) -> Floats:
        times = rng.multinomial(n, counts / n, rows)
        return _quantiles(cases.real, times, place) - _quantiles(cases.imag, times, place)

    return by_chunks(resamples, len(cases), drawn)


def _around(values: Floats, place: int) -> Floats:
    """Return the values with those that no sample's quantile can be moved to infinity, each to its side."""
    n, share = len(values), place / len(values)
    reach = int(_REACH * sqrt(n * share * (1 - share))) + 1
    ends = max(0, place - reach), min(n - 1, place + reach)
    low, high = np.partition(values, ends)[[*ends]]
    return np.where(values < low, -inf, np.where(values > high, inf, values))


def _paired(first: Floats, second: Floats) -> npt.NDArray[np.complex128]:
    """Return pairs as complex numbers, which are sorted fast; made in two steps, for inf * 1j is no number."""
    pairs = np.empty(len(first), np.complex128)
    pairs.real, pairs.imag = first, second
    return pairs


def _quantiles(values: Floats, times: npt.NDArray[np.int64], place: int) -> Floats:
    """Return the value at a place of each sample that has the values so many ``times``, shape (samples, values)."""
    order = np.argsort(values)
    upto = times[:, order].cumsum(axis=1)
    return np.asarray(values[order][(upto > place).argmax(axis=1)])
