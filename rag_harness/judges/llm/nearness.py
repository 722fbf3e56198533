"""Cosines between questions. Rows that ask at the same time are embedded in one batch, off the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import numpy as np

from rag_harness.measures.judged import Relevancy
from rag_harness.protocols import Embedder
from rag_harness.types import Matrix
from rag_harness.work.local_work import on_local_thread

_TOGETHER = 32
"""Most texts in one batch, unless one row has more."""
NOT_A_NUMBER = "a cosine is no number: the embedder gave a vector without a length"

WaitingTexts = tuple[Sequence[str], "asyncio.Future[Matrix]"]


class Nearness:
    """Measures the similarity of questions.

    Args:
        embedder: returns the embedder; called for the first text.
    """

    def __init__(self, embedder: Callable[[], Embedder]) -> None:
        self._embedder = embedder
        self._waiting: list[WaitingTexts] = []
        self._busy: asyncio.Task[None] | None = None

    async def relevancy(self, question: str, asked: Sequence[str], noncommittal: bool) -> Relevancy:
        """Return the mean cosine of ``asked`` with ``question``; None where a cosine is NaN.

        Raises:
            RagHarnessError: any error of the embedder.
        """
        vectors = await self._embedded([question, *asked])
        cosines = _cosines(np.asarray(vectors, np.float64))
        detail = {"questions": list(asked), "cosines": [value if np.isfinite(value) else None for value in cosines]}
        if not np.isfinite(cosines).all():
            return Relevancy(None, noncommittal, NOT_A_NUMBER, detail)
        return Relevancy(float(np.mean(cosines)), noncommittal, detail=detail)

    async def _embedded(self, texts: Sequence[str]) -> Matrix:
        future: asyncio.Future[Matrix] = asyncio.get_running_loop().create_future()
        self._waiting.append((texts, future))
        if self._busy is None:
            self._busy = asyncio.create_task(self._work_off())
        return await future

    async def _work_off(self) -> None:
        try:
            while self._waiting:
                await self._do(self._next())
        finally:
            self._busy = None

    def _next(self) -> list[WaitingTexts]:
        batch = [self._waiting.pop(0)]
        while self._waiting and sum(len(texts) for texts, _ in batch) + len(self._waiting[0][0]) <= _TOGETHER:
            batch.append(self._waiting.pop(0))
        return batch

    async def _do(self, batch: list[WaitingTexts]) -> None:
        texts = [text for each, _ in batch for text in each]
        try:
            vectors = await on_local_thread(lambda: self._embedder().embed_queries(texts))
        except Exception as error:
            await self._fail(batch, error)
            return
        for wanted, future in batch:
            own, vectors = vectors[: len(wanted)], vectors[len(wanted) :]
            if not future.done():  # its row may have been cancelled
                future.set_result(own)

    async def _fail(self, batch: list[WaitingTexts], error: Exception) -> None:
        if len(batch) > 1:
            # A text that cannot be embedded must not make the others fail.
            for each in batch:
                await self._do([each])
        elif not batch[0][1].done():
            batch[0][1].set_exception(error)


def _cosines(vectors: Matrix) -> list[float]:
    """Return the cosine of each vector with the first; NaN for a vector of length 0."""
    first, others = vectors[0], vectors[1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        cosines = others @ first / (np.linalg.norm(others, axis=1) * np.linalg.norm(first))
    return [float(value) for value in cosines]
