"""Stores that keep what is put only until it is taken: what a run has stored is found, and nothing is added to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rag_harness.models.recording.store import Array
from rag_harness.protocols import Store, Stores
from rag_harness.retrieval.bulk.values import Kept


class LentStore:
    """One store over another.

    Args:
        under: what a run has stored; it is never written.
    """

    def __init__(self, under: Store) -> None:
        self._under = under
        self.new: dict[bytes, Array] = {}

    def get(self, keys: Sequence[bytes]) -> list[Array | None]:
        """Return the array of each key, None where there is none."""
        missing = [key for key in keys if key not in self.new]
        below = dict(zip(missing, self._under.get(missing), strict=True)) if missing else {}
        return [self.new[key] if key in self.new else below[key] for key in keys]

    def put(self, items: Mapping[bytes, Array]) -> None:
        """Hold arrays until they are taken."""
        self.new |= {key: array.reshape(1, -1) if array.ndim == 1 else array for key, array in items.items()}


class LentStores:
    """All stores of a run, lent."""

    def __init__(self, under: Stores) -> None:
        self._under = under
        self._opened: dict[tuple[str, str, str], LentStore] = {}

    def open(self, kind: str, model: str, revision: str) -> LentStore:
        """Return the store of ``kind`` for one model and revision."""
        name = kind, model, revision
        if name not in self._opened:
            self._opened[name] = LentStore(self._under.open(*name))
        return self._opened[name]

    def flush(self) -> None:
        """Write nothing: there is nobody but this process to find it."""

    def taken(self) -> Kept:
        """Return what was put since this was last asked, and forget it."""
        found: Kept = {name: store.new for name, store in self._opened.items() if store.new}
        for store in self._opened.values():
            store.new = {}
        return found
