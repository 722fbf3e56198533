"""Trials and scores for any backend of OpenTelemetry: valid by the protocol's messages, the same ids each time."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from rag_harness.models.recording.scrubbing import Cleaner
from rag_harness.page.exports.otlp import OPT_IN, TrialAsSpans, WordsOfTrial
from rag_harness.pipelines.otel.spans import SpanRecord, request_of
from tests.unit.page.exports.conftest import Exporting
from tests.unit.page.exports.otlp_receiver import OtlpReceiver, backend, otlp_receiver
from tests.unit.page.exports.real_phoenix import installed_phoenix, phoenix_has, serving_phoenix
from tests.unit.rows import failed_row, make_row

__all__ = ["backend"]


ENDED = "2026-03-01T10:00:00.500+00:00"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
STAGES: list[dict[str, Any]] = [
    {
        "name": "retrieve",
        "ms": 2.0,
        "input": "lamp of Ada Lovelace",
        "hits": [{"chunk_id": "returns.md#chunk_0", "filename": "returns.md", "score": 0.5}],
    },
    {"name": "lookup", "ms": 1.0, "kind": "tool", "input": {"key": "sk-12345678"}, "output": "found"},
    {
        "name": "generate",
        "ms": 5.0,
        "calls": [
            {"role": "chat", "model": "m", "ms": 4.0, "usage": {"prompt_tokens": 9, "completion_tokens": 3, "calls": 1}}
        ],
    },
]


def spans(words: Any = None, **changes: Any) -> list[SpanRecord]:
    row = make_row(**{"stages": STAGES, "finished_at": ENDED, **changes})
    return list(TrialAsSpans(row, {"recall@5": 0.5}, words or WordsOfTrial(), 0.0).spans())


def test_each_row_is_a_trace_with_an_event_for_each_score(exporting: Exporting, backend: OtlpReceiver) -> None:
    status, said = exporting("otlp", "--url", f"{backend.url}/v1/traces")
    assert status == 0, said
    by_id = {span.attributes["rag_harness.query_id"]: span for span in backend.trials}
    assert {"q0", "failed", "g1"} <= by_id.keys()
    assert "lost" not in by_id
    assert f"{len(by_id)} trials with {sum(len(span.events) for span in by_id.values())} scores" in said
    assert by_id["q0"].scores["faithfulness"] == pytest.approx(1 / 3)
    assert by_id["q0"].scores["recall@5"] == 1.0
    assert by_id["g1"].name == "invoke_workflow golden"
    assert not {"total_ms", "prompt_tokens"} & by_id["q0"].scores.keys()
    assert by_id["failed"].failed
    assert by_id["failed"].attributes["error.type"] == "ModelCallError"


def test_a_second_export_changes_nothing(exporting: Exporting, backend: OtlpReceiver) -> None:
    exporting("otlp", "--url", backend.url)
    before = dict(backend.spans)
    exporting("otlp", "--url", backend.url)
    assert backend.spans == before


def test_a_backend_that_takes_protobuf_alone_gets_the_same(exporting: Exporting, backend: OtlpReceiver) -> None:
    exporting("otlp", "--url", backend.url)
    with otlp_receiver(takes_json=False) as other:
        assert exporting("otlp", "--url", other.url)[0] == 0
        assert other.spans == backend.spans
        assert [each["content-type"] for each in other.asked] == ["application/json", "application/x-protobuf"]


def test_protobuf_that_cannot_be_written_is_said(
    exporting: Exporting, backend: OtlpReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend.takes_json = False
    monkeypatch.setitem(sys.modules, "opentelemetry.proto.collector.trace.v1.trace_service_pb2", None)
    status, said = exporting("otlp", "--url", backend.url)
    assert status == 2
    assert "pip install 'pytest-rag-harness[traces]'" in said


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"status": 401}, "refused /v1/traces: 401 busy"),
        ({"rejects": 2}, "2 spans were refused, 11 trials with"),
        ({"rejects": 2, "takes_json": False}, "2 spans were refused, 11 trials with"),
    ],
)
def test_what_is_refused_is_said(exporting: Exporting, told: dict[str, Any], expected: str) -> None:
    with otlp_receiver(**told) as backend:
        status, said = exporting("otlp", "--url", backend.url)
    assert (status, expected in said) == (2, True), said


def test_after_a_failure_the_rest_is_counted_and_not_tried(
    exporting: Exporting, backend: OtlpReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rag_harness.page.exports.otlp._BATCH", 3)
    monkeypatch.setattr("rag_harness.page.exports.otlp._WAITS", (0, 0, 0))
    backend.fails_after = 1
    status, said = exporting("otlp", "--url", backend.url)
    assert (status, len(backend.bodies)) == (2, 1 + 4)
    assert "8 trials were not sent, 3 trials with" in said
    assert "503 busy" in said


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    found: list[float] = []
    monkeypatch.setattr(time, "sleep", found.append)
    return found


@pytest.mark.parametrize(
    ("busy", "expected"),
    [
        ([(429, ""), (502, ""), (503, "")], [1, 2, 4]),
        ([(503, "7"), (504, "0"), (503, "x")], [7, 0, 4]),
        ([(503, "Thu, 01 Jan 1970 00:00:00 GMT")], [0]),
    ],
)
def test_a_busy_backend_is_asked_again_when_it_says(
    busy: list[tuple[int, str]], expected: list[float], exporting: Exporting, backend: OtlpReceiver, slept: list[float]
) -> None:
    backend.busy = list(busy)
    status, said = exporting("otlp", "--url", backend.url)
    assert status == 0, said
    assert slept == expected
    assert len(backend.trials) == 11


def test_a_backend_that_stays_busy_or_asks_for_too_long_is_given_up(
    exporting: Exporting, backend: OtlpReceiver, slept: list[float]
) -> None:
    for busy, waits in (([(503, "")] * 5, [1, 2, 4]), ([(429, "20"), (429, "20")], [20]), ([(429, "3600")], [])):
        backend.busy = list(busy)
        status, said = exporting("otlp", "--url", backend.url)
        assert (status, "11 trials were not sent" in said, "busy" in said) == (2, True, True), said
        assert slept == waits
        slept.clear()


@pytest.mark.parametrize("takes_json", [True, False])
@pytest.mark.parametrize(
    "page", [("text/html; charset=utf-8", b"<!doctype html><p>Sign in"), ("", b"OK"), ("application/json", b"[1]")]
)
def test_a_page_is_no_reply_of_a_backend(takes_json: bool, page: tuple[str, bytes], exporting: Exporting) -> None:
    with otlp_receiver(page=page, busy=[] if takes_json else [(415, "")]) as backend:
        status, said = exporting("otlp", "--url", backend.url)
    assert (status, "11 trials were not sent" in said, "is not a reply of OTLP" in said) == (2, True, True), said


def test_without_an_address_or_a_backend(exporting: Exporting) -> None:
    assert "Name it: --url https://" in exporting("otlp")[1]
    assert "11 trials were not sent" in exporting("otlp", "--url", "http://127.0.0.1:9")[1]


def test_headers_are_those_of_opentelemetrys_variables(
    exporting: Exporting, backend: OtlpReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Basic%20cGs6c2s=,x-team=a")
    exporting("otlp", "--url", backend.url)
    assert {(each["authorization"], each["x-team"]) for each in backend.asked} == {("Basic cGs6c2s=", "a")}


def test_who_exports_sends_no_words(
    exporting: Exporting, backend: OtlpReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(OPT_IN, "true")
    said = exporting("otlp", "--url", backend.url)[1]
    assert "Without words" in said
    assert all(b"messages" not in body and b"30 days" not in body for body in backend.bodies)


def test_steps_follow_each_other_with_times_and_tokens() -> None:
    trial, search, tool, model, call = spans()
    assert trial.end_ns == 1_772_359_200_500_000_000
    assert trial.ms == 8.0
    assert [(each.name, each.start_ns - trial.start_ns, each.ms) for each in (search, tool, model, call)] == [
        ("retrieve", 0, 2.0),
        ("execute_tool lookup", 2_000_000, 1.0),
        ("generate", 3_000_000, 5.0),
        ("chat m", 3_000_000, 4.0),
    ]
    assert {each.parent_id for each in (search, tool, model)} == {trial.span_id}
    assert call.parent_id == model.span_id
    assert (call.attributes["gen_ai.usage.input_tokens"], call.attributes["gen_ai.usage.output_tokens"]) == (9, 3)
    assert "gen_ai.usage.input_tokens" not in trial.attributes, "counted twice"
    assert spans(stages=[])[0].attributes["gen_ai.usage.input_tokens"] == 100


def test_a_traced_trial_is_sent_to_the_trace_of_its_app() -> None:
    assert {span.trace_id for span in spans(trace_id=TRACE)} == {TRACE}
    assert {span.trace_id for span in spans(trace_id="nonsense")} == {span.trace_id for span in spans()}


def test_ids_are_those_of_the_row() -> None:
    ids = {span.span_id for span in spans()}
    assert len(ids) == 5
    assert {span.span_id for span in spans(llm_answer="another")} == ids
    for change in ({"query_id": "q2"}, {"fingerprint": "b"}, {"finished_at": ""}, {"experiment": "e4"}):
        assert not ids & {span.span_id for span in spans(**change)}


def test_words_are_sent_without_what_must_be_hidden() -> None:
    scrub = Cleaner(["sk-12345678"], lambda text: text.replace("Ada Lovelace", "NAME"))
    query = {"query": "Who is Ada Lovelace? sk-12345678", "llm_answer": "Ada Lovelace"}
    said = str(request_of(spans(WordsOfTrial(scrub.value), **query), "s"))
    assert "Who is NAME? REDACTED" in said
    assert "lamp of NAME" in said
    assert "returns.md" in said
    assert "sk-1234" not in said
    assert "Ada" not in said
    silent = str(request_of(spans(**query), "s"))
    assert all(word not in silent for word in ("NAME", "Ada", "lamp", "returns.md", "found", "sk-"))
    row = failed_row(error={"stage": "ask", "type": "E", "message": "Ada Lovelace is unknown"}, finished_at=ENDED)
    assert next(TrialAsSpans(row, {}, WordsOfTrial(), 0.0).spans()).message == ""
    assert next(TrialAsSpans(row, {}, WordsOfTrial(scrub.value), 0.0).spans()).message == "ask: E: NAME is unknown"


def test_each_genai_name_is_one_of_opentelemetrys_own() -> None:
    attributes = pytest.importorskip("opentelemetry.semconv._incubating.attributes.gen_ai_attributes")
    found = spans(WordsOfTrial(lambda value: value), inputs={"conversation": "c", "turn": 1})
    names = {name for span in found for name in span.attributes}
    names |= {name for span in found for event in span.events for name in event.attributes}
    assert {name for name in names if name.startswith("gen_ai.")} <= {*map(str, vars(attributes).values())}
    assert "gen_ai.conversation.id" in names


@pytest.mark.long
def test_the_real_phoenix_keeps_them(exporting: Exporting, tmp_path: Path) -> None:
    check_real(installed_phoenix(tmp_path), exporting, tmp_path)


def check_real(program: Path, exporting: Exporting, folder: Path) -> None:
    """Send twice to a server of Phoenix, which takes protobuf alone, and look at what it has."""
    with serving_phoenix(program, folder) as url, otlp_receiver() as own:
        exporting("otlp", "--url", own.url)
        for _ in range(2):
            status, said = exporting("otlp", "--url", url)
            assert status == 0, said
        spans = _kept_by_phoenix(url, len(own.spans))
    assert sorted(each["context"]["span_id"] for each in spans) == sorted(span_id for _, span_id in own.spans)
    events = {each["context"]["span_id"]: len(each["events"]) for each in spans}
    assert events == {span_id: len(span.events) for (_, span_id), span in own.spans.items()}


def _kept_by_phoenix(url: str, expected: int) -> list[Any]:
    """Return the spans that it has; it writes them a little after it has taken them."""
    for _ in range(30):
        with suppress(OSError):
            found = phoenix_has(f"{url}/v1/projects/default/spans?limit=1000")
            if len(found) >= expected:
                return found
        time.sleep(1)
    raise AssertionError("Phoenix has too few spans")
