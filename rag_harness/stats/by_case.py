"""Values by case as arrays: a mapping for a million cases that makes no dictionary before the first lookup."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping, Sequence, ValuesView
from functools import cached_property

import numpy as np
import numpy.typing as npt

from rag_harness.stats.inputs import Floats

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
