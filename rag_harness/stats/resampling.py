"""Means of samples drawn with replacement, a bounded number of random numbers at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rag_harness.stats.inputs import Floats

_CHUNK = 1 << 20
"""Random numbers held at once: 8 MB of indices, and as much of the values they pick."""


def resampled_means(values: Floats, resamples: int, rng: np.random.Generator) -> Floats:
    """Return the means of ``resamples`` samples of the values, each as large as they are, with replacement."""
    n = len(values)
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) * 16 > n:
        return by_chunks(resamples, n, lambda rows: values[rng.integers(0, n, (rows, n))].mean(axis=1))
    # How often each distinct value comes up is multinomial: one draw per value, where hits and ranks take few values.
    return by_chunks(resamples, len(distinct), lambda rows: rng.multinomial(n, counts / n, rows) @ distinct / n)


def by_chunks(rows: int, width: int, draw: Callable[[int], Floats]) -> Floats:
    """Join ``draw(size)`` over chunks of ``rows`` that hold about ``_CHUNK`` numbers, or one row if that is more."""
    step = max(1, _CHUNK // width)
    return np.concatenate([draw(min(step, rows - start)) for start in range(0, rows, step)])
