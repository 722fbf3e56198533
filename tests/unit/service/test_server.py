"""A whole server: its loop of answers, a pipeline of summaries, and a model that is down."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from typing import Any, cast

import httpx
import httpx2
import pytest

from rag_harness.core.errors import ModelCallError
from rag_harness.core.package import VERSION
from rag_harness.core.settings.loading import load_settings
from rag_harness.core.types import Answer, Completion, Message, PipelineOutput, Query, Usage
from rag_harness.models.calls import OF_SOMEBODY, RetryPolicy, patience
from rag_harness.models.dry_run import MockChat
from rag_harness.service import server
from rag_harness.service.app_state import AnswerLoop, Options, Service
from rag_harness.service.database import StateFolder
from rag_harness.service.monitoring import Metrics
from rag_harness.service.problems import ProblemError
from rag_harness.service.server import create_app, opened
from rag_harness.service.traces import Traces
from tests.unit.service.corpus.corpora import write_pages
from tests.unit.service.listened import serving as listening
from tests.unit.service.observing.test_observations import read
from tests.unit.service.served import Fixed, FixedCollections, client_of, said_by, serving_of
from tests.unit.service.streaming_model import StreamingModel, streaming_model
from tests.unit.service.tenants import server as tenants_server
from tests.unit.studies.textbook.book import PAGES

# ``t5`` behind HTTP: summaries are searched first, each is made once, and answers are told as those of ``t1`` are.

# ``t5`` behind HTTP: summaries are searched first, each is made once, and answers are told as those of ``t1`` are.

ACTIONS = """---
module: 1
chapter: 3
url: /module-1/chapter-3
---

# Actions

An action has a goal, feedback and a result. A client may cancel the goal of an action.
"""
QUESTION = "What has an action beside a goal?"
SAID = "Summary of the section"


class Writer:
    """Stands for the mock chat model: counts the summaries that it is asked for, and may be out."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked, self.is_out, inner = list[str](), False, MockChat.complete

        async def complete(
            chat: MockChat, messages: Sequence[Message], response_format: Mapping[str, Any] | None = None
        ) -> Completion:
            if not messages[0].content.startswith("You write summaries"):
                return await inner(chat, messages, response_format)
            if self.is_out:
                raise ModelCallError("the writer is out")
            self.asked.append(messages[-1].content.rpartition("section: ")[2])
            return Completion(f"{SAID}.", "mock/placeholder", Usage(calls=1), 0.0, 0.0)

        monkeypatch.setattr(MockChat, "complete", complete)


@asynccontextmanager
async def served(root: Path, **changes: Any) -> AsyncIterator[httpx2.AsyncClient]:
    settings = load_settings({"profile": "mock", **changes}, rootdir=root)
    with StateFolder(root / "state") as state:
        app = create_app(lambda: server.opened(Options("t5", root / "state", root / "kb"), settings, state))
        async with app.router.lifespan_context(app):
            transport = httpx2.ASGITransport(app=app)
            async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
                yield client


async def asked(client: httpx2.AsyncClient, question: str = QUESTION) -> Any:
    answer = await client.post("/query", json={"query": question, "debug": True})
    assert answer.status_code == 200, answer.text
    return answer.json()


def documents_of(answer: Any) -> set[str]:
    return {hit["document"] for hit in answer["debug"]["retrieved"]}


@pytest.mark.parametrize("writer_model", ["", "mock/placeholder"])
def test_documents_come_and_go_and_each_summary_is_made_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writer_model: str
) -> None:
    writer = Writer(monkeypatch)
    write_pages(tmp_path / "kb", PAGES)
    actions = "module-1/chapter-3-actions.md"

    async def scenario() -> None:
        async with served(tmp_path, writer_model=writer_model) as client:
            made = len(writer.asked)
            health = (await client.get("/health")).json()
            assert made == (health["chunks"] if writer_model else 0)
            assert (health["docs"], health["index_size"]) == (len(PAGES), 2 * health["chunks"])
            before = await asked(client)
            assert documents_of(before) == set(PAGES)
            sent = await client.post("/ingest", files={"file": (actions, ACTIONS.encode())})
            assert sent.status_code in (200, 201), sent.text
            assert len(writer.asked) == made + bool(writer_model)
            answer = await asked(client)
            assert answer["experiment"] == "t5"
            assert answer["debug"]["retrieved"][0]["document"] == actions
            [cited] = answer["citations"]
            assert cited["document"] == actions
            assert cited["url"] == "/module-1/chapter-3#actions"
            assert answer["decision"] in ("pass", "warn")
            summaries = next(each for each in answer["debug"]["decisions"] if each["name"] == "summaries")
            assert summaries["outcome"] == (f"written by {writer_model}" if writer_model else "extractive")
            # The model reads sections, and never a summary.
            assert SAID not in json.dumps(answer["debug"]["context"])
            asked_for = len(writer.asked)
        async with served(tmp_path, writer_model=writer_model) as client:
            again = await asked(client)
            assert (again["citations"], again["confidence"]) == (answer["citations"], answer["confidence"])
            assert len(writer.asked) == asked_for
            listed = (await client.get("/documents")).json()
            [found] = [each for each in listed["documents"] if each["name"] == actions]
            assert (await client.delete(f"/documents/{found['doc_id']}")).status_code == 204
            assert documents_of(await asked(client)) == set(PAGES)
        async with served(tmp_path, writer_model=writer_model) as client:
            assert documents_of(await asked(client)) == set(PAGES)
            assert len(writer.asked) == asked_for

    asyncio.run(scenario())


