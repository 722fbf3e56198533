"""A paired test that assumes nothing of the values."""

from __future__ import annotations

from math import erfc, sqrt

import numpy as np

from rag_harness.stats.inputs import Floats, Values, differences_of, positive

MANY = 50_000
"""Differences from which their sum under random signs is as good as normal."""
_DOMINANT = 1e-3
"""Share of the sum's variance that one of them may have: where it has more, the others have little to say."""
_BLOCK = 12
"""Differences whose signs are drawn together: their 2**12 signed sums fill 32 KB, a core's first cache."""


def permutation_test(a: Values, b: Values, *, resamples: int = 10_000, seed: int = 0) -> float:
    """Return the two-sided p-value, in (0, 1], that the mean of a - b is 0: Fisher's paired randomization test.

    p is the share of sign assignments to the differences whose sum is at least as far from 0 as the one observed.
    All are counted where there are no more than ``resamples`` of them (up to 13 queries that differ, by default);
    else ``resamples`` are drawn and p = (count + 1) / (resamples + 1), which is never 0 (Phipson & Smyth 2010).
    Smucker et al. 2007 recommend the test for comparing retrieval runs.

    Of 50,000 differences or more, none of which dominates, the sums are taken as normal. Differences of one size are
    the worst case: p of 0.05 is then off by 0.0005, where 10,000 draws have a standard error of 0.0022. p is no less
    than the least that draws can give.
    """
    differences = differences_of(a, b, "permutation_test")
    # A difference of 0 adds nothing whatever its sign.
    differences = differences[differences != 0]
    if _is_normal(differences):
        return max(1 / (positive(resamples) + 1), _by_normal(differences))
    exact = len(differences) < positive(resamples).bit_length()
    rng = np.random.default_rng(seed)
    sums = _signed_sums(differences) if exact else _drawn_signed_sums(differences, resamples, rng)
    # Sums that are equal on paper differ by rounding, and must count as equal.
    bound = abs(differences.sum()) - 1e-12 * np.abs(differences).sum()
    extreme = int(np.count_nonzero(np.abs(sums) >= bound))
    return extreme / len(sums) if exact else (extreme + 1) / (resamples + 1)


def _is_normal(differences: Floats) -> bool:
    squares = differences**2
    return len(squares) >= MANY and bool(squares.max() <= _DOMINANT * squares.sum())


def _by_normal(differences: Floats) -> float:
    """Return the share of signed sums as far from 0 as the one observed; their variance is the sum of squares."""
    return erfc(abs(float(differences.sum())) / sqrt(2 * float((differences**2).sum())))


def _signed_sums(values: Floats) -> Floats:
    """Return the sums of the values under all 2**n assignments of signs."""
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate((sums - value, sums + value))
    return sums


def _drawn_signed_sums(values: Floats, resamples: int, rng: np.random.Generator) -> Floats:
    """Return the sums under random signs; one random number picks the signs of a whole block of values."""
    total = np.zeros(resamples)
    for start in range(0, len(values), _BLOCK):
        sums = _signed_sums(values[start : start + _BLOCK])
        total += sums[rng.integers(0, len(sums), resamples)]
    return total
