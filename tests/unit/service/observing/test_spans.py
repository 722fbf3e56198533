from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.types import Answer, Call, Decision, PipelineOutput, Stage
from rag_harness.service import observations
from rag_harness.service.observations import FAILED, reason_codes, spans_of
from tests.unit.service.observing.seen import SECRET_WORDS, output, seen

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
