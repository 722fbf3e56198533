"""A trial as spans by OpenTelemetry's conventions for generative AI: itself with its scores, its steps, their calls.

A row says how long its steps took and in which order, not when each began. So a span begins where the one before it
ends, and ``rag_harness.starts`` is ``inferred``. Ids are made of what makes a row: the same row has the same spans,
whoever sends them and however often. https://github.com/open-telemetry/semantic-conventions-genai
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any

from rag_harness.exports.words_of_trial import WordsOfTrial
from rag_harness.files.sources import json_digest
from rag_harness.results.dates import seconds_of
from rag_harness.results.row import ExperimentResult
from rag_harness.results.row_parts import RowCall, RowStage
from rag_harness.traces.span_record import SpanEvent, SpanRecord

_TRACE_ID = re.compile(r"(?!0{32})[0-9a-f]{32}")
_OPERATION = "gen_ai.operation.name"
_INFERRED = {"rag_harness.starts": "inferred"}


class TrialAsSpans:
    """The spans of one row.

    Args:
        row: the trial.
        scores: its scores by measure.
        words: which words of it may be sent.
        began: when its run began, in seconds since 1970: the time of rows that state none.
    """

    def __init__(self, row: ExperimentResult, scores: Mapping[str, float], words: WordsOfTrial, began: float) -> None:
        self._row, self._words = row, words
        self._scores = {name: value for name, value in scores.items() if isfinite(value)}
        ended = seconds_of(row.finished_at)
        # A float cannot hold whole nanoseconds since 1970.
        self._end = int((ended if isfinite(ended) else began) * 1e6) * 1000
        self._start = self._end - _ns(row.total_time_ms)
        self._key = [row.experiment, row.query_id, row.fingerprint, row.finished_at or began]
        own = json_digest(["trace", *self._key]) + json_digest(["trial", *self._key])
        # Where the app was traced, its trace is the place where people look for its scores.
        self._trace_id = row.trace_id if _TRACE_ID.fullmatch(row.trace_id) else own

    @property
    def scores(self) -> int:
        """How many scores the trial's span has."""
        return len(self._scores)

    def spans(self) -> Iterator[SpanRecord]:
        """Yield the span of the trial, then those of each step and of its calls."""
        row, number, at = self._row, 0, self._start
        failed, said = row.error is not None, self._words.of_trial(row)
        message = self._words.text(row.error_text) if row.error else ""
        events = tuple(SpanEvent("gen_ai.evaluation.result", self._end, _score(*each)) for each in self._scores.items())
        name = f"invoke_workflow {row.experiment}"
        yield SpanRecord(
            name, self._trace_id, self._id(0), "", self._start, self._end, _trial(row) | said, events,
            failed=failed, message=message,
        )  # fmt: skip
        for step in row.stages:
            number, own = number + 1, self._id(number + 1)
            yield self._span(_step_name(step), own, self._id(0), (at, step.ms), _step(step) | self._words.of_step(step))
            begin = at
            for call in step.calls:
                number += 1
                yield self._span(f"chat {call.model}".strip(), self._id(number), own, (begin, call.ms), _call(call))
                begin += _ns(call.ms)
            at += _ns(step.ms)

    def _span(
        self, name: str, own: str, around: str, took: tuple[int, float], attributes: Mapping[str, Any]
    ) -> SpanRecord:
        start, ms = took
        return SpanRecord(name, self._trace_id, own, around, start, start + _ns(ms), {**attributes, **_INFERRED})

    def _id(self, number: int) -> str:
        return json_digest(["span", number, *self._key])


def _trial(row: ExperimentResult) -> dict[str, Any]:
    place = row.asked.place
    said = {
        _OPERATION: "invoke_workflow",
        "gen_ai.workflow.name": row.experiment,
        "gen_ai.conversation.id": place.get("conversation"),
        "rag_harness.query_id": row.query_id,
        "rag_harness.query_type": row.query_type,
        "rag_harness.turn": place.get("turn"),
        "rag_harness.mode": row.mode,
        "rag_harness.profile": row.profile,
        "rag_harness.fingerprint": row.fingerprint,
        "rag_harness.recorded": row.timings_recorded,
        "rag_harness.cost_usd": row.cost_usd,
        "rag_harness.confidence": row.confidence,
        "rag_harness.answer.abstained": row.abstained,
        "rag_harness.answer.citations": len(row.citations),
        "rag_harness.answer.invalid_citations": len(row.invalid_citations),
        "rag_harness.context": len(row.retrieved_chunks),
    }
    if row.error is not None:
        said |= {"error.type": row.error.type, "rag_harness.failed_stage": row.error.stage}
    if not any(step.calls for step in row.stages) and row.usage.calls:
        # Else the spans of the calls have them, and who adds up all spans would count them twice.
        said |= {"gen_ai.request.model": row.model} | _tokens(row)
    return {name: value for name, value in said.items() if value is not None and value != ""}


def _step(step: RowStage) -> dict[str, Any]:
    said: dict[str, Any] = {"rag_harness.stage": step.name}
    if step.does == "retrieve":
        said |= {_OPERATION: "retrieval", "rag_harness.retrieved": len(step.hits)}
    elif step.does == "tool":
        said |= {_OPERATION: "execute_tool", "gen_ai.tool.name": step.name, "gen_ai.tool.type": "function"}
    elif step.hits:
        said |= {"rag_harness.retrieved": len(step.hits)}
    return said


def _step_name(step: RowStage) -> str:
    return f"execute_tool {step.name}" if step.does == "tool" else step.name


def _call(call: RowCall) -> dict[str, Any]:
    first = {} if call.ttft_ms is None else {"gen_ai.response.time_to_first_chunk": call.ttft_ms / 1000}
    reason = {"gen_ai.response.finish_reasons": [call.finish_reason]} if call.finish_reason else {}
    return {
        _OPERATION: "chat",
        "gen_ai.request.model": call.model,
        **_tokens(call),
        **first,
        **reason,
        "rag_harness.call.role": call.role,
        "rag_harness.call.waited_ms": call.waited_ms,
        "rag_harness.call.retries": call.retries,
        "rag_harness.call.recorded": call.recorded,
    }


def _tokens(spent: RowCall | ExperimentResult) -> dict[str, Any]:
    usage = spent.usage
    return {
        "gen_ai.usage.input_tokens": usage.prompt_tokens,
        "gen_ai.usage.output_tokens": usage.completion_tokens,
    }


def _score(measure: str, value: float) -> dict[str, Any]:
    return {"gen_ai.evaluation.name": measure, "gen_ai.evaluation.score.value": float(value)}


def _ns(ms: float) -> int:
    return int(ms * 1e6)
