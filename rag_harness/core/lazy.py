"""Lazy values, computed on first use and once in a process, also with several threads."""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from typing import Generic, TypeVar

T_co = TypeVar("T_co", covariant=True)
IMPORTING = RLock()
"""Lock around the import of a large package. The openai SDK and transformers import themselves in circles. Without the
lock, two threads in such a circle can see half-made modules: Python allows that rather than a deadlock."""


class Lazy(Generic[T_co]):
    """A value that is made on first use. So a run that only resumes builds no index.

    Args:
        make: makes the value. If it raises, the caller gets the error, and the next call of ``get`` tries again.
    """

    def __init__(self, make: Callable[[], T_co]) -> None:
        self._make = make
        self._values: list[T_co] = []
        self._lock = RLock()

    def get(self) -> T_co:
        """Return the value; the first call makes it."""
        if not self._values:
            with self._lock:
                if not self._values:
                    self._values.append(self._make())
        return self._values[0]

    def forget(self) -> None:
        """Drop the value. The next call computes it again."""
        self._values.clear()

    @property
    def made(self) -> T_co | None:
        """The value, or None where it was not used yet."""
        return self._values[0] if self._values else None
