"""Observations of a question: its stages and calls as spans with ids and attributes, without words."""

from __future__ import annotations

import math
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Literal, TypeAlias

from rag_harness.core.types import Answer, Call, Decision, PipelineOutput, Stage
from rag_harness.pipelines.user_pipelines import declined

# The ids of traces: 128 random bits in the form of W3C Trace Context (https://www.w3.org/TR/trace-context/).

_HEADER = re.compile(r"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_SAMPLED = 0x01


@dataclass(frozen=True, slots=True)
class TraceIds:
    """The ids of one question's trace, here and elsewhere.

    A client's own trace id is not used here. Several of its questions may share one, and a client could choose an id to
    learn whether another tenant has it. So a trace is stored under an id that is drawn here. Only the exported spans
    continue the client's trace.

    Attributes:
        trace_id: the id in answers, logs and ``GET /traces``; 32 hexadecimal digits.
        exported: the id that collectors get; the client's, if it sent a ``traceparent``.
        parent: the client's span, 16 hexadecimal digits; empty if there is none.
        sampled: whether to export; a client decides it with its ``traceparent``.
    """

    trace_id: str
    exported: str
    parent: str = ""
    sampled: bool = True


def trace_ids(traceparent: str | None = None) -> TraceIds:
    """Draw an id, and continue ``traceparent``. As the standard demands, a malformed one counts as absent."""
    drawn = secrets.token_hex(16)
    found = _HEADER.fullmatch((traceparent or "").strip())
    if found is None or (found[1] == "00" and found[5]):
        return TraceIds(drawn, drawn)
    return TraceIds(drawn, found[2], found[3], bool(int(found[4], 16) & _SAMPLED))


FAILED = "failed"
"""The outcome of a question that got no answer."""
LEFT = "left"
"""The outcome of a question whose client left before the answer. It is not counted as a failure."""


@dataclass(frozen=True, slots=True)
class Observed:
    """One question, with who asked it, its outcome and its time.

    Attributes:
        ids: the ids of its trace.
        collection: the name of the collection.
        experiment: the experiment that answered.
        question: its words; kept only if traces keep content.
        outcome: ``pass``, ``warn``, ``abstain`` or ``unchecked``; ``failed`` or ``left`` without an answer.
        began: seconds since 1970.
        ms: milliseconds until the answer was ready.
        output: the pipeline's output; of a failed question, the output until the failure.
        inputs: what else the user sent.
        mode: normal or strict.
        status: the HTTP status.
        key_id: the id of the key; None without keys.
        streamed: whether the answer was sent as it came.
        first_token_ms: milliseconds until its first words were sent; None if it was not streamed.
        failed_stage: the stage in which a question failed.
        error_type: the type of its error.
        answered: what the page needs to show the answer again, as plain JSON; None without an answer.
    """

    ids: TraceIds
    collection: str
    experiment: str
    question: str
    outcome: str
    began: float
    ms: float
    output: PipelineOutput = field(default_factory=lambda: PipelineOutput(Answer("")))
    inputs: Mapping[str, Any] = field(default_factory=dict)
    mode: str = "normal"
    status: int = 200
    key_id: int | None = None
    streamed: bool = False
    first_token_ms: float | None = None
    failed_stage: str = ""
    error_type: str = ""
    answered: Mapping[str, Any] | None = None


# OpenTelemetry's GenAI names, from version 1.41.0 of its semantic conventions, and our own names.
#
# All of ``gen_ai.*`` has the status "Development": if a name changes there, only this file has to follow. Since 1.42
# these names are in https://github.com/open-telemetry/semantic-conventions-genai, which has had no release. Our own
# names begin with ``rag_harness.``.

SCHEMA_URL = "https://opentelemetry.io/schemas/1.41.0"

OPERATION = "gen_ai.operation.name"
WORKFLOW_OPERATION = "invoke_workflow"
RETRIEVAL_OPERATION = "retrieval"
CHAT_OPERATION = "chat"
WORKFLOW_NAME = "gen_ai.workflow.name"
PROVIDER = "gen_ai.provider.name"
OPENAI = "openai"
"""The provider, as far as a client can know: a server that speaks OpenAI's protocol."""
DATA_SOURCE = "gen_ai.data_source.id"
REQUEST_MODEL = "gen_ai.request.model"
REQUEST_STREAM = "gen_ai.request.stream"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
FIRST_CHUNK_SECONDS = "gen_ai.response.time_to_first_chunk"
ERROR_TYPE = "error.type"

TRACE_ID = "rag_harness.trace_id"
"""The service's own id of the trace. The exported id differs if a client's ``traceparent`` is continued."""
COLLECTION = "rag_harness.collection"
MODE = "rag_harness.mode"
STATUS_CODE = "http.response.status_code"
OUTCOME = "rag_harness.decision"
REASONS = "rag_harness.reasons"
CONFIDENCE = "rag_harness.confidence"
ABSTAINED = "rag_harness.answer.abstained"
CITATIONS = "rag_harness.answer.citations"
INVALID_CITATIONS = "rag_harness.answer.invalid_citations"
RETRIEVED = "rag_harness.retrieved"
CONTEXT = "rag_harness.context"
STAGE = "rag_harness.stage"
STAGES_MS = "rag_harness.stages_ms"
STARTS = "rag_harness.starts"
INFERRED = "inferred"
"""Value of ``STARTS`` for a span whose length is known and whose start is inferred: it follows the span before it."""
FAILED_STAGE = "rag_harness.failed_stage"
DECISION = "rag_harness.decision."
"""Prefix of the attributes of a decision: ``<name>.outcome``, ``.value``, ``.threshold``."""
DETAIL = "rag_harness.stage."
"""Prefix of the attributes of a stage: its numbers."""
CALLS = "rag_harness.calls"
CALL_ROLE = "rag_harness.call.role"
CALL_WAITED_MS = "rag_harness.call.waited_ms"
CALL_RETRIES = "rag_harness.call.retries"
CALL_RECORDED = "rag_harness.call.recorded"


# The attributes of spans: numbers, codes and names, never words of a question, an answer or a document.

Value: TypeAlias = "str | bool | int | float | list[str]"
Attributes: TypeAlias = "dict[str, Value]"
RETRIEVE = "retrieve"
_VERDICT = "decision"
_CODE = re.compile(r"[A-Z][A-Z0-9_]{2,63}")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9 :_-]{0,39}")
_MOST_DETAILS = 32
_DEEPEST = 2


