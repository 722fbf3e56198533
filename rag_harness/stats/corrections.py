"""Corrections of p-values for multiple tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rag_harness.stats.inputs import floats


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values for multiple tests, in the given order: Holm's step-down method (Holm 1979).

    The i-th smallest of m becomes the largest of (m - j + 1) * p_j over j <= i, at most 1. Adjusted values up to alpha
    are significant with a family-wise error rate of alpha, however the tests depend on each other.
    """
    p = floats(p_values, "holm")
    if p.min() < 0 or p.max() > 1:
        raise ValueError(f"holm needs p-values from 0 to 1; got {p.min():g} to {p.max():g}.")
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    return [float(value) for value in adjusted]
