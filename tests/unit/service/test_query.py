"""``POST /query``: what a client is told, and what it is told where there is no answer."""

from __future__ import annotations

import asyncio
import errno
import io
import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rag_harness.core.errors import CriticalError, ModelCallError, QueryTooLongError
from rag_harness.core.types import Answer, Chunk, Decision, Hit, PipelineOutput, Query, Stage
from rag_harness.pipelines.trace import Trace
from rag_harness.service.monitoring import logging_to
from rag_harness.service.schemas import Answered
from tests.unit.service.observing.test_observations import told
from tests.unit.service.served import PAGES, client_of, said_by, serving_app, serving_of

LAMP = Hit(Chunk("lamps.md#0", "lamps.md", "Lamps can be returned within 45 days.", 9, 46, ("Lamps",)), 0.9, 1)
SAID = Answer("Lamps go back within 45 days [Source 1].", citations=(1,))


class Says:
    """A pipeline that says what it is told to, or fails so."""

    def __init__(self, said: PipelineOutput | Exception, found: tuple[Hit, ...] = ()) -> None:
        self.said, self.found, self.asked = said, found, list[Query]()

    async def answer(self, query: Query) -> PipelineOutput:
        self.asked.append(query)
        with Trace(context=list(self.found)).stage("generate"):
            if isinstance(self.said, Exception):
                raise self.said
        return self.said


def passed(outcome: str = "pass", reason: str = "") -> PipelineOutput:
    decision = Decision("decision", outcome, 0.8, reason=reason)
    return PipelineOutput(SAID, (LAMP,), (LAMP,), decisions=(decision,), confidence=0.8)


async def posted(folder: Path, pipeline: Any, body: dict[str, Any], **options: Any) -> Any:
    async with client_of(folder, said_by(pipeline), **options) as client:
        return await client.post("/query", json=body)


def ask(folder: Path, pipeline: Any, body: dict[str, Any] | None = None, **options: Any) -> Any:
    return asyncio.run(posted(folder, pipeline, {"query": "lamps?"} if body is None else body, **options))


def test_an_answer_has_exact_citations_and_a_decision(tmp_path: Path) -> None:
    answered = ask(tmp_path, Says(passed()))
    body = Answered.model_validate(answered.json())
    (cited,) = body.citations
    assert answered.status_code == 200
    assert cited.quote == PAGES[cited.document][cited.start : cited.end] == "Lamps can be returned within 45 days."
    assert body.answer[cited.answer_start : cited.answer_end] == "Lamps go back within 45 days"
    assert (body.decision, body.confidence, body.reasons, cited.section) == ("pass", 0.8, [], "Lamps")
    assert body.trace_id == answered.headers["x-request-id"]


def test_the_pipeline_sees_text_and_inputs_and_nothing_else(tmp_path: Path) -> None:
    pipeline = Says(passed())
    answered = ask(tmp_path, pipeline, {"query": " lamps? ", "inputs": {"selected_text": "x"}})
    (query,) = pipeline.asked
    assert query == Query(answered.json()["trace_id"], " lamps? ", {"selected_text": "x"})


def test_an_experiment_that_does_not_say_how_sure_it_is_is_unchecked(tmp_path: Path) -> None:
    body = ask(tmp_path, Says(PipelineOutput(SAID, (LAMP,), (LAMP,)))).json()
    assert (body["decision"], body["confidence"]) == ("unchecked", None)


def test_reason_codes_come_one_by_one(tmp_path: Path) -> None:
    body = ask(tmp_path, Says(passed("warn", "NO_CITATION; LOW_RELEVANCE"))).json()
    assert (body["decision"], body["reasons"]) == ("warn", ["NO_CITATION", "LOW_RELEVANCE"])


def test_strict_mode_gives_no_answer_that_has_a_warning(tmp_path: Path) -> None:
    body = ask(tmp_path, Says(passed("warn", "NO_CITATION")), {"query": "lamps?", "mode": "strict"}).json()
    assert body["decision"] == "abstain"
    assert body["citations"] == []
    assert body["reasons"][0] == "NO_CITATION"
    assert "45" not in body["answer"]


