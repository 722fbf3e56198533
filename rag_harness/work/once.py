"""A value that is made when it is first asked for, once in a process, whichever thread asks."""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from typing import Generic, TypeVar

T = TypeVar("T")
IMPORTING = RLock()
"""Held by who imports a package of many modules. Two threads that meet in such circles, of the openai SDK and of
transformers say, find each other's modules half made: Python lets them rather than have both wait for ever."""


class Once(Generic[T]):
    """Stands for a value until it is first needed: a run that only resumes builds no index.

    Args:
        make: makes the value. What it raises is raised to whoever asked, and it is called again for the next.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._values: list[T] = []
        self._lock = RLock()

    def get(self) -> T:
        """Return the value; the first call makes it."""
        if not self._values:
            with self._lock:
                if not self._values:
                    self._values.append(self._make())
        return self._values[0]

    @property
    def made(self) -> T | None:
        """The value where somebody has asked for it, else None."""
        return self._values[0] if self._values else None
