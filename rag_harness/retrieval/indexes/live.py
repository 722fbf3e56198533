"""An index that changes while it is searched: vectors by number. What the numbers mean, others know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from rag_harness.errors import CriticalError
from rag_harness.types import Matrix, Vector


class LiveIndexError(CriticalError):
    """What is kept of an index cannot be opened, or does not answer; whoever has the vectors makes it anew."""


class LivePoints(Protocol):
    """Vectors by number. One owner; a search may run beside a change and sees it or not."""

    def add(self, ids: Sequence[int], vectors: Matrix) -> None:
        """Add points, or write them again; row i of ``vectors``, shape (n, d), belongs to ``ids[i]``."""
        ...

    def remove(self, ids: Sequence[int]) -> None:
        """Remove points; those that are not there are none the less gone."""
        ...

    def nearest(self, vector: Vector, limit: int) -> list[tuple[float, int]]:
        """Return cosine and number of the ``limit`` nearest points, best first; equal ones in any order."""
        ...

    def ids(self) -> set[int]:
        """Return the numbers of all points."""
        ...

    def vectors(self, ids: Sequence[int]) -> Mapping[int, Vector]:
        """Return the vectors of points by number, of unit length; those that are not there are left out."""
        ...

    def tidy(self) -> None:
        """Make ready for many questions what is only worth it for many points; may take a minute."""
        ...

    def close(self) -> None:
        """Write what is waiting, and let go."""
        ...
