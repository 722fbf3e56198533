"""The loop of the answers: a pipeline that blocks it holds up no health check, and its end is the end of its work."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from typing import Any, cast

import pytest

from rag_harness.core.types import Answer, PipelineOutput, Query
from rag_harness.service.app_state import AnswerLoop, Options, Service
from rag_harness.service.database import StateFolder
from rag_harness.service.monitoring import Metrics
from rag_harness.service.problems import ProblemError
from rag_harness.service.server import create_app
from rag_harness.service.traces import Traces
from tests.unit.service.listened import serving as listening
from tests.unit.service.served import Fixed, FixedCollections, client_of, said_by, serving_of
from tests.unit.service.streaming_model import StreamingModel, streaming_model

# The loop of the answers: a pipeline that blocks it holds up no health check, and its end is the end of its work.

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


# Whoever leaves a real server in the middle of an answer ends the model's work on it, whichever way it was asked.

QUESTION = {"query": "When can lamps be returned?"}
CHAT = {"model": "e3", "stream": True, "messages": [{"role": "user", "content": "When can lamps be returned?"}]}


def app_of(folder: Path, url: str) -> Any:
    @asynccontextmanager
    async def opening() -> AsyncIterator[Service]:
        made = Options("e3", folder / "state")
        serving = serving_of(folder, "e3", mode="live", chat_model="some/model", chat_base_url=url)
        with StateFolder(made.state) as state:
            traces = Traces(state.database, made.trace_days, made.trace_content)
            traces.start()
            yield Service(made, FixedCollections(Fixed(serving)), state, traces, Metrics())
            await traces.stop()
            await cast("Any", serving.experiment.pipeline).generator.chat.aclose()

    return create_app(opening)


async def left(port: int, path: str, body: dict[str, Any], accept: str, model: StreamingModel, first: bytes) -> None:
    """Ask, read up to ``first``, or wait until the model writes where nothing is read; and break the connection off."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    content = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\naccept: {accept}\r\n"
    writer.write(f"{head}content-length: {len(content)}\r\n\r\n".encode() + content)
    if first:
        await asyncio.wait_for(reader.readuntil(first), 30)
    until = time.monotonic() + 30
    while not model.words and time.monotonic() < until:
        await asyncio.sleep(0.005)
    writer.transport.abort()


@pytest.mark.parametrize(
    ("path", "body", "accept", "first"),
    [
        ("/query", QUESTION, "text/event-stream", b"event: token"),
        ("/v1/chat/completions", CHAT, "*/*", b'"content":"word'),
        ("/query", QUESTION, "application/json", b""),
    ],
    ids=["events", "as OpenAI", "at once"],
)
def test_the_model_stops_within_a_second(
    tmp_path: Path, path: str, body: dict[str, Any], accept: str, first: bytes
) -> None:
    async def leaving() -> tuple[float, int]:
        async with streaming_model(every=0.02) as model:
            with listening(app_of(tmp_path, model.url)) as port:
                await left(port, path, body, accept, model, first)
                began = time.monotonic()
                while model.writing and time.monotonic() - began < 10:
                    await asyncio.sleep(0.005)
                took, words = time.monotonic() - began, model.words
                await asyncio.sleep(0.1)  # time for five words
                assert model.words == words > 0
                return took, model.writing

    took, writing = asyncio.run(leaving())
    assert writing == 0
    # The machine may be busy; 10 s would be for ever.
    assert took < 5
