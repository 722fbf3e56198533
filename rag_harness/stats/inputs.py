"""Checks the input of this room's functions, and turns it into arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Values: TypeAlias = "Sequence[float] | npt.NDArray[np.float64]"
Floats = npt.NDArray[np.float64]


class UndefinedError(ValueError):
    """The statistic is undefined for these values. The message says why, and is printed after its name."""


def differences_of(a: Values, b: Values, who: str) -> Floats:
    """Return a - b. Errors name ``who`` where the lists are no pairs."""
    first, second = pairs_of(a, b, who)
    return first - second


def pairs_of(a: Values, b: Values, who: str) -> tuple[Floats, Floats]:
    """Return both as arrays of one length. Errors name ``who`` where the lengths differ."""
    first, second = floats(a, who), floats(b, who)
    if len(first) != len(second):
        raise ValueError(f"{who} needs pairs, one value of each per query; got {len(first)} and {len(second)} values.")
    return first, second


def floats(values: Values, who: str) -> Floats:
    """Return the values as an array.

    Raises:
        ValueError: there are none, they are not flat, or one is NaN or infinite; names ``who``.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not array.size:
        raise ValueError(f"{who} needs a flat list of at least one value; got shape {array.shape}.")
    return finite(array, who, "Leave out what was not measured.")


def finite(array: Floats, who: str, remedy: str) -> Floats:
    """Return an array of any shape without NaN and infinity.

    Raises:
        ValueError: a value is NaN or infinite; names ``who``, and ``remedy`` says what to do.
    """
    bad = int(np.count_nonzero(~np.isfinite(array)))
    if bad:
        raise ValueError(f"{who} got {bad} NaN or infinite of {array.size} values. {remedy}")
    return array


def checked_confidence(confidence: float) -> float:
    """Return ``confidence``. Raise a ValueError where it is not between 0 and 1."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is a share between 0 and 1, e.g. 0.95; got {confidence}.")
    return confidence


def positive(resamples: int) -> int:
    """Return ``resamples``. Raise a ValueError where it is below 1."""
    if resamples < 1:
        raise ValueError(f"resamples must be 1 or more; got {resamples}.")
    return resamples
