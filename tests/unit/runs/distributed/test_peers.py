"""Workers in this process that let the home worker of a text embed it: how often, by whom, and without a lost one."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rag_harness.core.errors import ModelCallError, PrerequisiteError
from rag_harness.core.types import Matrix, Query
from rag_harness.models import array_store
from rag_harness.models.array_store import key_of
from rag_harness.models.dry_run import MockEmbedder
from rag_harness.pipelines.experiments import experiment
from rag_harness.runs.distributed import worker as worker_module
from rag_harness.runs.distributed.messages import Carried, RunOpening, WorkerLostError, carry
from rag_harness.runs.distributed.worker import ComputedOrWaiting, Homes, TextBatch, Waiting, Worker, copied
from tests.unit.pipelines.mock_parts import parts_of, write_kb

MOCK = (MockEmbedder.model, MockEmbedder.revision)
EXPERIMENT = "e2"
PAGES = {
    f"lamp{number}.md": f"# Lamp {number}\n\nIt costs {number} euros.\n\n## Care\n\nWipe {number} times.\n"
    for number in range(20)
}
QUERIES = [Query(f"q{number}", f"What does lamp {number} cost?") for number in range(6)]


class Models:
    """What the models of all workers were asked for; one that is held waits, and one may fail."""

    def __init__(self) -> None:
        self.texts: Counter[str] = Counter()
        self.models: set[int] = set()
        self.fails_on, self.seconds = "", 0.0
        self.begun = threading.Event()
        self._lock = threading.Lock()

    def embed(self, model: MockEmbedder, texts: Sequence[str]) -> Matrix:
        self.begun.set()
        time.sleep(self.seconds)
        with self._lock:
            self.texts.update(texts)
            self.models.add(id(model))
        if self.fails_on and any(self.fails_on in text for text in texts):
            raise ModelCallError(f"it cannot read {self.fails_on}")
        return _real(MockEmbedder(), texts)


_real = MockEmbedder.embed_documents


@pytest.fixture(autouse=True)
def models(monkeypatch: pytest.MonkeyPatch) -> Models:
    found = Models()

    def embed(model: MockEmbedder, texts: Sequence[str]) -> Matrix:
        return found.embed(model, texts)

    monkeypatch.setattr(MockEmbedder, "embed_documents", embed)
    monkeypatch.setattr(MockEmbedder, "embed_queries", embed)
    monkeypatch.setattr(array_store, "_CHECKPOINT", 4)
    return found


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(worker_module, "gettempdir", lambda: str(tmp_path / "disk of the node"))
    return write_kb(tmp_path, PAGES, monkeypatch)


class Near:
    """A worker in this process as a peer; ``answer`` takes its place."""

    def __init__(
        self,
        name: str,
        worker: Worker | None,
        answer: Callable[[TextBatch], Awaitable[ComputedOrWaiting]] | None = None,
    ):
        self.name, self._worker, self._answer = name, worker, answer
        self.asked = 0

    async def embed(self, part: TextBatch) -> ComputedOrWaiting:
        self.asked += 1
        if self._answer is not None:
            return await self._answer(part)
        assert self._worker is not None
        return await self._worker.embed(part)


def _carried(root: Path) -> Carried:
    parts = parts_of(root)
    made = experiment(EXPERIMENT, parts)
    return carry(made, is_registered=True, queries=QUERIES, queries_digest="d", settings=parts.settings)


async def _opened(root: Path, number: int, cache: str) -> Worker:
    settings = replace(parts_of(root).settings, output="output", cache_dir=cache)
    ledger: Any = None
    worker = Worker()
    await worker.open(RunOpening(settings, 3, "run7", f"ray{number}", "run7.shared", ledger))
    return worker


def _prepared(
    root: Path,
    *answers: Callable[[TextBatch], Awaitable[ComputedOrWaiting]],
    cache: str = "cache{}",
    count: int = 2,
    before: Callable[[], Any] = lambda: None,
) -> tuple[list[Worker], list[Near]]:
    """Have ``count`` workers prepare at once, beside peers that answer as ``answers``."""

    async def go() -> tuple[list[Worker], list[Near]]:
        before()
        workers = [await _opened(root, number, cache.format(number)) for number in range(count)]
        near = [Near(f"ray{number}", worker) for number, worker in enumerate(workers)]
        near += [Near(f"other{number}", None, answer) for number, answer in enumerate(answers)]
        for worker in workers:
            await worker.meet(near)
        carried = _carried(root)
        try:
            await asyncio.wait_for(asyncio.gather(*(worker.carry(carried) for worker in workers)), 30)
        finally:
            for worker in workers:
                await worker.close()
        return workers, near

    return asyncio.run(go())


def _texts(worker: Worker) -> list[str]:
    retrieval = worker._parts.retrieval()
    return [*(chunk.text for chunk in retrieval.chunks), *(query.text for query in QUERIES)]


@pytest.mark.parametrize("cache", ["cache{}", "shared"])
def test_each_text_is_embedded_once_by_all_with_and_without_a_shared_folder(
    root: Path, models: Models, cache: str
) -> None:
    workers, _ = _prepared(root, cache=cache, count=3)
    texts = _texts(workers[0])
    assert len(texts) > 40
    assert models.texts == Counter(texts)
    assert len(models.models) == 3
    for worker in workers:
        assert _stored(worker) == _expected(worker)


def _chunks(worker: Worker) -> list[str]:
    return [chunk.text for chunk in worker._parts.retrieval().chunks]


def _stored(worker: Worker) -> bytes:
    """What the worker has on disk of its chunks, as bytes; nothing is asked for."""
    store = worker._parts.retrieval().embedder._vectors
    return b"".join(found.tobytes() for found in store.get([key_of("document", text) for text in _chunks(worker)]))


def _expected(worker: Worker) -> bytes:
    return _real(MockEmbedder(), _chunks(worker)).tobytes()


async def _lost(_: TextBatch) -> ComputedOrWaiting:
    raise WorkerLostError("its node is gone")


async def _broken(_: TextBatch) -> ComputedOrWaiting:
    raise PrerequisiteError("it has no such model")


async def _silent(_: TextBatch) -> ComputedOrWaiting:
    await asyncio.sleep(3600)
    raise AssertionError


async def _still(_: TextBatch) -> ComputedOrWaiting:
    await asyncio.sleep(0.005)
    return Waiting(7)


@pytest.mark.parametrize("answer", [_lost, _silent, _still, _broken])
def test_what_a_peer_does_not_do_is_done_here(
    root: Path,
    models: Models,
    answer: Callable[[TextBatch], Awaitable[ComputedOrWaiting]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker_module, "SILENCE", 0.2 - worker_module.POLL)
    monkeypatch.setattr(worker_module, "STANDSTILL", 0.05)
    workers, near = _prepared(root, answer, cache="shared", count=1)
    assert models.texts == Counter(_texts(workers[0]))
    assert _stored(workers[0]) == _expected(workers[0])
    assert near[-1].asked > 0


def test_one_that_is_gone_is_asked_for_no_more_and_the_others_share_what_was_its(root: Path, models: Models) -> None:
    workers, near = _prepared(root, _lost, count=2)
    assert models.texts == Counter(_texts(workers[0]))
    assert len(models.models) == 2
    # Each of the two had asked it for no more than its share of what was in flight behind the first of its parts.
    assert near[-1].asked <= 2 * (worker_module.AHEAD + 1)


def test_whoever_takes_the_place_of_a_lost_one_is_asked_in_its_place(root: Path, models: Models) -> None:
    async def go() -> None:
        worker, other = await _opened(root, 0, "cache0"), await _opened(root, 1, "cache1")
        near, again = Near("ray0", worker), Near("ray1", other)

        async def replaced(_: TextBatch) -> ComputedOrWaiting:
            await worker.meet([near, again])
            raise WorkerLostError("its process has ended")

        await worker.meet([near, lost := Near("lost", None, replaced)])
        await worker.carry(_carried(root))
        assert lost.asked <= worker_module.AHEAD + 1
        assert again.asked > 0
        assert models.texts == Counter(_texts(worker))
        await worker.close()
        await other.close()

    asyncio.run(go())


def test_whoever_waits_long_asks_again_and_the_model_is_asked_once(
    root: Path, models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "POLL", 0.005)
    models.seconds = 0.03
    workers, near = _prepared(root, count=2)
    assert models.texts == Counter(_texts(workers[0]))
    assert max(each.asked for each in near) > len(models.texts) / 4


def test_a_worker_whose_threads_all_wait_still_serves(root: Path, models: Models) -> None:
    def one_thread() -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))

    workers, _ = _prepared(root, count=2, before=one_thread)
    assert models.texts == Counter(_texts(workers[0]))


def test_an_error_of_the_model_is_said_as_it_would_be_without_the_others(root: Path, models: Models) -> None:
    models.fails_on = "Lamp 7"
    with pytest.raises(PrerequisiteError, match=r"'e2' cannot be made ready on node .*: it cannot read Lamp 7"):
        _prepared(root, count=2)


def test_texts_of_trials_are_embedded_here(root: Path, models: Models) -> None:
    async def go() -> None:
        worker, other = await _opened(root, 0, "cache"), Near("other", None, _lost)
        await worker.meet([Near("ray0", worker), other])
        embedder = worker._parts.embedder()
        await asyncio.to_thread(embedder.embed_queries, ["a question", "another one", "and two", "three", "four"])
        await asyncio.to_thread(embedder.embed_queries, ["a question"])
        assert other.asked == 0
        assert models.texts["a question"] == 1
        await worker.close()

    asyncio.run(go())


def test_a_home_with_another_model_says_which(root: Path) -> None:
    async def go() -> None:
        worker = await _opened(root, 0, "cache")
        part = TextBatch(worker._parts.settings.embed_model, ("mock/hashed-words", "2"), ["text"], "document", False)
        with pytest.raises(PrerequisiteError, match=f"vectors of mock/hashed-words 2 and has {' '.join(MOCK)}"):
            await worker.embed(part)
        await worker.close()

    asyncio.run(go())


def test_those_that_ask_for_the_same_at_once_wait_for_the_same(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Sequence[str]] = []
    kept = array_store.CachedEmbedder.kept

    def noting(embedder: array_store.CachedEmbedder, texts: Sequence[str], *given: Any) -> array_store.Computed:
        asked.append(texts)
        return kept(embedder, texts, *given)

    async def go() -> None:
        worker = await _opened(root, 0, "cache")
        part = TextBatch(
            worker._parts.settings.embed_model,
            MOCK,
            ["text"],
            "document",
            False,
        )
        await asyncio.gather(*(worker.embed(part) for _ in range(3)))
        await worker.close()

    monkeypatch.setattr(array_store.CachedEmbedder, "kept", noting)
    asyncio.run(go())
    assert asked == [["text"]]


def test_a_worker_that_closes_lets_nobody_wait(root: Path, models: Models) -> None:
    async def go() -> None:
        worker = await _opened(root, 0, "cache")
        models.seconds = 0.2
        parts = [
            TextBatch(
                worker._parts.settings.embed_model,
                MOCK,
                [text],
                "document",
                False,
            )
            for text in "abc"
        ]
        asked = [asyncio.ensure_future(worker.embed(part)) for part in parts]
        assert await asyncio.to_thread(models.begun.wait, 10)
        await worker.close()
        said = await asyncio.wait_for(asyncio.gather(*asked, return_exceptions=True), 5)
        assert [isinstance(each, BaseException) for each in said] == [False, True, True]

    asyncio.run(go())


def _dealt(digests: Sequence[bytes], workers: int) -> list[int]:
    dealing = Homes(workers)
    return [dealing.of(digest) for digest in digests]


def test_parts_are_dealt_by_content_and_evenly() -> None:
    digests = [key_of(str(number)) for number in range(240)]
    dealt = _dealt(digests, 24)
    assert dealt == _dealt(digests, 24)
    assert set(Counter(dealt).values()) == {10}
    rest = [number for number in range(240) if number % 3]
    again = _dealt([digests[number] for number in rest], 24)
    assert sum(dealt[number] == home for number, home in zip(rest, again, strict=True)) > len(rest) / 4


def test_what_is_copied_has_memory_of_its_own() -> None:
    lent, tokens = np.ones((2, 4), np.float32), np.ones((3, 4), np.float16)
    vectors, copies = copied((lent, [tokens]))
    assert copies is not None
    assert not np.shares_memory(vectors, lent)
    assert not np.shares_memory(copies[0], tokens)
    assert copied((lent, None))[1] is None
