"""Protocol of an index that changes while it is searched: vectors by number. Callers know the meaning of numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from rag_harness.errors import CriticalError
from rag_harness.types import Matrix, Vector


class LiveIndexError(CriticalError):
    """A stored index cannot be opened, or does not answer. A caller with the vectors can build it again."""


class LivePoints(Protocol):
    """Vectors by number, with one owner. A search during a change may or may not see the change."""

    def add(self, ids: Sequence[int], vectors: Matrix) -> None:
        """Add or overwrite points. Row i of ``vectors``, shape (n, d), belongs to ``ids[i]``."""
        ...

    def remove(self, ids: Sequence[int]) -> None:
        """Remove points. Missing points are ignored."""
        ...

    def nearest(self, vector: Vector, limit: int) -> list[tuple[float, int]]:
        """Return cosine and number of the ``limit`` nearest points, best first. Ties are in any order."""
        ...

    def ids(self) -> set[int]:
        """Return the numbers of all points."""
        ...

    def vectors(self, ids: Sequence[int]) -> Mapping[int, Vector]:
        """Return the unit-length vectors of points, by number. Missing points are left out."""
        ...

    def tidy(self) -> None:
        """Optimize the index for many queries, if it has enough points. It may take a minute."""
        ...

    def close(self) -> None:
        """Write pending changes and close the index."""
        ...
