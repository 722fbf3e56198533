"""The attributes of spans: numbers, codes and names, never words of a question, an answer or a document."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from rag_harness.pipelines.calling import declined
from rag_harness.service.observing import genai_names
from rag_harness.service.observing.observed import FAILED, Observed
from rag_harness.types import Call, Decision, PipelineOutput, Stage

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
        genai_names.OPERATION: genai_names.WORKFLOW_OPERATION,
        genai_names.WORKFLOW_NAME: seen.experiment,
        genai_names.TRACE_ID: seen.ids.trace_id,
        genai_names.COLLECTION: seen.collection,
        genai_names.MODE: seen.mode,
        genai_names.STATUS_CODE: seen.status,
        genai_names.REQUEST_STREAM: seen.streamed,
        genai_names.OUTCOME: seen.outcome,
        genai_names.REASONS: reason_codes(output),
        genai_names.ABSTAINED: declined(answer),
        genai_names.CITATIONS: len(answer.citations),
        genai_names.INVALID_CITATIONS: len(answer.invalid_citations),
        genai_names.RETRIEVED: len(output.retrieved),
        genai_names.CONTEXT: len(output.context),
        genai_names.STAGES_MS: sum(stage.ms for stage in output.stages),
    }
    if seen.outcome == FAILED:
        said |= {genai_names.ERROR_TYPE: seen.error_type or "unknown", genai_names.FAILED_STAGE: seen.failed_stage}
    numbers = [
        (genai_names.CONFIDENCE, output.confidence),
        (genai_names.FIRST_CHUNK_SECONDS, _seconds(seen.first_token_ms)),
    ]
    return _known(said, [*numbers, *_decided(output.decisions)])


def of_stage(seen: Observed, stage: Stage) -> Attributes:
    """Return the attributes of the span of a stage."""
    said: Attributes = {genai_names.STAGE: stage.name, genai_names.STARTS: genai_names.INFERRED}
    if stage.name == RETRIEVE:
        said |= {genai_names.OPERATION: genai_names.RETRIEVAL_OPERATION, genai_names.DATA_SOURCE: seen.collection}
    numbers = _numbers(stage.detail, 1)
    details = [(f"{genai_names.DETAIL}{name.replace(' ', '_')}", number) for name, number in numbers]
    return _known(said, details[:_MOST_DETAILS])


def of_call(call: Call) -> Attributes:
    """Return the attributes of the span of a model call; ``rag_harness.calls`` counts the calls in it."""
    said: Attributes = {
        genai_names.OPERATION: genai_names.CHAT_OPERATION,
        genai_names.PROVIDER: genai_names.OPENAI,
        genai_names.REQUEST_MODEL: call.model,
        genai_names.INPUT_TOKENS: call.usage.prompt_tokens,
        genai_names.OUTPUT_TOKENS: call.usage.completion_tokens,
        genai_names.CALLS: max(1, call.usage.calls),
        genai_names.CALL_ROLE: call.role,
        genai_names.CALL_WAITED_MS: call.waited_ms,
        genai_names.CALL_RETRIES: call.retries,
        genai_names.CALL_RECORDED: call.recorded,
        genai_names.STARTS: genai_names.INFERRED,
    }
    return _known(said, [(genai_names.FIRST_CHUNK_SECONDS, _seconds(call.ttft_ms))])


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
        begin = f"{genai_names.DECISION}{each.name.replace(': ', '.').replace(' ', '_')}"
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
