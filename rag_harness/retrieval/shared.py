"""Stages shared by experiments. Equal requests of trials are computed once, and queries in flight share a batch."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager
from time import perf_counter
from typing import Any, Generic, TypeVar

from rag_harness.protocols import Reranker, Retriever
from rag_harness.types import Hit
from rag_harness.work.local_work import on_local_thread

_Q = TypeVar("_Q")
_R = TypeVar("_R")

_TOGETHER = 16
"""Most requests in a batch. With more, the first model call would wait for the last query's reranking."""
_REMEMBERED = 4096
"""Number of results kept for later equal requests. The scores themselves are in the stores."""


class SharedWork(Generic[_Q, _R]):
    """Answers requests of many trials on the local thread.

    Args:
        work: requests -> their results, in the same order.
        key: returns a key; requests with equal keys are the same.
    """

    def __init__(self, work: Callable[[Sequence[_Q]], Sequence[_R]], key: Callable[[_Q], Hashable]) -> None:
        self._work, self._key = work, key
        self._asked: OrderedDict[Hashable, asyncio.Future[tuple[_R, float]]] = OrderedDict()
        self._waiting: list[tuple[_Q, asyncio.Future[tuple[_R, float]]]] = []
        self._busy: asyncio.Task[None] | None = None

    async def ask(self, request: _Q) -> tuple[_R, float]:
        """Return the result of ``request``, and its share of the batch's time in milliseconds."""
        key = self._key(request)
        future = self._asked.get(key)
        if future is None:
            future = self._asked[key] = asyncio.get_running_loop().create_future()
            # All trials that asked may be cancelled by then.
            future.add_done_callback(lambda done: done.cancelled() or done.exception())
            self._waiting.append((request, future))
            if len(self._asked) > _REMEMBERED:
                self._asked.popitem(last=False)
        if self._busy is None:
            self._busy = asyncio.create_task(self._work_off())
        return await asyncio.shield(future)

    async def _work_off(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[:_TOGETHER], self._waiting[_TOGETHER:]
                await self._do(batch)
        finally:
            self._busy = None

    async def _do(self, batch: list[tuple[_Q, asyncio.Future[tuple[_R, float]]]]) -> None:
        try:
            results, milliseconds = await on_local_thread(lambda: self._timed([request for request, _ in batch]))
        except Exception as error:
            await self._fail(batch, error)
            return
        for (_, future), result in zip(batch, results, strict=True):
            future.set_result((result, milliseconds / len(batch)))

    async def _fail(self, batch: list[tuple[_Q, asyncio.Future[tuple[_R, float]]]], error: Exception) -> None:
        if len(batch) > 1:
            # A request that fails must not fail the others.
            for each in batch:
                await self._do([each])
            return
        request, future = batch[0]
        self._asked.pop(self._key(request), None)
        future.set_exception(error)

    def _timed(self, requests: Sequence[_Q]) -> tuple[Sequence[_R], float]:
        started = perf_counter()
        results = self._work(requests)
        if len(results) != len(requests):
            raise ValueError(f"{len(requests)} queries were asked, and {len(results)} answered")
        return results, (perf_counter() - started) * 1000


class SharedRetriever:
    """A retriever whose requests are shared by trials."""

    def __init__(self, inner: Retriever) -> None:
        self.inner = inner
        self.shared: SharedWork[tuple[str, int], list[Hit]] = SharedWork(self._many, key=lambda each: each)

    def retrieve(self, query: str, k: int) -> list[Hit]:
        return self.inner.retrieve(query, k)

    def _many(self, requests: Sequence[tuple[str, int]]) -> list[list[Hit]]:
        if hasattr(self.inner, "retrieve_many"):
            found: list[list[Hit]] = self.inner.retrieve_many(requests)
            return found
        return [self.inner.retrieve(*each) for each in requests]


class SharedReranker:
    """A reranker whose requests are shared by trials.

    Args:
        inner: the reranker. With ``rerank_many``, it gets all requests of a batch at once.
        alone: a lock held during its work, so that other processes find the scores in the store.
    """

    def __init__(self, inner: Reranker, alone: Callable[[], AbstractContextManager[Any]]) -> None:
        self.inner, self._alone = inner, alone
        self.shared: SharedWork[tuple[str, tuple[Hit, ...]], list[Hit]] = SharedWork(self._many, key=_pairs)

    @property
    def model(self) -> str:
        return self.inner.model

    @property
    def revision(self) -> str:
        return self.inner.revision

    def rerank(self, query: str, hits: Sequence[Hit]) -> list[Hit]:
        return self.inner.rerank(query, hits)

    def _many(self, requests: Sequence[tuple[str, tuple[Hit, ...]]]) -> list[list[Hit]]:
        with self._alone():
            if hasattr(self.inner, "rerank_many"):
                ranked: list[list[Hit]] = self.inner.rerank_many(requests)
                return ranked
            return [self.inner.rerank(*each) for each in requests]


def _pairs(request: tuple[str, tuple[Hit, ...]]) -> Hashable:
    # Hits with other signals are another request, because the result has the signals of the first request.
    query, hits = request
    return query, tuple((hit.chunk.chunk_id, hit.score, *hit.scores.items()) for hit in hits)
