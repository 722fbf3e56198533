"""Spans, metrics and logs of a server, each by itself and together."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import re
import threading
import warnings
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2
import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import REGISTRY
from prometheus_client.parser import text_string_to_metric_families

from rag_harness.__main__ import main
from rag_harness.core.log import log
from rag_harness.core.settings.loading import load_settings
from rag_harness.core.types import Answer, Call, Decision, PipelineOutput, Stage
from rag_harness.service import monitoring, observations
from rag_harness.service.app_state import Options
from rag_harness.service.corpus.document_table import CollectionSize
from rag_harness.service.database import StateFolder
from rag_harness.service.monitoring import (
    NOT_LOGGED,
    Bounded,
    Counting,
    Format,
    LogLines,
    Metrics,
    log_context,
    logging_to,
    without_secrets,
)
from rag_harness.service.observations import FAILED, reason_codes, spans_of
from rag_harness.service.server import create_app, opened
from tests.unit.service.corpus.corpora import write_pages
from tests.unit.service.observing.seen import SECRET_WORDS, TRACEPARENT, output, seen
from tests.unit.service.observing.test_otlp import Collector, collecting

_VALUE = {"anyOf": [{"type": ["string", "boolean", "number"]}, {"type": "array", "items": {"type": "string"}}]}
SCHEMA = {
    "type": "object",
    "required": ["span_id", "parent", "name", "kind", "start_ms", "ms", "attributes", "failed"],
    "additionalProperties": False,
    "properties": {
        "span_id": {"type": "string", "pattern": "^[0-9a-f]{16}$"},
        "parent": {"type": "string", "pattern": "^([0-9a-f]{16})?$"},
        "name": {"type": "string", "minLength": 1},
        "kind": {"enum": ["internal", "client"]},
        "start_ms": {"type": "number", "minimum": 0},
        "ms": {"type": "number", "minimum": 0},
        "failed": {"type": "boolean"},
        "attributes": {
            "type": "object",
            "propertyNames": {"pattern": r"^(gen_ai|rag_harness|http|error)\.[A-Za-z0-9_.:-]+$"},
            "additionalProperties": _VALUE,
        },
    },
}

VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def test_a_question_its_stages_and_its_calls_are_spans() -> None:
    first, *rest = spans_of(seen())
    assert [each.name for each in (first, *rest)] == [
        "invoke_workflow r1",
        "understand",
        "retrieval default",
        "generate",
        "chat gpt-x",
    ]
    assert [each.parent for each in (first, *rest[:3])] == ["", *[first.span_id] * 3]
    assert rest[3].parent == rest[2].span_id
    assert len({each.span_id for each in (first, *rest)}) == 5
    for each in (first, *rest):
        VALIDATOR.validate(json.loads(json.dumps(each.json(), allow_nan=False)))


def test_a_detail_with_a_space_in_its_name_is_an_attribute_without_one() -> None:
    made = replace(output(), stages=(Stage("cut", 0.0, (), {"chunks left ": 3.0}),))
    span = spans_of(seen(output=made))[1]
    assert span.attributes["rag_harness.stage.chunks_left_"] == 3.0


def test_times_are_those_that_were_measured_and_places_say_that_they_are_inferred() -> None:
    first, *rest = spans_of(seen())
    assert [(each.start_ms, each.ms) for each in rest] == [(0.0, 1.0), (1.0, 9.5), (10.5, 80.0), (10.5, 80.0)]
    assert (first.start_ms, first.ms, first.attributes[observations.STAGES_MS]) == (0.0, 100.0, 90.5)
    assert observations.STARTS not in first.attributes
    assert {each.attributes[observations.STARTS] for each in rest} == {"inferred"}


def test_a_call_has_the_names_of_the_conventions() -> None:
    call = spans_of(seen())[-1]
    assert call.kind == "client"
    assert call.attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-x",
        "gen_ai.usage.input_tokens": 120,
        "gen_ai.usage.output_tokens": 30,
        "gen_ai.response.time_to_first_chunk": 0.025,
        "rag_harness.calls": 1,
        "rag_harness.call.role": "answer",
        "rag_harness.call.waited_ms": 4.0,
        "rag_harness.call.retries": 1,
        "rag_harness.call.recorded": False,
        "rag_harness.starts": "inferred",
    }


def test_the_question_says_what_was_decided_by_codes() -> None:
    said = spans_of(seen(output=output("warn", "UNGROUNDED_CLAIM: a quokka, says it; LOW_COVERAGE"), outcome="warn"))[0]
    assert said.attributes[observations.OUTCOME] == "warn"
    assert said.attributes[observations.REASONS] == ["UNGROUNDED_CLAIM", "LOW_COVERAGE"]
    assert said.attributes["rag_harness.decision.signal.relevance.value"] == 0.812346
    assert said.attributes["rag_harness.decision.plan.outcome"] == "planned"
    assert said.attributes["rag_harness.decision.decision.threshold"] == 0.6
    assert said.attributes[observations.CONFIDENCE] == 0.9


def test_of_what_a_stage_says_only_numbers_are_kept() -> None:
    retrieval = spans_of(seen())[2].attributes
    kept = {name: value for name, value in retrieval.items() if name.startswith("rag_harness.stage.")}
    assert kept == {"rag_harness.stage.hits": 5, "rag_harness.stage.best.cosine": 0.71}
    assert retrieval[observations.OPERATION] == "retrieval"
    assert retrieval[observations.DATA_SOURCE] == "default"


def test_no_word_of_question_answer_source_or_prompt_is_in_a_span() -> None:
    told = output("warn", "UNGROUNDED_CLAIM: a quokka lives; CONFLICTING_SOURCES: narwhal.md")
    text = json.dumps([each.json() for each in spans_of(seen(output=told, outcome="warn"))]).lower()
    assert [word for word in SECRET_WORDS if word in text] == []


def test_a_failure_says_where_and_what_kind_and_not_its_message() -> None:
    stages = (Stage("retrieve", 3.0), Stage("generate", 7.0))
    failed = seen(
        outcome=FAILED,
        status=503,
        failed_stage="generate",
        error_type="ModelCallError",
        output=PipelineOutput(Answer(""), stages=stages),
    )
    spans = spans_of(failed)
    assert [each.failed for each in spans] == [True, False, True]
    assert spans[0].attributes[observations.ERROR_TYPE] == "ModelCallError"
    assert spans[0].attributes[observations.FAILED_STAGE] == "generate"
    assert spans[0].attributes[observations.STATUS_CODE] == 503
    assert observations.CONFIDENCE not in spans[0].attributes


def test_what_is_no_number_is_left_out() -> None:
    broken = PipelineOutput(Answer(""), confidence=float("nan"), decisions=(Decision("gate", "", float("inf")),))
    said = spans_of(seen(output=broken))[0].attributes
    assert observations.CONFIDENCE not in said
    assert "rag_harness.decision.gate.value" not in said


@given(st.text(max_size=200))
def test_reason_codes_are_codes_whatever_is_said(reason: str) -> None:
    codes = reason_codes(PipelineOutput(Answer(""), decisions=(Decision("decision", "warn", reason=reason),)))
    assert all(re.fullmatch(r"[A-Z][A-Z0-9_]{2,63}", code) for code in codes)
    assert len(set(codes)) == len(codes)


_numbers = st.floats(0, 1e6)
_calls = st.builds(Call, st.just("answer"), st.text(max_size=5), ms=_numbers, ttft_ms=st.none() | _numbers)
_details = st.dictionaries(
    st.text(max_size=8), st.none() | st.floats() | st.text() | st.lists(st.integers()), max_size=4
)
_stages = st.builds(Stage, st.text(min_size=1, max_size=8), _numbers, st.lists(_calls, max_size=3).map(tuple), _details)


@given(
    st.lists(_stages, max_size=5).map(tuple),
    st.lists(st.builds(Decision, st.text(), st.text(), st.floats())).map(tuple),
)
def test_whatever_a_pipeline_did_is_a_tree_of_spans_that_json_can_say(
    stages: tuple[Stage, ...], decisions: tuple[Decision, ...]
) -> None:
    spans = spans_of(seen(output=PipelineOutput(Answer(""), stages=stages, decisions=decisions)))
    assert len(spans) == 1 + len(stages) + sum(len(stage.calls) for stage in stages)
    known = {each.span_id for each in spans}
    assert all(each.parent in known for each in spans[1:])
    for each in spans:
        VALIDATOR.validate(json.loads(json.dumps(each.json(), allow_nan=False)))


@pytest.mark.parametrize(
    "name", [name for name in vars(observations) if name.isupper() and "gen_ai" in str(vars(observations)[name])]
)
def test_each_genai_name_is_one_of_opentelemetrys_own(name: str) -> None:
    attributes = pytest.importorskip("opentelemetry.semconv._incubating.attributes.gen_ai_attributes")
    assert vars(observations)[name] in vars(attributes).values()


def test_each_operation_is_one_of_opentelemetrys_own() -> None:
    pytest.importorskip("opentelemetry.semconv")
    from opentelemetry.semconv.schemas import Schemas

    source = pytest.importorskip("opentelemetry.semconv._incubating.attributes.gen_ai_attributes").__file__
    said = Path(source).read_text(encoding="utf-8")
    for operation in (observations.WORKFLOW_OPERATION, observations.RETRIEVAL_OPERATION, observations.CHAT_OPERATION):
        assert f'"{operation}"' in said
    assert observations.SCHEMA_URL in [each.value for each in Schemas]


def told(metrics: Metrics, by_collection: bool = False) -> dict[str, float]:
    return read(metrics.text(by_collection))


def read(text: bytes) -> dict[str, float]:
    """Every sample of a text, by its name and labels."""
    found = {}
    for family in text_string_to_metric_families(text.decode()):
        for sample in family.samples:
            labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
            found[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return found


def test_a_question_is_counted_with_its_time_its_stages_and_its_tokens() -> None:
    metrics = Metrics()
    metrics.answered(seen(ms=300.0, first_token_ms=40.0))
    metrics.answered(seen(ms=30.0, outcome="abstain", output=output("abstain")))
    said = told(metrics)
    assert said["rag_harness_decisions_total{outcome=pass}"] == 1
    assert said["rag_harness_decisions_total{outcome=abstain}"] == 1
    assert said["rag_harness_answer_seconds_count"] == 2
    assert said["rag_harness_answer_seconds_sum"] == pytest.approx(0.33)
    assert said["rag_harness_answer_seconds_bucket{le=0.05}"] == 1
    assert said["rag_harness_first_token_seconds_count"] == 1
    assert said["rag_harness_stage_seconds_sum{stage=retrieve}"] == pytest.approx(0.019)
    assert said["rag_harness_tokens_total{type=input}"] == 240
    assert said["rag_harness_tokens_total{type=output}"] == 60


def test_requests_are_counted_by_the_template_of_their_path() -> None:
    metrics = Metrics()
    metrics.request("GET", "/traces/{trace_id}", 200)
    metrics.request("GET", "/traces/{trace_id}", 404)
    metrics.request("BREW", "", 405)
    said = told(metrics)
    assert said["rag_harness_requests_total{method=GET,route=/traces/{trace_id},status=200}"] == 1
    assert said["rag_harness_requests_total{method=GET,route=/traces/{trace_id},status=404}"] == 1
    assert said["rag_harness_requests_total{method=other,route=none,status=405}"] == 1


def test_what_is_being_answered_and_what_waits() -> None:
    metrics = Metrics()
    waiting = [1]
    metrics.watch_waiting(lambda: waiting[0])
    with metrics.in_flight():
        inside = told(metrics)
    waiting[0] = 0
    assert (inside["rag_harness_questions_in_flight"], inside["rag_harness_questions_waiting"]) == (1, 1)
    after = told(metrics)
    assert (after["rag_harness_questions_in_flight"], after["rag_harness_questions_waiting"]) == (0, 0)


def test_documents_are_counted_when_somebody_reads() -> None:
    held = {"default": CollectionSize(2, 30, 31)}
    metrics = Metrics(lambda: held, lambda: 4)
    held["more"] = CollectionSize(1, 5, 5)
    said = told(metrics)
    assert [said[f"rag_harness_{name}"] for name in ("documents", "chunks", "index_size")] == [3, 35, 36]
    assert said["rag_harness_traces_lost"] == 4


def test_ingest_and_thumbs() -> None:
    metrics = Metrics()
    metrics.ingested(0.2, ok=True)
    metrics.ingested(3.0, ok=False)
    metrics.rated(1)
    metrics.rated(-1)
    metrics.rated(-1)
    said = told(metrics)
    assert (said["rag_harness_ingest_seconds_count"], said["rag_harness_ingest_failures_total"]) == (2, 1)
    assert (said["rag_harness_ratings_total{thumb=up}"], said["rag_harness_ratings_total{thumb=down}"]) == (1, 2)


def test_no_tenant_is_named_unless_that_is_asked_for() -> None:
    metrics = Metrics(lambda: {"acme": CollectionSize(2, 30, 31)})
    metrics.answered(seen(collection="acme"))
    assert b"acme" not in metrics.text()
    said = told(metrics, by_collection=True)
    assert said["rag_harness_collection_questions_total{collection=acme,outcome=pass}"] == 1
    assert said["rag_harness_collection_documents{collection=acme}"] == 2
    assert said["rag_harness_collection_chunks{collection=acme}"] == 30
    assert said["rag_harness_collection_index_size{collection=acme}"] == 31
    assert said["rag_harness_documents"] == 2


def test_no_label_grows_without_end() -> None:
    metrics = Metrics(lambda: {f"tenant-{n}": CollectionSize(1, 1, 1) for n in range(500)})
    for n in range(500):
        metrics.request(f"M{n}", f"/{n}", 200)
        stages = (Stage(f"stage {n}", 1.0),)
        told_so = PipelineOutput(Answer(""), stages=stages)
        metrics.answered(seen(outcome=f"outcome {n}", collection=f"tenant-{n}", output=told_so))
    said = told(metrics, by_collection=True)
    assert len(said) < 2_000
    assert said["rag_harness_decisions_total{outcome=other}"] == 500
    assert said["rag_harness_stage_seconds_count{stage=other}"] == 468
    assert said["rag_harness_collection_documents{collection=other}"] == 300
    assert said["rag_harness_collection_questions_total{collection=other,outcome=other}"] == 300


def test_a_failed_question_is_an_outcome_of_its_own() -> None:
    metrics = Metrics()
    metrics.answered(seen(outcome=FAILED, output=PipelineOutput(Answer(""))))
    assert told(metrics)["rag_harness_decisions_total{outcome=failed}"] == 1


def test_two_servers_of_a_process_share_nothing() -> None:
    one, other = Metrics(), Metrics()
    one.rated(1)
    assert "rag_harness_ratings_total{thumb=up}" not in told(other)
    assert not [family for family in REGISTRY.collect() if family.name.startswith("rag_harness")]


def test_the_process_is_measured_too() -> None:
    assert told(Metrics())["process_resident_memory_bytes"] > 1_000_000


def test_known_labels_stay_whatever_came_first() -> None:
    labels = Bounded(1, ["GET"])
    assert [labels.label(text) for text in ("a", "b", "GET", "a")] == ["a", "other", "GET", "a"]


def request(app: Any, metrics: Metrics, route: str | None = "/query", kind: str = "http") -> list[dict[str, Any]]:
    """Send one request through the middleware; return the lines it logged."""
    scope: dict[str, Any] = {
        "type": kind,
        "method": "POST",
        "path": "/query?key=abc",
        "state": {"trace_id": "t1"},
        "app": SimpleNamespace(state=SimpleNamespace(service=SimpleNamespace(metrics=metrics))),
    }
    if route:
        scope["route"] = SimpleNamespace(path=route)

    async def send(message: Any) -> None:
        pass

    stream = io.StringIO()
    with logging_to(stream):
        asyncio.run(Counting(app)(scope, None, send))
    return [json.loads(line) for line in stream.getvalue().splitlines()]


async def answers(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 201})
    await send({"type": "http.response.body", "body": b""})


async def leaves(scope: Any, receive: Any, send: Any) -> None:
    raise asyncio.CancelledError


def test_a_request_is_a_count_and_a_line_of_fields() -> None:
    metrics = Metrics()
    (line,) = request(answers, metrics)
    kept = {name: line[name] for name in ("event", "method", "route", "status", "trace_id")}
    assert kept == {"event": "request", "method": "POST", "route": "/query", "status": 201, "trace_id": "t1"}
    assert 0 <= line["ms"] < 1_000
    assert told(metrics)["rag_harness_requests_total{method=POST,route=/query,status=201}"] == 1


def test_a_path_that_is_none_is_not_repeated() -> None:
    metrics = Metrics()
    (line,) = request(answers, metrics, route=None)
    assert line["route"] == "none"
    assert told(metrics)["rag_harness_requests_total{method=POST,route=none,status=201}"] == 1


def test_who_left_before_the_answer_is_counted_as_that() -> None:
    metrics = Metrics()
    with pytest.raises(asyncio.CancelledError):
        request(leaves, metrics)
    assert told(metrics)["rag_harness_requests_total{method=POST,route=/query,status=499}"] == 1


@pytest.mark.parametrize("route", ["/health", "/ready", "/metrics"])
def test_what_machines_ask_every_few_seconds_is_counted_and_not_logged(route: str) -> None:
    metrics = Metrics()
    assert request(answers, metrics, route=route) == []
    assert told(metrics)[f"rag_harness_requests_total{{method=POST,route={route},status=201}}"] == 1


def test_what_is_no_request_passes_through() -> None:
    metrics = Metrics()
    assert request(answers, metrics, kind="lifespan") == []
    assert not [name for name in told(metrics) if name.startswith("rag_harness_requests_total")]


KEY = "rh_Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MDEyMzQ1Njc4OTA"


@contextmanager
def logged(level: str = "info", shape: Format = "json") -> Iterator[list[Any]]:
    """Lines that the block logs, read after it."""
    stream, lines = io.StringIO(), list[Any]()
    with logging_to(stream, level, shape):
        yield lines
    text = stream.getvalue().splitlines()
    lines += [json.loads(line) for line in text] if shape == "json" else text


def test_the_harness_and_the_libraries_log_one_way() -> None:
    with logged() as lines:
        log.info("Ready on port %d", 8000)
        logging.getLogger("some.library").warning("oh: %s", "well")
        logging.getLogger("some.library").debug("not asked for")
    assert [(line["event"], line["level"], line["logger"]) for line in lines] == [
        ("Ready on port 8000", "info", "rag_harness"),
        ("oh: well", "warning", "some.library"),
    ]
    assert all(line["timestamp"].endswith("Z") for line in lines)


def test_every_line_of_a_question_has_its_trace_id_and_no_other_questions() -> None:
    async def asking(trace_id: str) -> None:
        with log_context(trace_id=trace_id):
            await asyncio.sleep(0)
            log.info("in %s", trace_id)

    async def both() -> None:
        await asyncio.gather(asking("a"), asking("b"))
        log.info("outside")

    with logged() as lines:
        asyncio.run(both())
    assert {line["event"]: line.get("trace_id") for line in lines} == {"in a": "a", "in b": "b", "outside": None}


def test_uvicorns_access_log_becomes_fields_without_what_stands_behind_the_path() -> None:
    access = logging.getLogger("uvicorn.access")
    access.propagate = False
    with logged() as lines, log_context(trace_id="t"):
        access.info('%s - "%s %s HTTP/%s" %d', "127.0.0.1:55", "GET", f"/documents?key={KEY}", "1.1", 200)
        logging.getLogger("uvicorn.error").info("Started")
    access.propagate = True
    first, second = lines
    assert {name: first[name] for name in ("event", "client", "method", "path", "status", "trace_id")} == {
        "event": "request",
        "client": "127.0.0.1",
        "method": "GET",
        "path": "/documents",
        "status": 200,
        "trace_id": "t",
    }
    assert "positional_args" not in first
    assert (second["event"], second["logger"]) == ("Started", "uvicorn.error")


def test_warnings_of_python_are_logged() -> None:
    with logged() as lines, warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(True)
        warnings.warn("old ways", UserWarning, stacklevel=1)
    assert "old ways" in lines[0]["event"]
    assert lines[0]["logger"] == "py.warnings"


def test_a_traceback_is_one_line_without_the_values_of_variables() -> None:
    with logged() as lines:
        hidden = f"what the user asked {len(lines)}"
        try:
            raise ValueError("no" if hidden else "yes")
        except ValueError:
            log.exception("It broke")
    assert len(lines) == 1
    assert "ValueError: no" in lines[0]["exception"]
    assert hidden not in lines[0]["exception"]


@pytest.mark.parametrize("shape", ["json", "text"])
def test_no_key_is_logged_wherever_it_stands(shape: Format) -> None:
    with logged(shape=shape) as lines, log_context(authorization=f"Bearer {KEY}", note=f"key {KEY}"):
        log.info("Found %s", KEY)
        log.info("Authorization: Bearer abcdef123456")
        log.info("http://somebody:hunter2@example.org/")
        try:
            raise ValueError(KEY)
        except ValueError:
            log.exception("failed")
    text = str(lines)
    assert [word for word in (KEY, "abcdef123456", "hunter2") if word in text] == []
    assert NOT_LOGGED in text


def test_a_line_of_text_cannot_be_made_to_look_like_two() -> None:
    with logged(shape="text") as lines:
        log.warning("one\nERROR two\x1b[2J\u2028three")
    assert len(lines) == 1
    assert "one\\nERROR two\\x1b[2J\\u2028three" in lines[0]
    assert "warning" in lines[0]


def test_a_line_of_json_cannot_either_and_half_a_character_is_no_trouble() -> None:
    with logged() as lines:
        log.warning("one\ntwo \ud83d")
    assert lines[0]["event"] == "one\ntwo \ud83d"


def test_the_level_is_that_of_the_option() -> None:
    with logged("warning") as lines:
        log.info("quiet")
        log.warning("loud")
    assert [line["event"] for line in lines] == ["loud"]


def test_what_was_set_up_before_is_set_up_again() -> None:
    def state() -> list[object]:
        watched = [logging.getLogger(), log, logging.getLogger("uvicorn.access"), logging.getLogger("httpx2")]
        return [(list(one.handlers), one.level, one.propagate) for one in watched]

    before = state()
    with logged():
        assert state() != before
    assert state() == before
    assert "rag-log" not in {thread.name for thread in threading.enumerate()}


class _Stuck(io.StringIO):
    """A pipe that nobody reads."""

    def __init__(self) -> None:
        super().__init__()
        self.free = threading.Event()

    def write(self, text: str) -> int:
        self.free.wait()
        return super().write(text)


def test_who_logs_never_waits_for_who_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitoring, "_MOST_WAITING", 100)
    stream = _Stuck()
    with logging_to(stream):
        for number in range(200):
            log.info("line %d", number)
        handler = log.handlers[0]
        assert isinstance(handler, LogLines)
        # One line is held by who writes; the queue has the next hundred.
        assert handler.dropped in {99, 100}
        stream.free.set()
    assert stream.getvalue().count("\n") == 200 - handler.dropped


def test_a_stream_that_was_closed_ends_nothing() -> None:
    stream = io.StringIO()
    with logging_to(stream):
        stream.close()
        log.info("nobody reads this")


def test_what_stands_under_the_name_of_a_secret_is_gone_at_any_depth() -> None:
    found = without_secrets({"headers": {"X-API-Key": "abc", "accept": "*/*"}, "list": [KEY], "n": 3, "none": None})
    assert found == {"headers": {"X-API-Key": NOT_LOGGED, "accept": "*/*"}, "list": [NOT_LOGGED], "n": 3, "none": None}


# A server as `rag-harness serve` wires it: a question is found in traces, metrics, logs, a collector and a sample.

QUESTION = "How long is a zip mended?"


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as server:
        yield server


@asynccontextmanager
async def serving(folder: Path, **options: Any) -> AsyncIterator[httpx2.AsyncClient]:
    """Give a client of a server over three pages, on the mock profile."""
    kb = write_pages(folder / "kb")
    settings = load_settings({"profile": "mock", "top_k": 3, "candidates": 5}, rootdir=folder)
    with StateFolder(folder / "state") as state:
        app = create_app(lambda: opened(Options("e2", folder / "state", kb, **options), settings, state))
        async with app.router.lifespan_context(app):
            transport = httpx2.ASGITransport(app=app)
            async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
                yield client


def test_a_question_can_be_followed_from_its_answer_to_a_case(tmp_path: Path, collector: Collector) -> None:
    stream = io.StringIO()

    async def scenario() -> str:
        async with serving(tmp_path, trace_content=True, otlp=collector.url) as client:
            answered = await client.post("/query", json={"query": QUESTION}, headers={"traceparent": TRACEPARENT})
            trace_id: str = answered.json()["trace_id"]
            trace = (await client.get(f"/traces/{trace_id}")).json()
            assert [span["name"] for span in trace["spans"]][:2] == ["invoke_workflow e2", "retrieval default"]
            assert (trace["decision"], trace["content"]["question"]) == ("unchecked", QUESTION)
            assert trace["continues"] == TRACEPARENT.split("-")[1]
            rated = await client.post(f"/traces/{trace_id}/rating", json={"thumb": -1, "comment": "no"})
            assert rated.status_code == 204
            await client.post("/ingest", files={"file": ("stove.md", b"# Stove\n\nIt burns gas.\n")})
            await client.post("/ingest", files={"file": ("bad.md", b"\xff\xfe")})
            said = read((await client.get("/metrics")).content)
            assert said["rag_harness_decisions_total{outcome=unchecked}"] == 1
            assert said["rag_harness_requests_total{method=POST,route=/query,status=200}"] == 1
            assert said["rag_harness_ratings_total{thumb=down}"] == 1
            assert (said["rag_harness_ingest_seconds_count"], said["rag_harness_ingest_failures_total"]) == (2, 1)
            assert (said["rag_harness_documents"], said["rag_harness_questions_waiting"]) == (4, 0)
            named = (await client.get("/metrics?by_collection=true")).content
            assert read(named)["rag_harness_collection_documents{collection=default}"] == 4
            return trace_id

    with logging_to(stream):
        trace_id = asyncio.run(scenario())
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    asked = [line for line in lines if line.get("route") == "/query"]
    assert [(line["event"], line["status"], line["trace_id"]) for line in asked] == [("request", 200, trace_id)]
    assert QUESTION not in stream.getvalue()
    exported = collector.spans()
    assert {span.trace_id.hex() for span in exported} == {TRACEPARENT.split("-")[1]}
    assert exported[0].parent_span_id.hex() == TRACEPARENT.split("-")[2]
    assert QUESTION.encode() not in b"".join(body for _, body in collector.bodies)
    where = ["--state", str(tmp_path / "state"), "-o", str(tmp_path / "asked.jsonl")]
    assert main(["queries", "from-traces", "--only", "thumbs-down", *where]) == 0
    (row,) = [json.loads(line) for line in (tmp_path / "asked.jsonl").read_text().splitlines()]
    assert (row["query"], row["metadata"]["seen"]["comments"]) == (QUESTION, ["no"])


def test_without_leave_no_word_of_a_question_reaches_the_disk(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as client:
            await client.post("/query", json={"query": "Does a zebrafish swim?", "inputs": {"from": "quokka"}})

    asyncio.run(scenario())
    kept = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert any(file.name == "service.sqlite3" for file in kept)
    assert [file.name for file in kept if b"zebrafish" in file.read_bytes() or b"quokka" in file.read_bytes()] == []
