"""Vector indexes: the protocol of an index that changes while it is searched, and its opening.

An adapter is a module with ``create(parts)``, under the entry point ``rag_harness.indexes``. ``builder`` and the
service call them. An index holds vectors; texts stay with the chunks. Begin reading with ``memory.py`` and
``qdrant.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Protocol, TypeAlias, cast

from rag_harness.core.errors import CriticalError, SettingsError
from rag_harness.core.registry import module_of
from rag_harness.core.settings import Settings
from rag_harness.core.types import Matrix, Vector

# Protocol of an index that changes while it is searched: vectors by number. Callers know the meaning of numbers.


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


OpenPoints: TypeAlias = Callable[[Settings, Path, str], LivePoints]
"""Returns the index in a folder, or of a server's collection of this name."""


def opening_of(index: str) -> OpenPoints:
    """Return the function that opens the registered ``index`` for changes: ``open_points`` of its module.

    Raises:
        RegistryError: the index is not registered.
        SettingsError: the index cannot change while it is searched.
    """
    module = module_of("indexes", index)
    found = getattr(import_module(module), "open_points", None)
    if found is None:
        raise SettingsError(
            f"The index {index!r} cannot be served: a service adds and removes documents while it is searched, and "
            f"{module} has no open_points(settings, folder, name). Write one (docs/reference/parts.md), or evaluate "
            f"and serve with --rag-index=qdrant."
        )
    return cast("OpenPoints", found)
