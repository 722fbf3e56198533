"""Items in groups of at most so many."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

_T = TypeVar("_T")


def grouped(items: Iterable[_T], most: int) -> Iterator[list[_T]]:
    """Yield the items in lists of ``most``; the last may be shorter, and none is empty."""
    found = iter(items)
    while group := list(islice(found, most)):
        yield group
