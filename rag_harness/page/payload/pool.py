"""A pool of values, each stored once and referred to by number."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

_T = TypeVar("_T", bound=Hashable)


class Pool(Generic[_T]):
    """Gives each new value the next number."""

    def __init__(self) -> None:
        self._numbers: dict[_T, int] = {}

    def number(self, value: _T) -> int:
        """Return the number of ``value``, from 0."""
        return self._numbers.setdefault(value, len(self._numbers))

    @property
    def values(self) -> list[_T]:
        """All values, by their number."""
        return list(self._numbers)
