"""Where a collection keeps what its models computed: of questions in bounded memory, of documents beside them.

A run's stores grow with every question, which is right for a recording and would fill a server's disk.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from threading import RLock
from typing import Any

from rag_harness.protocols import Store, Stores

MOST_BYTES: Mapping[str, int] = {"tokens": 32 << 20, "vectors": 4 << 20}
"""Of memory, by kind."""
_OTHERWISE = 8 << 20
_YOUNG = 512
"""Entries that stay however large they are: whoever put them, batch after batch, reads them next."""
_OVERHEAD = 250
"""Bytes of an entry beside its numbers: key, array, order."""


class MemoryStore:
    """Arrays by key: the newest in memory, and what the stores below have; those are read and never written.

    Args:
        below: looked up for what is not in memory, in their order.
        most: bytes kept.
    """

    def __init__(self, below: Sequence[Store] = (), most: int = _OTHERWISE) -> None:
        self._below, self._most = below, most
        self._kept: OrderedDict[bytes, Any] = OrderedDict()
        self._bytes = 0
        # Questions read while an ingest writes.
        self._lock = RLock()

    def get(self, keys: Sequence[bytes]) -> list[Any]:
        """Return the array of each key, None where there is none."""
        with self._lock:
            found = [self._touched(key) for key in keys]
        for store in self._below:
            missing = [place for place, array in enumerate(found) if array is None]
            if not missing:
                break
            for place, array in zip(missing, store.get([keys[place] for place in missing]), strict=True):
                found[place] = array
        return found

    def put(self, items: Mapping[bytes, Any]) -> None:
        """Keep arrays; the oldest go where there are too many."""
        import numpy as np

        with self._lock:
            for key, array in items.items():
                self._forget([key])
                self._kept[key] = np.atleast_2d(array)
                self._bytes += self._kept[key].nbytes + _OVERHEAD
            for _ in range(len(self._kept) - _YOUNG):
                if self._bytes <= self._most:
                    break
                self._forget([next(iter(self._kept))])

    def remove(self, keys: Iterable[bytes]) -> None:
        """Forget what is in memory of these."""
        with self._lock:
            self._forget(keys)

    def __len__(self) -> int:
        return len(self._kept)

    def _touched(self, key: bytes) -> Any:
        if key in self._kept:
            self._kept.move_to_end(key)
        return self._kept.get(key)

    def _forget(self, keys: Iterable[bytes]) -> None:
        for key in keys:
            array = self._kept.pop(key, None)
            if array is not None:
                self._bytes -= array.nbytes + _OVERHEAD


class CollectionStores:
    """The stores of one collection; no other reads them.

    Args:
        recorded: what was shipped or computed by runs, by kind, read only; None where the mode reads nothing.
        own: what the collection keeps of its documents, by kind.
        bounded: whether the oldest go where there are too many.
    """

    def __init__(self, recorded: Stores | None, own: Mapping[str, Store], bounded: bool = True) -> None:
        self._recorded, self._own, self._bounded = recorded, own, bounded
        self._opened: dict[tuple[str, str, str], MemoryStore] = {}
        self._lock = RLock()

    def open(self, kind: str, model: str, revision: str) -> MemoryStore:
        """Return the store of ``kind`` for one model and revision, the same each time."""
        named = kind, model, revision
        with self._lock:
            if named not in self._opened:
                most = MOST_BYTES.get(kind, _OTHERWISE) if self._bounded else sys.maxsize
                self._opened[named] = MemoryStore(self._below(*named), most)
            return self._opened[named]

    def flush(self) -> None:
        """Write nothing: what is kept was written when it was made."""

    def _below(self, kind: str, model: str, revision: str) -> list[Store]:
        own = [self._own[kind]] if kind in self._own else []
        recorded = [self._recorded.open(kind, model, revision)] if self._recorded is not None else []
        return [*own, *recorded]
