"""Readings by their texts: kept ones, and new ones for which all answers that wait share the model's batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from threading import Lock
from typing import Any

from rag_harness.errors import RecordingMissError
from rag_harness.judges.encoder.asked_support import Readings, TextKey
from rag_harness.models.recording.store import key_of
from rag_harness.protocols import Store
from rag_harness.work.deadline import paused
from rag_harness.work.local_work import on_local_thread

MOST_TOGETHER = 512
"""Most readings at once. More would fill no batch better, and a killed run would lose more."""


class PooledReadings:
    """Readings of one model.

    Args:
        store: arrays by key.
        read: has the model read texts; synchronous.
        refusal: why this mode may not ask the model, and what to do; empty where it may.
    """

    def __init__(self, store: Store, read: Callable[[Sequence[TextKey]], list[Readings]], refusal: str) -> None:
        self._store, self._read, self._refusal = store, read, refusal
        self._waiting: dict[bytes, TextKey] = {}
        self._lock = Lock()

    async def of(self, texts: Sequence[TextKey]) -> list[Any]:
        """Return the reading of each of ``texts``.

        Raises:
            RecordingMissError: one is not kept and this mode may not ask the model.
        """
        keys = [key_of(*each) for each in texts]
        kept = dict(zip(keys, self._store.get(keys), strict=True))
        missing = {key: text for key, text in zip(keys, texts, strict=True) if kept[key] is None}
        if missing:
            if self._refusal:
                first = next(iter(missing.values()))
                raise RecordingMissError(
                    f"No recorded judgement of {first[0][:80]!r} by the encoder judge. {self._refusal}", [first[0]]
                )
            with self._lock:
                self._waiting |= missing
            # One thread reads for all. Waiting for it is waiting for a limit of the run.
            with paused():
                kept |= await on_local_thread(lambda: self._of_all(missing))
        return [kept[key] for key in keys]

    def _of_all(self, own: dict[bytes, TextKey]) -> dict[bytes, Any]:
        """Read ``own``, and what others wait for. What those before have read is there already."""
        found = dict(zip(own, self._store.get([*own]), strict=True))
        wanted = {key: text for key, text in own.items() if found[key] is None}
        with self._lock:
            others = ((key, text) for key, text in self._waiting.items() if key not in own)
            more = dict(islice(others, max(0, MOST_TOGETHER - len(wanted)))) if wanted else {}
            for key in (*own, *more):
                self._waiting.pop(key, None)
        return found | self._new(wanted, more)

    def _new(self, wanted: dict[bytes, TextKey], more: dict[bytes, TextKey]) -> dict[bytes, Any]:
        """Read texts and keep the readings. Where a text of another answer cannot be read, that is for the other."""
        if not wanted:
            return {}
        together = wanted | more
        try:
            read = dict(zip(together, self._read([*together.values()]), strict=True))
        except Exception:
            if not more:
                raise
            read = dict(zip(wanted, self._read([*wanted.values()]), strict=True))
        self._store.put(read)
        return {key: read[key] for key in wanted}
