"""A pool of values, each stored once and referred to by number."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class Pool(Generic[T]):
    """Gives each new value the next number."""

    def __init__(self) -> None:
        self._numbers: dict[T, int] = {}

    def number(self, value: T) -> int:
        """Return the number of ``value``, from 0."""
        return self._numbers.setdefault(value, len(self._numbers))

    @property
    def values(self) -> list[T]:
        """All values, by their number."""
        return list(self._numbers)
