"""Lent stores: they read a run's stores, and hold new arrays in memory until these are taken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rag_harness.models.recording.store import Array
from rag_harness.protocols import Store, Stores
from rag_harness.retrieval.bulk.bulk_messages import KeptArrays


class LentStore:
    """One store over another.

    Args:
        under: the store of the run; it is never written.
    """

    def __init__(self, under: Store) -> None:
        self._under = under
        self.new: dict[bytes, Array] = {}

    def get(self, keys: Sequence[bytes]) -> list[Array | None]:
        """Return the array of each key, or None where there is none."""
        missing = [key for key in keys if key not in self.new]
        below = dict(zip(missing, self._under.get(missing), strict=True)) if missing else {}
        return [self.new[key] if key in self.new else below[key] for key in keys]

    def put(self, items: Mapping[bytes, Array]) -> None:
        """Hold new arrays until they are taken."""
        self.new |= {key: array.reshape(1, -1) if array.ndim == 1 else array for key, array in items.items()}


class LentStores:
    """Lent stores for all stores of a run."""

    def __init__(self, under: Stores) -> None:
        self._under = under
        self._opened: dict[tuple[str, str, str], LentStore] = {}

    def open(self, kind: str, model: str, revision: str, *, may_keep: bool = True) -> LentStore:
        """Return the store of ``kind`` for one model and revision."""
        name = kind, model, revision
        if name not in self._opened:
            self._opened[name] = LentStore(self._under.open(*name, may_keep=may_keep))
        return self._opened[name]

    def flush(self) -> None:
        """Do nothing: new arrays stay in this process."""

    def taken(self) -> KeptArrays:
        """Return the arrays added since the last call, and forget them."""
        found: KeptArrays = {name: store.new for name, store in self._opened.items() if store.new}
        for store in self._opened.values():
            store.new = {}
        return found