def test_a_writer_that_is_out_refuses_the_document_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = Writer(monkeypatch)
    write_pages(tmp_path / "kb", PAGES)

    async def scenario() -> None:
        async with served(tmp_path, writer_model="mock/placeholder") as client:
            before = await asked(client)
            writer.is_out = True
            refused = await client.post("/ingest", files={"file": ("actions.md", ACTIONS.encode())})
            assert (refused.status_code, refused.json()["code"]) == (503, "texts_not_made")
            after = await asked(client)
            assert (after["citations"], documents_of(after)) == (before["citations"], set(PAGES))
            writer.is_out = False
            assert (await client.post("/ingest", files={"file": ("actions.md", ACTIONS.encode())})).is_success
            assert "actions.md" in documents_of(await asked(client))

    asyncio.run(scenario())


# ``GET /health``: what it tells to whom, and that it answers whatever is wrong.

ALIVE = {"status": "ok", "version": None, "model": None, "docs": None, "chunks": None, "index_size": None}
PAGE = b"# Lamps\n\nLamps can be returned.\n\n## Batteries\n\nBatteries cannot be returned.\n"
LONG = b"# Kettles\n\n" + b"A kettle of steel boils water. " * 400


async def add(client: httpx.AsyncClient, name: str, page: bytes) -> dict[str, Any]:
    said = await client.post("/ingest", files={"file": (name, page)})
    assert said.status_code == 200, said.text
    found: dict[str, Any] = said.json()
    return found


async def health(client: httpx.AsyncClient, **headers: str) -> Any:
    said = await client.get("/health", headers=headers)
    assert said.status_code == 200
    return said.json()


def test_without_keys_it_tells_what_the_server_has(tmp_path: Path) -> None:
    settings = load_settings({"profile": "mock", "embed_max_tokens": 32}, rootdir=tmp_path)

    async def scenario() -> None:
        with StateFolder(tmp_path / "state") as state:
            app = create_app(lambda: opened(Options("e2", tmp_path / "state"), settings, state))
            async with app.router.lifespan_context(app):
                transport = httpx.ASGITransport(app)
                async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
                    said = {"status": "ok", "version": VERSION, "model": "mock/placeholder"}
                    assert await health(client) == {**said, "docs": 0, "chunks": 0, "index_size": 0}
                    one = await add(client, "lamps.md", PAGE)
                    other = await add(client, "kettles.md", LONG)
                    chunks = one["chunks_created"] + other["chunks_created"]
                    found = await health(client)
                    assert found == {**said, "docs": 2, "chunks": chunks, "index_size": found["index_size"]}
                    assert found["index_size"] >= chunks > 2
                    metrics = read((await client.get("/metrics")).content)
                    told = [metrics[f"rag_harness_{name}"] for name in ("documents", "chunks", "index_size")]
                    assert told == [found["docs"], found["chunks"], found["index_size"]]
                    await client.delete(f"/documents/{one['doc_id']}")
                    left = await health(client)
                    assert (left["docs"], left["chunks"]) == (1, other["chunks_created"])
                    assert left["index_size"] < found["index_size"]
                    # A page of another site may make a browser ask.
                    assert await health(client, host="evil.example") == ALIVE

    asyncio.run(scenario())


