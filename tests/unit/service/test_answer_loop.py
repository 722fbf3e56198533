"""The loop of the answers: a pipeline that blocks it holds up no health check, and its end is the end of its work."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

from rag_harness.core.types import Answer, PipelineOutput, Query
from rag_harness.service.app_state import AnswerLoop
from rag_harness.service.problems import ProblemError
from tests.unit.service.served import client_of, said_by

_SAID: ContextVar[str] = ContextVar("said", default="nothing")


def on_a_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test on an event loop of its own."""

    @wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


async def nothing() -> None:
    """Close nothing."""


class Blocks:
    """Blocks its loop until it is told to go on, as no pipeline should."""

    def __init__(self) -> None:
        self.blocks, self.goes_on = threading.Event(), threading.Event()

    async def answer(self, query: Query) -> PipelineOutput:
        self.blocks.set()
        assert self.goes_on.wait(10), "nobody was answered meanwhile"
        return PipelineOutput(Answer(f"{query.text}!"))


@on_a_loop
async def test_an_experiment_that_blocks_its_loop_holds_up_no_health_check(tmp_path: Path) -> None:
    pipeline = Blocks()
    async with client_of(tmp_path, said_by(pipeline)) as client:
        asked = asyncio.ensure_future(client.post("/query", json={"query": "Lamps?"}))
        assert await asyncio.to_thread(pipeline.blocks.wait, 10)
        assert (await client.get("/health")).status_code == 200
        assert not asked.done()
        pipeline.goes_on.set()
        assert (await asked).json()["answer"] == "Lamps?!"


@on_a_loop
async def test_work_runs_in_another_thread_and_in_the_context_of_the_caller() -> None:
    answers = AnswerLoop()

    async def work() -> tuple[str, str]:
        return threading.current_thread().name, _SAID.get()

    _SAID.set("hello")
    assert await answers.run(work()) == ("rag-answers", "hello")
    await answers.close(nothing)


@on_a_loop
async def test_an_error_comes_back_as_it_was_raised() -> None:
    answers, error = AnswerLoop(), ValueError("no")

    async def work() -> None:
        raise error

    with pytest.raises(ValueError, match="no") as raised:
        await answers.run(work())
    assert raised.value is error
    await answers.close(nothing)


@on_a_loop
async def test_a_caller_that_leaves_ends_the_work_and_gets_the_error_with_its_trace() -> None:
    answers, ended, begun = AnswerLoop(), list[str](), threading.Event()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError as error:
            ended.append(threading.current_thread().name)
            error.rag_trace = "as far as it came"  # type: ignore[attr-defined]
            raise

    waiting = asyncio.ensure_future(answers.run(work()))
    assert await asyncio.to_thread(begun.wait, 10)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError) as raised:
        await waiting
    assert ended == ["rag-answers"]
    assert vars(raised.value)["rag_trace"] == "as far as it came"
    await answers.close(nothing)


@on_a_loop
async def test_the_end_cancels_what_is_under_way_and_refuses_what_comes_later() -> None:
    answers, ended, begun = AnswerLoop(), list[str](), threading.Event()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("work")

    async def at_last() -> None:
        ended.append(threading.current_thread().name)

    waiting = asyncio.ensure_future(answers.run(work()))
    assert await asyncio.to_thread(begun.wait, 10)
    await answers.close(at_last)
    assert ended == ["work", "rag-answers"]
    with pytest.raises(asyncio.CancelledError):
        await waiting
    with pytest.raises(ProblemError, match="server_stops"):
        await answers.run(work())
    await answers.close(at_last)


@on_a_loop
async def test_a_blocked_loop_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag_harness.service.app_state._WIND_UP", 0.1)
    answers, goes_on, begun = AnswerLoop(), threading.Event(), threading.Event()

    async def work() -> None:
        begun.set()
        goes_on.wait(10)

    waiting = asyncio.ensure_future(answers.run(work()))
    assert await asyncio.to_thread(begun.wait, 10)
    loop = answers.started()
    began = time.perf_counter()
    await answers.close(nothing)
    assert time.perf_counter() - began < 2
    goes_on.set()
    await waiting
    while loop.is_running():
        await asyncio.sleep(0.01)
    loop.close()
