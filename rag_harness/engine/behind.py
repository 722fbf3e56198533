"""Jobs that come after another: a turn of a conversation is asked when the answer before it is there."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

_T = TypeVar("_T")
Job = Callable[[], Coroutine[Any, Any, _T]]


class Behind(Generic[_T]):
    """Jobs by key, each with the key that it comes after. Whoever calls it holds a lock."""

    def __init__(self) -> None:
        self._after: dict[Hashable, Hashable] = {}
        self._jobs: dict[Hashable, dict[Hashable, Job[_T]]] = {}

    def put(self, key: Hashable, job: Job[_T], after: Hashable) -> None:
        """Put a job behind the one called ``after``."""
        self._after[key] = after
        self._jobs.setdefault(after, {})[key] = job

    def has(self, key: Hashable) -> bool:
        """Return whether the job is behind another."""
        return key in self._after

    def head(self, key: Hashable) -> Hashable:
        """Return the first of the jobs before this one; the key itself, where it comes after nothing."""
        while key in self._after:
            key = self._after[key]
        return key

    def take(self, key: Hashable) -> list[tuple[Hashable, Job[_T]]]:
        """Remove and return the jobs that come next after this one."""
        found = self._jobs.pop(key, {})
        for each in found:
            del self._after[each]
        return list(found.items())

    def take_all(self, key: Hashable) -> list[Hashable]:
        """Remove this job, and all that come after it, and return the keys of those after it."""
        if key in self._after:
            del self._jobs[self._after.pop(key)][key]
        found = [each for each, _ in self.take(key)]
        return [*found, *(later for each in found for later in self.take_all(each))]

    def clear(self) -> list[Hashable]:
        """Remove all jobs and return their keys."""
        found = list(self._after)
        self._after.clear()
        self._jobs.clear()
        return found
