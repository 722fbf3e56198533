"""Verdicts of usefulness by (judge, prompts, question, ground truth, chunk), stored for all experiments and runs.

The calls for a row depend on what was known before it. So a recording stores the verdicts themselves, also missing
ones: then a replay asks the same, whichever row comes first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence

import numpy as np

from rag_harness.judges.llm.judge_replies import Missing, PassageVerdict
from rag_harness.judges.llm.shared import followed
from rag_harness.models.recording.store import key_of
from rag_harness.protocols import Store

AskAboutChunks = Callable[[Sequence[str]], Awaitable[Sequence[PassageVerdict]]]
"""Takes chunks, and returns the verdict on each."""
_MISSING = list(Missing)


class KnownUsefulness:
    """Stored verdicts on chunks.

    Args:
        store: verdicts by key: 1, 0, or -n for the nth reason of ``Missing`` in place of a verdict.
        keeps_missing: whether missing verdicts are stored too. In a recording they are the judge's reply; in a cache
            they would prevent another attempt.
    """

    def __init__(self, store: Store, keeps_missing: bool) -> None:
        self._store, self._keeps_missing = store, keeps_missing
        self._missing: dict[bytes, PassageVerdict] = {}
        self._coming: dict[bytes, asyncio.Task[Mapping[bytes, PassageVerdict]]] = {}

    async def of(
        self, question: str, ground_truth: str, chunks: Sequence[str], ask: AskAboutChunks
    ) -> list[PassageVerdict]:
        """Return the verdict on each of ``chunks``. Only chunks without a stored verdict are asked about.

        Raises:
            RagHarnessError: any error of the chat model, also where another row asked.
        """
        keys = {chunk: key_of("usefulness", question, ground_truth, chunk) for chunk in chunks}
        said = self._recalled(keys.values())
        coming = {key: self._coming[key] for key in keys.values() if key in self._coming}
        new = {key: chunk for chunk, key in keys.items() if key not in said and key not in coming}
        if new:
            said |= await asyncio.shield(self._begin(new, ask))
        for key, task in coming.items():
            said[key] = (await followed(task))[key]
        return [said[keys[chunk]] for chunk in chunks]

    def _recalled(self, keys: Collection[bytes]) -> dict[bytes, PassageVerdict]:
        stored = zip(keys, self._store.get(list(keys)), strict=True)
        found = {key: _said(float(array[0, 0])) for key, array in stored if array is not None}
        return {key: self._missing[key] for key in keys if key in self._missing} | found

    def _begin(self, new: Mapping[bytes, str], ask: AskAboutChunks) -> asyncio.Task[Mapping[bytes, PassageVerdict]]:
        task = asyncio.create_task(self._asked(new, ask))
        self._coming |= dict.fromkeys(new, task)
        task.add_done_callback(lambda done: self._arrived(new, done))
        return task

    async def _asked(self, new: Mapping[bytes, str], ask: AskAboutChunks) -> Mapping[bytes, PassageVerdict]:
        said = dict(zip(new, await ask(list(new.values())), strict=True))
        self._missing |= {key: each for key, each in said.items() if each.missing}
        kept = {key: each for key, each in said.items() if self._keeps_missing or not each.missing}
        self._store.put({key: np.array([[_number(each)]], np.float32) for key, each in kept.items()})
        return said

    def _arrived(self, keys: Iterable[bytes], task: asyncio.Task[Mapping[bytes, PassageVerdict]]) -> None:
        for key in keys:
            del self._coming[key]
        # The exception is read even where no row waits any more: asyncio would complain.
        if not task.cancelled():
            task.exception()


def _number(said: PassageVerdict) -> float:
    return -1.0 - _MISSING.index(said.missing) if said.missing else float(said.value or 0.0)


def _said(number: float) -> PassageVerdict:
    return PassageVerdict(number) if number >= 0 else PassageVerdict(missing=_MISSING[int(-number) - 1])
