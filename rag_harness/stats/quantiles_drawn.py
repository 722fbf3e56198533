"""The bootstrap of a quantile's difference for many cases, without drawing all cases."""

from __future__ import annotations

from math import inf, sqrt

import numpy as np
import numpy.typing as npt

from rag_harness.stats.inputs import Floats
from rag_harness.stats.resampling import by_chunks

MANY = 20_000
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