def reason_codes(output: PipelineOutput) -> list[str]:
    """Return the codes of the last verdict, each once. Their texts are left out, as they may quote the answer."""
    last = next((each for each in reversed(output.decisions) if each.name == _VERDICT), None)
    said = (part.partition(":")[0].strip() for part in last.reason.split(";")) if last is not None else ()
    return list(dict.fromkeys(code for code in said if _CODE.fullmatch(code)))


def of_question(seen: Observed) -> Attributes:
    """Return the attributes of the span of a question."""
    output, answer = seen.output, seen.output.answer
    said: Attributes = {
        OPERATION: WORKFLOW_OPERATION,
        WORKFLOW_NAME: seen.experiment,
        TRACE_ID: seen.ids.trace_id,
        COLLECTION: seen.collection,
        MODE: seen.mode,
        STATUS_CODE: seen.status,
        REQUEST_STREAM: seen.streamed,
        OUTCOME: seen.outcome,
        REASONS: reason_codes(output),
        ABSTAINED: declined(answer),
        CITATIONS: len(answer.citations),
        INVALID_CITATIONS: len(answer.invalid_citations),
        RETRIEVED: len(output.retrieved),
        CONTEXT: len(output.context),
        STAGES_MS: sum(stage.ms for stage in output.stages),
    }
    if seen.outcome == FAILED:
        said |= {ERROR_TYPE: seen.error_type or "unknown", FAILED_STAGE: seen.failed_stage}
    numbers = [
        (CONFIDENCE, output.confidence),
        (FIRST_CHUNK_SECONDS, _seconds(seen.first_token_ms)),
    ]
    return _known(said, [*numbers, *_decided(output.decisions)])


def of_stage(seen: Observed, stage: Stage) -> Attributes:
    """Return the attributes of the span of a stage."""
    said: Attributes = {STAGE: stage.name, STARTS: INFERRED}
    if stage.name == RETRIEVE:
        said |= {OPERATION: RETRIEVAL_OPERATION, DATA_SOURCE: seen.collection}
    numbers = _numbers(stage.detail, 1)
    details = [(f"{DETAIL}{name.replace(' ', '_')}", number) for name, number in numbers]
    return _known(said, details[:_MOST_DETAILS])


