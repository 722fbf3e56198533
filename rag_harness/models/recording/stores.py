"""The stores of a run for vectors and scores: recordings first, then the local cache."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

from rag_harness.files.cache_folder import note_use
from rag_harness.models.recording.store import Array, ArrayStore
from rag_harness.settings import Settings, access_of

NEVER_RECORDED = frozenset({"tokens"})
"""Kinds that are never recorded. Token vectors take 100 times a vector; recordings keep their pair scores instead."""


class RecordingStore(ArrayStore):
    """A store of recordings. It copies entries from the cache, so that the recordings are complete without it."""

    def __init__(self, folders: Sequence[Path], write_to: Path, cache: ArrayStore) -> None:
        super().__init__(folders, write_to)
        self._cache = cache

    def get(self, keys: Sequence[bytes]) -> list[Array | None]:
        found = super().get(keys)
        missing = [key for key, each in zip(keys, found, strict=True) if each is None]
        if not missing:
            return found
        self.put({key: each for key, each in zip(missing, self._cache.get(missing), strict=True) if each is not None})
        return super().get(keys)


class StoreRoom:
    """Opens one store for each kind, model and revision.

    The mode decides where new results are stored: in the recordings, which are committed; in the cache, which is not;
    or nowhere. The cache is always read. Recordings are read if the mode reads them.
    """

    def __init__(self, settings: Settings) -> None:
        self._recordings = settings.folder("cassettes") / (settings.stores_of or settings.profile)
        self._cache = settings.path(settings.cache_dir)
        self._access = access_of(settings)
        self._opened: dict[Path, ArrayStore] = {}
        self._own_dates: list[float] = []

    @property
    def own_recorded_at(self) -> str:
        """When the oldest recording was made that parts of a user's own are replayed from; empty without any."""
        oldest = min(self._own_dates, default=None)
        return "" if oldest is None else datetime.fromtimestamp(oldest, timezone.utc).isoformat(timespec="milliseconds")

    def open(self, kind: str, model: str, revision: str, *, may_keep: bool = True) -> ArrayStore:
        """Return the store of ``kind`` (vectors, tokens, pairs) for one model and revision.

        Without ``may_keep`` it is of a part of a user's own, which is asked in each run: mode record keeps what is
        missing, replay reads that, and nothing goes into the cache.
        """
        folder = Path(kind) / re.sub(r"[^\w.@-]+", "--", f"{model}@{revision}")
        if folder not in self._opened:
            self._opened[folder] = self._store(kind, folder) if may_keep else self._store_of_own(folder)
        return self._opened[folder]

    def _store_of_own(self, folder: Path) -> ArrayStore:
        recorded, records = self._recordings / folder, self._access.records
        is_read = records or self._access.calls_nobody
        # Before this run adds to it: what it adds is asked now.
        self._own_dates += [file.stat().st_mtime for file in recorded.glob("*.safetensors") if is_read]
        return ArrayStore([recorded] if is_read else [], recorded if records else None)

    def _store(self, kind: str, folder: Path) -> ArrayStore:
        recorded, cached = self._recordings / folder, self._cache / folder
        if self._access.keeps != "nothing":
            note_use(cached)
        if self._access.keeps == "recordings" and kind not in NEVER_RECORDED:
            return RecordingStore([recorded], recorded, ArrayStore([cached]))
        folders = [recorded, cached] if self._access.reads_recordings else [cached]
        return ArrayStore(folders, None if self._access.keeps == "nothing" else cached)

    def flush(self) -> None:
        """Write all entries that are still in memory."""
        for store in list(self._opened.values()):  # another thread may open one meanwhile
            store.flush()
