"""Input of statistics: checked values as arrays, values per case, and the type of intervals."""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterator, Mapping, Sequence, ValuesView
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Values: TypeAlias = "Sequence[float] | npt.NDArray[np.float64]"
Floats = npt.NDArray[np.float64]


class UndefinedError(ValueError):
    """The statistic is undefined for these values. The message says why, and is printed after its name."""


def differences_of(a: Values, b: Values, who: str) -> Floats:
    """Return a - b. The error names ``who`` where the lists differ in length."""
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
        ValueError: the list is empty or not flat, or a value is NaN or infinite. The message has ``who``.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not array.size:
        raise ValueError(f"{who} needs a flat list of at least one value; got shape {array.shape}.")
    return finite(array, who, "Leave out what was not measured.")


def finite(array: Floats, who: str, remedy: str) -> Floats:
    """Return an array of any shape without NaN and infinity.

    Raises:
        ValueError: a value is NaN or infinite. The message has ``who`` and ``remedy``.
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


class Interval(NamedTuple):
    """A lower and an upper bound, in the unit of the values."""

    low: float
    high: float


_CHUNK = 1 << 20
"""Random numbers in memory at once: 8 MB of indices, and as much of the values that they choose."""


def by_chunks(rows: int, width: int, draw: Callable[[int], Floats]) -> Floats:
    """Join ``draw(size)`` over chunks of ``rows`` with about ``_CHUNK`` numbers each, and at least one row."""
    step = max(1, _CHUNK // width)
    return np.concatenate([draw(min(step, rows - start)) for start in range(0, rows, step)])


# Values by case as arrays: a mapping for a million cases that makes no dictionary before the first lookup.

_Places = npt.NDArray[np.intp]


class CaseValues(Mapping[str, float]):
    """Values of some cases, in the order of the cases.

    Args:
        ids: ids of all cases.
        places: positions of the cases with a value, ascending.
        array: their values, in the same order.
    """

    def __init__(self, ids: Sequence[str], places: _Places, array: Floats) -> None:
        self.ids: Sequence[str] = ids
        self.places: _Places = places
        self.array: Floats = array

    def __len__(self) -> int:
        return len(self.places)

    def __iter__(self) -> Iterator[str]:
        return map(self.ids.__getitem__, self.places.tolist())

    def __getitem__(self, case: str) -> float:
        return self._known[case]

    def __contains__(self, case: object) -> bool:
        return case in self._known

    def __repr__(self) -> str:
        return repr(self._known)

    def values(self) -> ValuesView[float]:
        """Return the values, in the order of the cases."""
        return _Values(self)

    def items(self) -> ItemsView[str, float]:
        """Return the cases with their values."""
        return self._known.items()

    @cached_property
    def _known(self) -> dict[str, float]:
        return dict(zip(self, self.array.tolist(), strict=True))


class _Values(ValuesView[float]):
    def __init__(self, found: CaseValues) -> None:
        super().__init__(found)
        self._array = found.array

    def __iter__(self) -> Iterator[float]:
        return iter(self._array.tolist())


def in_both(a: Mapping[str, float], b: Mapping[str, float]) -> tuple[Mapping[str, float], Mapping[str, float]]:
    """Return the values of the cases that have one in both, in the order of ``a``."""
    if isinstance(a, CaseValues) and isinstance(b, CaseValues) and a.ids is b.ids:
        places, mine, theirs = np.intersect1d(a.places, b.places, assume_unique=True, return_indices=True)
        return CaseValues(a.ids, places, a.array[mine]), CaseValues(b.ids, places, b.array[theirs])
    both = [case for case in a if case in b]
    return {case: a[case] for case in both}, {case: b[case] for case in both}


def differences(a: Mapping[str, float], b: Mapping[str, float]) -> Mapping[str, float]:
    """Return a - b; both have the same cases in the same order."""
    if isinstance(a, CaseValues) and isinstance(b, CaseValues):
        return CaseValues(a.ids, a.places, a.array - b.array)
    return {case: a[case] - b[case] for case in a}


# The change of a value from one turn to the next, within conversations.
#
# The slope is Σ_c Σ_t (t - t̄_c)(y - ȳ_c) / Σ_c Σ_t (t - t̄_c)²: least squares with a level of its own for each
# conversation. So long conversations do not count as drift only because they are harder from the first turn on.


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
    """Return a value for each conversation. Their mean is the slope, and their standard error is its standard error.

    The value is b + (C / Σ squares) · (products - b · squares), with the slope b of C conversations. It is the
    influence of each conversation. Its standard error is then the one clustered by conversation (Liang & Zeger 1986),
    with C / (C - 1).
    """
    products = np.array([each.products for each in parts.values()])
    squares = np.array([each.squares for each in parts.values()])
    slope = products.sum() / squares.sum()
    found = slope + len(parts) / squares.sum() * (products - slope * squares)
    return dict(zip(parts, map(float, found), strict=True))