@pytest.mark.parametrize(
    ("why", "confidence", "wanted"),
    [
        ("LOW_COVERAGE", 0.74, "warn"),
        ("LOW_RELEVANCE; LOW_COVERAGE", 0.74, "warn"),
        ("LOW_COVERAGE", 0.69, "abstain"),
        ("", 0.69, "abstain"),
        ("UNGROUNDED_ANSWER; LOW_COVERAGE", 0.74, "abstain"),
        ("CONFLICTING_SOURCES: a.md, b.md; LOW_COVERAGE", 0.74, "abstain"),
    ],
)
def test_strict_mode_gives_what_is_sure_enough_although_the_search_is_weak_with_a_warning(
    tmp_path: Path, why: str, confidence: float, wanted: str
) -> None:
    decision = Decision("decision", "warn", confidence, 0.7, why)
    output = replace(passed(), confidence=confidence, decisions=(decision,))
    body = ask(tmp_path, Says(output), {"query": "lamps?", "mode": "strict"}).json()
    assert (body["decision"], "45" in body["answer"]) == (wanted, wanted == "warn")


def test_strict_mode_asks_the_strict_variant(tmp_path: Path) -> None:
    plain, strict = Says(passed()), Says(passed("pass", "STRICT_ONE"))
    both = replace(said_by(plain), strict=said_by(strict).experiment)

    async def asked() -> Any:
        async with client_of(tmp_path, both) as client:
            return (await client.post("/query", json={"query": "lamps?", "mode": "strict"})).json()

    assert asyncio.run(asked())["reasons"] == ["STRICT_ONE"]
    assert plain.asked == []


def test_a_model_that_is_down_abstains_where_something_was_found(tmp_path: Path) -> None:
    answered = ask(tmp_path, Says(ModelCallError("no connection to http://10.0.0.7"), (LAMP,)))
    assert answered.status_code == 200
    body = answered.json()
    assert (body["decision"], body["reasons"]) == ("abstain", ["MODEL_UNAVAILABLE: ModelCallError"])
    assert "10.0.0.7" not in answered.text


def test_a_model_that_is_down_is_503_where_nothing_was_found(tmp_path: Path) -> None:
    answered = ask(tmp_path, Says(ModelCallError("no connection to http://10.0.0.7")))
    assert (answered.status_code, answered.json()["code"]) == (503, "model_unavailable")
    assert answered.headers["content-type"] == "application/problem+json"
    assert "10.0.0.7" not in answered.text


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [(CriticalError("/srv/secret/index is gone"), 503, "cannot_answer"), (ZeroDivisionError("oh"), 500, "unforeseen")],
)
def test_a_pipeline_that_breaks_tells_no_path_and_no_traceback(
    tmp_path: Path, error: Exception, status: int, code: str
) -> None:
    answered = ask(tmp_path, Says(error))
    assert (answered.status_code, answered.json()["code"]) == (status, code)
    assert "secret" not in answered.text
    assert "oh" not in answered.json()["detail"].split()


def test_what_nobody_foresaw_is_in_the_log_under_its_trace_where_the_answer_is_streamed(tmp_path: Path) -> None:
    async def asked() -> tuple[str, str]:
        async with client_of(tmp_path, said_by(Says(ZeroDivisionError("oh")))) as client:
            head = {"accept": "text/event-stream"}
            answered = await client.post("/query", json={"query": "lamps?"}, headers=head)
            return answered.text, answered.headers["x-request-id"]

    stream = io.StringIO()
    with logging_to(stream):
        text, trace_id = asyncio.run(asked())
    assert '"code":"unforeseen"' in text
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    (line,) = [line for line in lines if line["level"] == "error"]
    assert line["trace_id"] == trace_id
    assert "ZeroDivisionError: oh" in line["exception"]


def test_a_body_that_is_not_said_to_be_json_is_told_so(tmp_path: Path) -> None:
    async def asked(**head: str) -> str:
        async with client_of(tmp_path, said_by(Says(passed()))) as client:
            answered = await client.post("/query", content=b'{"query": 1}', headers=head)
            assert answered.status_code == 422
            detail: str = answered.json()["detail"]
            return detail

    assert "Content-Type: application/json" in asyncio.run(asked())
    assert "Content-Type" not in asyncio.run(asked(**{"content-type": "application/json"}))


@pytest.mark.parametrize("at", ["starlette.datastructures.UploadFile.write", "shutil.copyfileobj"])
def test_an_upload_that_finds_no_room_on_the_disk_is_told_so(
    at: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def uploaded() -> tuple[Any, list[Path]]:
        async with client_of(tmp_path, said_by(Says(passed()))) as client:
            answered = await client.post("/ingest", files={"file": ("stove.md", b"# Stove\n")})
            return answered, list((tmp_path / "state/incoming").iterdir())

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(tmp_path))

    monkeypatch.setattr(at, full)
    answered, left = asyncio.run(uploaded())
    assert (answered.status_code, answered.json()["code"]) == (507, "no_room")
    assert str(tmp_path) not in answered.text
    assert left == []


