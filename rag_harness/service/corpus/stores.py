"""The stores of a collection for computed vectors: bounded memory for questions, and a store beside the documents.

The stores of a run grow with every question. That is right for a recording, but would fill a server's disk.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from threading import RLock
from typing import Any

from rag_harness.protocols import Store, Stores

MOST_STORED_BYTES: Mapping[str, int] = {"tokens": 32 << 20, "vectors": 4 << 20}
"""The most bytes in memory, by kind."""
_OTHERWISE = 8 << 20
_YOUNG = 512
"""How many of the newest entries stay, however large: a batch that was just put is read next."""
_OVERHEAD = 250
"""The bytes of an entry beside its numbers: key, array, order."""


class MemoryStore:
    """Arrays by key: the newest are in memory; the stores below are read, but never written.

    Args:
        below: stores that are searched, in this order, for what is not in memory.
        most: the most bytes kept in memory.
    """

    def __init__(self, below: Sequence[Store] = (), most: int = _OTHERWISE) -> None:
        self._below, self._most = below, most
        self._kept: OrderedDict[bytes, Any] = OrderedDict()
        self._bytes = 0
        # Questions read while an ingest writes.
        self._lock = RLock()

    def get(self, keys: Sequence[bytes]) -> list[Any]:
        """Return the array of each key; None if there is none."""
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
        """Keep arrays. If there are too many, the oldest are removed."""
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
        """Remove these keys from memory."""
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
    """The stores of one collection; other collections do not read them.

    Args:
        recorded: vectors that were shipped or that runs have computed, by kind, read only; None if the mode reads
            nothing.
        own: the collection's stores for its documents, by kind.
        bounded: whether the oldest entries are removed if there are too many.
    """

    def __init__(self, recorded: Stores | None, own: Mapping[str, Store], bounded: bool = True) -> None:
        self._recorded, self._own, self._bounded = recorded, own, bounded
        self._opened: dict[tuple[str, str, str], MemoryStore] = {}
        self._lock = RLock()

    def open(self, kind: str, model: str, revision: str, *, may_keep: bool = True) -> MemoryStore:  # noqa: ARG002
        """Return the store of ``kind`` for one model and revision; the same object each time.

        What a collection keeps of its own documents is its index: it keeps that of a user's own parts, too.
        """
        named = kind, model, revision
        with self._lock:
            if named not in self._opened:
                most = MOST_STORED_BYTES.get(kind, _OTHERWISE) if self._bounded else sys.maxsize
                self._opened[named] = MemoryStore(self._below(*named), most)
            return self._opened[named]

    def flush(self) -> None:
        """Write nothing: entries are written when they are made."""

    def _below(self, kind: str, model: str, revision: str) -> list[Store]:
        own = [self._own[kind]] if kind in self._own else []
        recorded = [self._recorded.open(kind, model, revision)] if self._recorded is not None else []
        return [*own, *recorded]
