"""Stored judgements: with a filled store no model is loaded and no feature computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rag_harness.errors import RecordingMissError
from rag_harness.protocols import Store
from rag_harness.work.local_work import on_local_thread


class KeptJudgements:
    """Judgements by content.

    Args:
        store: arrays by key; it belongs to one set of coefficients.
        keep: whether computed arrays are stored.
        refusal: why this mode may not compute, and what to do; empty where it may.
    """

    def __init__(self, store: Store, keep: bool, refusal: str) -> None:
        self._store, self._keep, self._refusal = store, keep, refusal

    async def array(self, key: bytes, of: str, compute: Callable[[], Any]) -> Any:
        """Return the array of ``key`` from the store, or compute it in a thread.

        Raises:
            RecordingMissError: it is not stored and this mode may not compute; ``of`` names what is missing.
        """
        found = self._store.get([key])[0]
        if found is not None:
            return found
        if self._refusal:
            raise RecordingMissError(
                f"No recorded judgement of {of[:80]!r} by the embedded judge. {self._refusal}", [of]
            )
        return await on_local_thread(lambda: self._computed(key, compute))

    def _computed(self, key: bytes, compute: Callable[[], Any]) -> Any:
        found = compute()
        if self._keep:
            self._store.put({key: found})
        return found
