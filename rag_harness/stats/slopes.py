"""The change of a value from one turn to the next, within conversations.

The slope is Σ_c Σ_t (t - t̄_c)(y - ȳ_c) / Σ_c Σ_t (t - t̄_c)²: least squares with a level of its own for each
conversation. So long conversations do not count as drift only because they are harder from the first turn on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from rag_harness.stats.inputs import Floats


class SlopeParts(NamedTuple):
    """The two sums of one conversation: Σ (t - t̄)(y - ȳ), and Σ (t - t̄)²."""

    products: float
    squares: float


def slope_parts(turns: Floats, values: Floats) -> SlopeParts | None:
    """Return the sums of a conversation; None where it has fewer than two turns."""
    if len(turns) < 2:
        return None
    centred = turns - turns.mean()
    return SlopeParts(float(centred @ (values - values.mean())), float(centred @ centred))


def slope_values(parts: Mapping[str, SlopeParts]) -> dict[str, float]:
    """Return a value for each conversation, whose mean is the slope and whose standard error is the slope's.

    The value is b + (C / Σ squares) · (products - b · squares), for the slope b of C conversations: the influence of
    each. Its standard error is then the one clustered by conversation (Liang & Zeger 1986), with C / (C - 1).
    """
    products = np.array([each.products for each in parts.values()])
    squares = np.array([each.squares for each in parts.values()])
    slope = products.sum() / squares.sum()
    found = slope + len(parts) / squares.sum() * (products - slope * squares)
    return dict(zip(parts, map(float, found), strict=True))