def test_with_keys_each_is_told_of_its_own(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with tenants_server(tmp_path, ["acme", "globex"]) as served:
            page = await add(served.clients["acme"], "lamps.md", PAGE)
            acme = await health(served.clients["acme"])
            assert (acme["docs"], acme["chunks"]) == (1, page["chunks_created"])
            globex = await health(served.clients["globex"])
            assert (globex["docs"], globex["chunks"], globex["index_size"]) == (0, 0, 0)
            assert (await health(served.clients["everything"]))["docs"] == 1
            for key in ("", "Bearer of nothing", "Bearer rag_unknown"):
                assert await health(served.clients["acme"], authorization=key) == ALIVE

    asyncio.run(scenario())


# The loop of the answers: a pipeline that blocks it holds up no health check, and its end is the end of its work.

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
async def test_work_whose_caller_leaves_before_it_begins_is_not_begun() -> None:
    answers, blocks, begun = AnswerLoop(), threading.Event(), list[str]()

    async def work() -> None:
        begun.append("work")

    answers.started().call_soon_threadsafe(blocks.wait, 10)
    waiting = asyncio.ensure_future(answers.run(work()))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.sleep(0)
    blocks.set()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert not begun
    await answers.close(nothing)


@on_a_loop
async def test_an_answer_does_not_wait_for_others_once_it_is_there() -> None:
    answers, blocks = AnswerLoop(), threading.Event()

    async def work() -> str:
        # What others do on the loop in its next turn, when this task is over.
        answers.started().call_soon(blocks.wait, 10)
        return "there"

    try:
        assert await asyncio.wait_for(answers.run(work()), 5) == "there"
    finally:
        blocks.set()
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

APP_STATE_QUESTION = {"query": "When can lamps be returned?"}
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
        ("/query", APP_STATE_QUESTION, "text/event-stream", b"event: token"),
        ("/v1/chat/completions", CHAT, "*/*", b'"content":"word'),
        ("/query", APP_STATE_QUESTION, "application/json", b""),
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


# A model that is down, refuses, or sends nothing: the waiting user soon gets a clear error.

ASKED = {"query": "When can lamps be returned?"}
NOWHERE = "http://127.0.0.1:1/v1"


@asynccontextmanager
async def endpoint(says: bytes) -> AsyncIterator[str]:
    """Give the address of a server that says so to each request, and no more; of nothing, it says nothing."""
    kept: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        kept.append(writer)
        with suppress(asyncio.IncompleteReadError):
            while True:
                requests.append(await reader.readuntil(b"\r\n\r\n"))
                await reader.readexactly(int(re.findall(rb"content-length: (\d+)", requests[-1].lower())[0]))
                writer.write(says)

    requests: list[bytes] = []
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    assert 0 < len(requests) <= 1 + OF_SOMEBODY.retries
    for writer in kept:
        writer.close()
    server.close()


async def posted(
    folder: Path, url: str, headers: dict[str, str] | None = None, pauses: list[float] | None = None, **options: Any
) -> httpx2.Response:
    """Ask; a pause between two tries is noted in ``pauses``, and takes no time."""
    # With the client's package imported, which takes seconds once.
    import openai  # noqa: F401

    serving = serving_of(folder, "r1", mode="live", chat_model="some/model", chat_base_url=url)
    chat = cast("Any", serving.experiment.pipeline).generator.chat
    noted = [] if pauses is None else pauses

    async def pause(seconds: float) -> None:
        noted.append(seconds)

    chat._wait = pause
    async with client_of(folder, serving, at_last=chat.aclose, **options) as client:
        return await client.post("/query", json=ASKED, headers=headers or {})


def refuses(status: str, wait: str = "") -> bytes:
    body = b'{"error": {"message": "not now"}}'
    said = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n{wait}\r\n"
    return said.encode() + body


def test_nobody_waits_for_an_endpoint_that_is_down(tmp_path: Path) -> None:
    pauses: list[float] = []
    answered = asyncio.run(posted(tmp_path, NOWHERE, pauses=pauses))
    # A run pauses three times, for 7 s in all.
    assert len(pauses) == 1
    assert 0.5 < pauses[0] < 1.5
    said = answered.json()
    assert (answered.status_code, said["decision"], said["confidence"]) == (200, "abstain", 0.0)
    assert said["reasons"] == ["MODEL_UNAVAILABLE: ModelCallError"]
    assert "127.0.0.1" not in answered.text


def test_whoever_streams_hears_it_too(tmp_path: Path) -> None:
    answered = asyncio.run(posted(tmp_path, NOWHERE, {"accept": "text/event-stream"}))
    assert "event: retrieval" in answered.text
    assert "MODEL_UNAVAILABLE" in answered.text
    assert "event: error" not in answered.text


@pytest.mark.parametrize(
    ("says", "paused"),
    [
        (refuses("503 Service Unavailable"), 1),
        (refuses("429 Too Many Requests", "retry-after: 30\r\n"), 0),
        (b"\x00\r\n\r\n", 1),
    ],
    ids=["refuses", "asks to wait", "speaks no HTTP"],
)
def test_an_endpoint_that_refuses_is_asked_twice_at_most(tmp_path: Path, says: bytes, paused: int) -> None:
    pauses: list[float] = []

    async def refused() -> httpx2.Response:
        async with endpoint(says) as url:
            return await posted(tmp_path, url, pauses=pauses)

    said = asyncio.run(refused()).json()
    assert len(pauses) == paused
    assert (said["decision"], said["reasons"]) == ("abstain", ["MODEL_UNAVAILABLE: ModelCallError"])


def test_an_endpoint_that_says_nothing_has_the_questions_time(tmp_path: Path) -> None:
    async def silent() -> httpx2.Response:
        async with endpoint(b"") as url:
            return await posted(tmp_path, url, seconds=1.5)

    answered = asyncio.run(silent())
    said = answered.json()
    assert (answered.status_code, said["decision"]) == (200, "abstain")
    assert said["reasons"] == ["MODEL_UNAVAILABLE: TooSlow"]


def test_a_run_has_its_patience_again() -> None:
    assert patience.get() == RetryPolicy(retries=3, longest=60.0)
