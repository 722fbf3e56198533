"""Each request is worked on once, in batches, off the loop; one that fails takes no other with it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from contextlib import nullcontext

import pytest

from rag_harness.core.types import Chunk, Hit
from rag_harness.pipelines.trace import Trace
from rag_harness.retrieval.retrievers import SharedReranker, SharedWork


class Work:
    """Doubles numbers, refuses odd ones, and remembers the batches."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.threads: set[str] = set()
        self.may_go = threading.Event()
        self.may_go.set()

    def __call__(self, numbers: Sequence[int]) -> list[int]:
        self.batches.append(list(numbers))
        self.threads.add(threading.current_thread().name)
        assert self.may_go.wait(5)
        if any(number % 2 for number in numbers):
            raise ValueError(f"odd: {numbers}")
        return [number * 2 for number in numbers]


def test_what_waits_is_one_batch_and_nothing_is_asked_twice() -> None:
    work = Work()
    shared = SharedWork(work, key=int)

    async def run() -> list[int]:
        work.may_go.clear()
        first = [asyncio.create_task(shared.ask(each)) for each in (2, 4, 2)]
        while not work.batches:
            await asyncio.sleep(0)
        later = [asyncio.create_task(shared.ask(each)) for each in (6, 8, 4, 6)]
        await asyncio.sleep(0)
        work.may_go.set()
        answered = await asyncio.gather(*first, *later, shared.ask(2))
        assert all(milliseconds > 0 for _, milliseconds in answered)
        return [result for result, _ in answered]

    assert asyncio.run(run()) == [4, 8, 4, 12, 16, 8, 12, 4]
    assert work.batches == [[2, 4], [6, 8]]
    assert all(name.startswith("rag-local") for name in work.threads)


def test_a_failure_is_its_own_and_may_be_asked_again() -> None:
    work = Work()
    shared = SharedWork(work, key=int)

    async def run() -> list[object]:
        asked = [shared.ask(each) for each in (2, 3, 4)]
        answers: list[object] = [*await asyncio.gather(*asked, return_exceptions=True)]
        with pytest.raises(ValueError, match="odd"):
            await shared.ask(3)
        return answers

    two, three, four = asyncio.run(run())
    assert isinstance(two, tuple)
    assert isinstance(four, tuple)
    assert (two[0], type(three), four[0]) == (4, ValueError, 8)
    assert work.batches == [[2, 3, 4], [2], [3], [4], [3]]


def test_a_trial_that_is_cancelled_leaves_the_others_their_result() -> None:
    work = Work()
    shared = SharedWork(work, key=int)

    async def run() -> int:
        work.may_go.clear()
        one, other = asyncio.create_task(shared.ask(2)), asyncio.create_task(shared.ask(2))
        while not work.batches:
            await asyncio.sleep(0)
        one.cancel()
        work.may_go.set()
        return (await other)[0]

    assert asyncio.run(run()) == 4


class OneByOne:
    """A reranker of somebody else's, without ``rerank_many``."""

    model, revision = "mine", "1"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def rerank(self, query: str, hits: Sequence[Hit]) -> list[Hit]:
        self.asked.append(query)
        return [hit.reranked(1.0, rank) for rank, hit in enumerate(reversed(hits), 1)]


def test_two_experiments_rerank_a_query_once_and_record_the_same_time() -> None:
    inner = OneByOne()
    reranker = SharedReranker(inner, nullcontext)
    hits = [Hit(Chunk(f"c{n}", "d", "text"), 1.0 / n, n) for n in (1, 2, 3)]

    async def trial() -> Trace:
        trace = Trace(retrieved=list(hits))
        await trace.rerank(reranker, "a lamp", 2)
        return trace

    async def run() -> list[Trace]:
        return [*await asyncio.gather(trial(), trial()), await trial()]

    traces = asyncio.run(run())
    assert inner.asked == ["a lamp"]
    assert len({trace.milliseconds["rerank"] for trace in traces}) == 1
    assert [[hit.chunk.chunk_id for hit in trace.context] for trace in traces] == [["c3", "c2"]] * 3