def test_a_slash_too_many_redirects_to_nobody(tmp_path: Path) -> None:
    async def asked() -> Any:
        async with client_of(tmp_path, said_by(Says(passed()))) as client:
            return await client.post("/query/", json={"query": "a"}, headers={"host": "evil.example"})

    answered = asyncio.run(asked())
    assert (answered.status_code, answered.json()["code"]) == (404, "no_such_path")


def test_an_answer_has_its_time(tmp_path: Path) -> None:
    class Sleeps:
        async def answer(self, query: Query) -> PipelineOutput:
            await asyncio.sleep(30)
            raise AssertionError

    answered = ask(tmp_path, Sleeps(), seconds=0.05)
    assert (answered.status_code, answered.json()["code"]) == (504, "too_slow")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"query": ""}, "body.query"),
        ({"query": " \n"}, "body.query"),
        ({"query": 7}, "body.query"),
        ({}, "body.query"),
        ({"query": "a", "mode": "loose"}, "body.mode"),
        ({"query": "a", "more": 1}, "body.more"),
        ({"query": "a", "collection": "../x"}, "body.collection"),
    ],
)
def test_what_does_not_fit_names_the_field(tmp_path: Path, body: dict[str, Any], field: str) -> None:
    answered = ask(tmp_path, Says(passed()), body)
    assert answered.status_code == 422
    assert [each["field"] for each in answered.json()["errors"]] == [field]


def test_a_question_has_its_length(tmp_path: Path) -> None:
    answered = ask(tmp_path, Says(passed()), {"query": "x" * 8_001})
    assert (answered.status_code, answered.json()["code"]) == (413, "query_too_long")


def test_a_collection_that_is_not_there(tmp_path: Path) -> None:
    answered = ask(tmp_path, Says(passed()), {"query": "a", "collection": "acme"})
    assert (answered.status_code, answered.json()["code"]) == (404, "no_such_collection")


def test_debug_says_what_was_found_and_decided(tmp_path: Path) -> None:
    body = ask(tmp_path, Says(passed()), {"query": "a", "debug": True}).json()["debug"]
    assert [each["document"] for each in body["context"]] == ["lamps.md"]
    assert body["decisions"][0]["name"] == "decision"


def test_every_answer_has_a_trace_without_its_words(tmp_path: Path) -> None:
    async def traced() -> tuple[Any, Any]:
        async with client_of(tmp_path, said_by(Says(passed()))) as client:
            answered = await client.post("/query", json={"query": "lamps of Ada?"})
            return answered.json(), await client.get(f"/traces/{answered.json()['trace_id']}")

    _, trace = asyncio.run(traced())
    assert trace.json()["decision"] == "pass"
    assert "Ada" not in trace.text
    assert "45 days" not in trace.text


def test_a_failed_question_has_a_trace_and_is_counted(tmp_path: Path) -> None:
    async def failing() -> tuple[str, str]:
        broken = said_by(Says(CriticalError("gone")))
        async with client_of(tmp_path, broken) as client:
            answered = await client.post("/query", json={"query": "a"})
            trace = await client.get(f"/traces/{answered.headers['x-request-id']}")
            return trace.json()["decision"], (await client.get("/metrics")).text

    decision, metrics = asyncio.run(failing())
    assert decision == "failed"
    assert 'rag_harness_decisions_total{outcome="failed"} 1.0' in metrics
    assert 'rag_harness_requests_total{method="POST",route="/query",status="503"} 1.0' in metrics


def test_a_client_that_leaves_ends_the_work(tmp_path: Path) -> None:
    begun, ended = threading.Event(), threading.Event()

    class Waits:
        async def answer(self, query: Query) -> PipelineOutput:
            begun.set()
            try:
                await asyncio.sleep(30)
            finally:
                ended.set()
            raise AssertionError

    async def leaving() -> None:
        async with serving_app(tmp_path, said_by(Waits())) as (app, service):
            sent = iter([{"type": "http.request", "body": b'{"query": "a"}', "more_body": False}])

            async def receive() -> Any:
                if message := next(sent, None):
                    return message
                assert await asyncio.to_thread(begun.wait, 10)
                return {"type": "http.disconnect"}

            async def send(_: Any) -> None:
                return None

            head = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json"), (b"content-length", b"14")]
            scope = {
                "type": "http",
                "method": "POST",
                "path": "/query",
                "headers": head,
                "query_string": b"",
                "app": app,
            }
            await asyncio.wait_for(app({**scope, "raw_path": b"/query", "http_version": "1.1"}, receive, send), 5)
            said = told(service.metrics)
        assert ended.is_set()
        assert said["rag_harness_decisions_total{outcome=left}"] == 1
        assert "rag_harness_decisions_total{outcome=failed}" not in said
        assert said["rag_harness_answer_seconds_count"] == 0

    asyncio.run(leaving())


