"""Means that do not depend on the order of values."""

from __future__ import annotations

from collections.abc import Iterable
from math import fsum, isfinite
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rag_harness.stats.inputs import Floats


def mean_or_none(values: Iterable[float | None]) -> float | None:
    """Return the mean of the values that are not None, or None if all are. The order does not change a digit."""
    measured = [value for value in values if value is not None]
    if not all(map(isfinite, measured)):
        raise ValueError("mean_or_none got NaN or infinity. A value that could not be measured is None.")
    return fsum(measured) / len(measured) if measured else None


def mean_of(values: Floats) -> float | None:
    """Return the mean of an array; None where it is empty."""
    import numpy as np

    if not np.isfinite(values).all():
        raise ValueError("mean_of got NaN or infinity. A value that could not be measured is left out.")
    ones = int(np.count_nonzero(values == 1))
    # Most measures are 0 or 1: then the sum is a count, and exact.
    total = float(ones) if ones == np.count_nonzero(values) else fsum(values.tolist())
    return total / len(values) if len(values) else None
