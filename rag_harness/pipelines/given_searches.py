"""Hits that the harness gives in place of searches of an agent, when it runs a failed trial again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from rag_harness.types import Hit


@dataclass(frozen=True, slots=True)
class GivenSearches:
    """The searches of a trial that are not made. It can be pickled, and is sent to workers.

    Attributes:
        hits: what a search returns instead, by its number in the trial, from 1.
        last: searches after this number return nothing; None where each other search is made.
    """

    hits: Mapping[int, tuple[Hit, ...]] = field(default_factory=dict)
    last: int | None = None

    def of(self, number: int) -> Sequence[Hit] | None:
        """Return the hits of a search; None where it is made."""
        if number in self.hits:
            return self.hits[number]
        return () if self.last is not None and number > self.last else None


_given: ContextVar[GivenSearches | None] = ContextVar("given", default=None)


@contextmanager
def giving(searches: GivenSearches | None) -> Iterator[None]:
    """Give these hits to the pipeline that runs in the block, also in its threads and tasks."""
    token = _given.set(searches)
    try:
        yield
    finally:
        _given.reset(token)


def given_to(number: int) -> Sequence[Hit] | None:
    """Return what is given in place of the search of this number; None where it is made."""
    searches = _given.get()
    return None if searches is None else searches.of(number)
