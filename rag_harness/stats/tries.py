"""Several tries of each case: the chance that all of k are right, the worst of k, and how often two disagree.

A case has n tries, and k of them are drawn without replacement. Each function returns one number a case, the mean over
all draws. That is an unbiased estimate of what k new tries of the case come to. So a mean over cases has one value a
case, and its bounds count cases, not tries.
"""

from __future__ import annotations

from math import comb

import numpy as np
import numpy.typing as npt

from rag_harness.stats.inputs import Floats

Rights = npt.NDArray[np.bool_]
"""Whether each try is right, shape (cases, tries)."""


def all_right(right: Rights, k: int) -> Floats:
    """Return C(c, k) / C(n, k) for each case, with c right tries of n: pass^k (Yao et al. 2024, arXiv 2406.12045).

    Raises:
        ValueError: k is below 1, or above the number of tries.
    """
    n = _checked(right.shape[1], k)
    chance = np.array([comb(c, k) / comb(n, k) for c in range(n + 1)])
    found: Floats = chance[right.sum(axis=1)]
    return found


def worst_of(values: Floats, k: int, low_is_worst: bool = True) -> Floats:
    """Return the mean worst value of k tries for each case, from values of shape (cases, tries).

    The ith lowest of n values is the lowest of C(n - i, k - 1) of the C(n, k) draws.

    Raises:
        ValueError: k is below 1, or above the number of tries.
    """
    n = _checked(values.shape[1], k)
    ordered = np.sort(values, axis=1) if low_is_worst else -np.sort(-values, axis=1)
    shares = np.array([comb(n - i, k - 1) / comb(n, k) for i in range(1, n + 1)])
    # Rounding may carry a sum of shares beyond the values that it is made of.
    found: Floats = np.clip(ordered @ shares, values.min(axis=1), values.max(axis=1))
    return found


def flips(right: Rights) -> Floats:
    """Return for each case the chance that of two tries one is right and one is wrong.

    Raises:
        ValueError: there are fewer than 2 tries.
    """
    n = _checked(right.shape[1], 2)
    count = right.sum(axis=1)
    found: Floats = 2 * count * (n - count) / (n * (n - 1))
    return found


def _checked(n: int, k: int) -> int:
    if not 1 <= k <= n:
        raise ValueError(f"k tries are drawn from those of a case, so k is 1 to {n}; got {k}.")
    return n