def test_an_answer_streams_sources_before_words_and_the_verdict_behind_them(tmp_path: Path) -> None:
    async def streamed() -> list[tuple[str, Any]]:
        async with client_of(tmp_path, serving_of(tmp_path, "r1")) as client:
            head = {"accept": "text/event-stream"}
            answered = await client.post("/query", json={"query": "When can lamps be returned?"}, headers=head)
            assert answered.headers["content-type"].startswith("text/event-stream")
            return [events_of(block) for block in answered.text.strip().split("\n\n")]

    happened = asyncio.run(streamed())
    names = [name for name, _ in happened]
    assert names[0] == "retrieval"
    assert names[-1] == "done"
    assert names.index("token") < names.index("verdict")
    done = dict(happened)["done"]
    assert "".join(data["text"] for name, data in happened if name == "token") == done["answer"]


def events_of(block: str) -> tuple[str, Any]:
    event, _, data = block.partition("\ndata: ")
    return event.removeprefix("event: "), json.loads(data)


def test_what_a_pipeline_makes_of_a_question_may_be_too_long(tmp_path: Path) -> None:
    answered = ask(tmp_path, Says(QueryTooLongError("The query 'lamps' has 600 tokens", 600, 512), (LAMP,)))
    assert (answered.status_code, answered.json()["code"]) == (413, "query_too_long")
    assert (answered.json()["tokens"], answered.json()["limit"]) == (600, 512)
    assert "retry-after" not in answered.headers


def test_an_answer_that_is_too_long_is_the_models_fault(tmp_path: Path) -> None:
    long = replace(passed(), answer=Answer("x" * 200_001))
    assert ask(tmp_path, Says(replace(long, answer=Answer("x" * 200_000)))).status_code == 200
    answered = ask(tmp_path, Says(long))
    assert (answered.status_code, answered.json()["code"]) == (503, "model_unavailable")


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
def test_an_answer_can_be_read_again_with_its_question_and_sources(tmp_path: Path, accept: str) -> None:
    async def scenario() -> None:
        async with client_of(tmp_path, said_by(Says(passed()))) as client:
            body = {"query": "lamps?", "mode": "strict", "debug": True}
            first = await client.post("/query", json=body, headers={"Accept": accept})
            again = await client.get(f"/traces/{first.headers['x-request-id']}/answer")
            never = await client.get(f"/traces/{'0' * 32}/answer")
        said = first.json() if accept == "application/json" else json.loads(first.text.rsplit("data: ", 1)[-1])
        (source,) = again.json()["sources"]
        assert (source["source"], source["document"], source["text"]) == (1, "lamps.md", LAMP.chunk.text)
        asked = {"question": "lamps?", "mode": "strict", "sources": [source]}
        assert again.json() == {**said, **asked, "debug": None}
        assert (never.status_code, never.json()["code"]) == (404, "no_such_answer")

    asyncio.run(scenario())


def test_a_question_without_an_answer_has_none_to_read_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with client_of(tmp_path, said_by(Says(ModelCallError("down")))) as client:
            failed = await client.post("/query", json={"query": "lamps?"})
            again = await client.get(f"/traces/{failed.headers['x-request-id']}/answer")
        assert (failed.status_code, again.status_code) == (503, 404)

    asyncio.run(scenario())


def test_the_links_of_an_experiment_are_those_of_its_citations(tmp_path: Path) -> None:
    linked = {"links": [{"source": 1, "title": "Lamps", "url": "/module-1/lamps#returns"}]}
    output = replace(passed(), stages=(Stage("retrieve", 1.0), Stage("parse", 1.0, detail=linked)))
    (cited,) = ask(tmp_path, Says(output)).json()["citations"]
    assert cited["url"] == "/module-1/lamps#returns"


def test_the_assistant_of_the_textbook_says_how_sure_it_is(tmp_path: Path) -> None:
    async def asked(text: str) -> Any:
        async with client_of(tmp_path, serving_of(tmp_path, "t1")) as client:
            return (await client.post("/query", json={"query": text})).json()

    body = asyncio.run(asked("how long can lamps be returned?"))
    assert body["decision"] in ("pass", "warn")
    assert body["citations"][0]["url"].startswith("/lamps")
