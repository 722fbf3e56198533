"""Where a run reads and writes vectors and scores: recordings first, then what was computed locally."""

from __future__ import annotations

import re
from pathlib import Path

from rag_harness.recording.store import ArrayStore
from rag_harness.settings import Settings


class StoreRoom:
    """Opens one store a kind, model and revision.

    ``record`` writes into the recordings, which are committed; ``auto`` and ``live`` into the cache, which is not;
    ``replay`` writes nothing.
    """

    def __init__(self, settings: Settings) -> None:
        self._recordings = settings.path(settings.cassettes) / settings.profile
        self._cache = settings.path(settings.cache_dir)
        self._mode = settings.mode
        self._opened: dict[Path, ArrayStore] = {}

    def open(self, kind: str, model: str, revision: str) -> ArrayStore:
        """Return the store of ``kind`` (vectors, tokens, pairs) for one model and revision."""
        folder = Path(kind) / re.sub(r"[^\w.@-]+", "--", f"{model}@{revision}")
        if folder not in self._opened:
            self._opened[folder] = ArrayStore(
                [self._recordings / folder, self._cache / folder], self._write_to(kind, folder)
            )
        return self._opened[folder]

    def _write_to(self, kind: str, folder: Path) -> Path | None:
        if self._mode == "replay":
            return None
        # Token vectors weigh 100 times a vector; a recording keeps the pair scores that come from them instead.
        recorded = self._mode == "record" and kind != "tokens"
        return (self._recordings if recorded else self._cache) / folder

    def flush(self) -> None:
        """Write everything that is waiting."""
        for store in self._opened.values():
            store.flush()