def of_call(call: Call) -> Attributes:
    """Return the attributes of the span of a model call; ``rag_harness.calls`` counts the calls in it."""
    said: Attributes = {
        OPERATION: CHAT_OPERATION,
        PROVIDER: OPENAI,
        REQUEST_MODEL: call.model,
        INPUT_TOKENS: call.usage.prompt_tokens,
        OUTPUT_TOKENS: call.usage.completion_tokens,
        CALLS: max(1, call.usage.calls),
        CALL_ROLE: call.role,
        CALL_WAITED_MS: call.waited_ms,
        CALL_RETRIES: call.retries,
        CALL_RECORDED: call.recorded,
        STARTS: INFERRED,
    }
    return _known(said, [(FIRST_CHUNK_SECONDS, _seconds(call.ttft_ms))])


def _known(said: Attributes, more: Iterable[tuple[str, Value | None]]) -> Attributes:
    """Return both sets of attributes without unknown values: NaN and infinity are not valid JSON."""
    found = {**said, **{name: value for name, value in more if value is not None}}
    return {name: _plain(value) for name, value in found.items() if _is_finite(value)}


def _plain(value: Value) -> Value:
    return round(value, 6) if isinstance(value, float) else value


def _is_finite(value: Value) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


def _decided(decisions: Iterable[Decision]) -> Iterator[tuple[str, Value | None]]:
    for each in decisions:
        if not _NAME.fullmatch(each.name):
            continue
        begin = f"{DECISION}{each.name.replace(': ', '.').replace(' ', '_')}"
        yield f"{begin}.outcome", each.outcome if _NAME.fullmatch(each.outcome) else None
        yield f"{begin}.value", each.value
        yield f"{begin}.threshold", each.threshold


def _numbers(detail: Mapping[str, Any], depth: int) -> Iterator[tuple[str, Value]]:
    """Yield the numbers of a stage's detail. Texts are left out, since they may quote the question."""
    for name, value in detail.items():
        if not _NAME.fullmatch(str(name)):
            continue
        if isinstance(value, (bool, int, float)):
            yield name, value
        elif isinstance(value, Mapping) and depth < _DEEPEST:
            yield from ((f"{name}.{inner}", number) for inner, number in _numbers(value, depth + 1))


def _seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000


# A pipeline measures how long stages and calls take, and notes their order, but not when each began. So a span begins
# where the span before it ends, and ``rag_harness.starts`` is ``inferred``. A replayed call has the length in its
# recording, and a stage that calls models has the length of its calls. So spans may end after their question does, or
# leave a gap before its end.

Kind = Literal["internal", "client"]


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a trace; ``start_ms`` counts from the start of the question; the first span's ``parent`` is empty."""

    span_id: str
    parent: str
    name: str
    kind: Kind
    start_ms: float
    ms: float
    attributes: Attributes = field(default_factory=dict)
    failed: bool = False

    def json(self) -> dict[str, Any]:
        """Return the span for JSON. ``dataclasses.asdict`` would copy every value, half of a trace's time."""
        return {name: getattr(self, name) for name in self.__slots__}


def spans_of(seen: Observed) -> tuple[Span, ...]:
    """Return the spans of a question: itself, each stage, each call. Their ids are derived from the trace's."""
    name, failed = f"{WORKFLOW_OPERATION} {seen.experiment}", seen.outcome == FAILED
    spans = [Span(_span_id(seen, 0), "", name, "internal", 0.0, seen.ms, of_question(seen), failed)]
    start = 0.0
    for stage in seen.output.stages:
        spans += _of_stage(seen, stage, len(spans), start)
        start += stage.ms
    return tuple(spans)


def _of_stage(seen: Observed, stage: Stage, number: int, start: float) -> Iterator[Span]:
    """Yield the spans of a stage and its calls; ``number`` counts the spans before it."""
    own, failed = _span_id(seen, number), stage.name == seen.failed_stage
    name = f"{RETRIEVAL_OPERATION} {seen.collection}" if stage.name == RETRIEVE else stage.name
    yield Span(own, _span_id(seen, 0), name, "internal", start, stage.ms, of_stage(seen, stage), failed)
    for place, call in enumerate(stage.calls, number + 1):
        model = f"{CHAT_OPERATION} {call.model}".strip()
        yield Span(_span_id(seen, place), own, model, "client", start, call.ms, of_call(call))
        start += call.ms


def _span_id(seen: Observed, number: int) -> str:
    return sha256(f"{seen.ids.trace_id}/{number}".encode()).hexdigest()[:16]
