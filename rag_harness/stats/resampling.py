"""Draws a bounded number of random numbers at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rag_harness.stats.inputs import Floats

_CHUNK = 1 << 20
"""Random numbers in memory at once: 8 MB of indices, and as much of the values that they choose."""


def by_chunks(rows: int, width: int, draw: Callable[[int], Floats]) -> Floats:
    """Join ``draw(size)`` over chunks of ``rows`` with about ``_CHUNK`` numbers each, and at least one row."""
    step = max(1, _CHUNK // width)
    return np.concatenate([draw(min(step, rows - start)) for start in range(0, rows, step)])
