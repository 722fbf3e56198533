"""Corrections of p-values for multiple tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rag_harness.stats.inputs import Floats, floats


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values for multiple tests, in the given order: Holm's step-down method (Holm 1979).

    The i-th smallest of m becomes the largest of (m - j + 1) * p_j over j <= i, at most 1. Adjusted values up to alpha
    are significant with a family-wise error rate of alpha, however the tests depend on each other.
    """
    p = _checked(p_values, "holm")
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    return [float(value) for value in adjusted]


def holm_counts(p_values: Sequence[float], alpha: float = 0.05) -> list[int]:
    """Return among how many tests Holm's procedure judges each, in the given order: m, m - 1, … until one fails.

    A test is significant where its p is at most alpha / count. So an interval of confidence 1 - alpha / count excludes
    what the test rejects, and no other does. Equal p-values have the same count.
    """
    p = _checked(p_values, "holm_counts")
    order = np.argsort(p, kind="stable")
    left = np.arange(len(p), 0, -1)
    failed = np.flatnonzero(p[order] * left > alpha)
    if len(failed):
        left[failed[0] :] = left[failed[0]]
    counts = np.empty_like(left)
    counts[order] = left[np.searchsorted(p[order], p[order])]
    return [int(count) for count in counts]


def _checked(p_values: Sequence[float], who: str) -> Floats:
    p = floats(p_values, who)
    if p.min() < 0 or p.max() > 1:
        raise ValueError(f"{who} needs p-values from 0 to 1; got {p.min():g} to {p.max():g}.")
    return p
