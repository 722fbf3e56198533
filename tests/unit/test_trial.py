"""A trial never raises: whatever a pipeline does becomes a row."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from rag_harness.errors import CriticalError, DataError, ModelOutputError
from rag_harness.pipelines.trace import Trace
from rag_harness.results import parse_row
from rag_harness.settings import Settings
from rag_harness.trial import Outcome, Trial, run_trial
from rag_harness.types import Answer, Case, Chunk, Hit, PipelineOutput, Query, QueryType, Timings, Usage

CASE = Case(Query("q1", "How long?"), QueryType.DIRECT, "30 days", ("returns.md",), metadata={"a": 1})
TRIAL = Trial("e3", CASE)
SETTINGS = Settings(profile="mock", mode="replay")
HIT = Hit(Chunk("returns.md#chunk_0", "returns.md", "30 days.", 0, 8, ("Returns", "Windows")), 0.5, 1, rerank_score=0.9)


class Sync:
    """A pipeline whose answer is what a function returns."""

    def __init__(self, answer: Callable[[Query], Any]) -> None:
        self.answer = answer


class Async:
    def __init__(self, answer: Callable[[Query], Any]) -> None:
        self._answer = answer

    async def answer(self, query: Query) -> Any:
        return self._answer(query)


def raising(error: BaseException) -> Callable[[Query], Any]:
    def answer(query: Query) -> Any:
        raise error

    return answer


def outcome(pipeline: Any, trial: Trial = TRIAL) -> Outcome:
    found = asyncio.run(run_trial(trial, pipeline, SETTINGS, "aaaa"))
    assert parse_row(found.row.line()) == found.row
    return found


def why(pipeline: Any) -> str:
    row = outcome(pipeline).row
    assert (row.status, row.llm_answer, row.query_id, row.ground_truth) == ("error", "", "q1", "30 days")
    return row.why


def test_an_answer_becomes_a_row() -> None:
    answer = Answer("30 days [Source 1].", ("look",), (1,), (9,), raw="{}")
    output = PipelineOutput(answer, (HIT,), (HIT,), Usage(10, 2, 1), Timings(1.0, 2.0, 3.0, 0.5), "m", 2, 7.0, True)
    row = outcome(Async(lambda _: output)).row
    assert (row.trial_id, row.ok, row.error, row.query, row.metadata) == ("e3-q1", True, None, "How long?", {"a": 1})
    assert (row.profile, row.mode, row.dry_run, row.fingerprint) == ("mock", "replay", True, "aaaa")
    assert (row.llm_answer, row.raw_output, row.reasoning_steps) == ("30 days [Source 1].", "{}", ("look",))
    assert (row.citations, row.invalid_citations) == ((1,), (9,))
    assert (row.retrieval_time_ms, row.rerank_time_ms, row.llm_time_ms, row.ttft_ms) == (1.0, 2.0, 3.0, 0.5)
    assert (row.usage.prompt_tokens, row.model, row.retries, row.waited_ms) == (10, "m", 2, 7.0)
    assert row.timings_recorded
    chunk, candidate = row.retrieved_chunks[0], row.candidates[0]
    assert (chunk.metadata.filename, chunk.metadata.section) == ("returns.md", "Returns > Windows")
    assert (candidate.chunk_id, candidate.score, candidate.rerank_score) == ("returns.md#chunk_0", 0.5, 0.9)


@pytest.mark.parametrize("kind", [Sync, Async])
def test_a_string_is_an_answer(kind: Any) -> None:
    row = outcome(kind(lambda query: f"about {query.text}")).row
    assert (row.ok, row.llm_answer, row.raw_output) == (True, "about How long?", "about How long?")


def test_a_sync_pipeline_leaves_the_loop_free() -> None:
    answer = outcome(Sync(lambda _: threading.current_thread().name)).row.llm_answer
    assert answer != threading.current_thread().name


def test_a_sync_method_may_return_an_awaitable() -> None:
    inner = Async(lambda _: "later")
    assert outcome(Sync(partial(Async.answer, inner))).row.llm_answer == "later"

    def hidden(query: Query) -> Any:
        return inner.answer(query)

    assert outcome(Sync(hidden)).row.llm_answer == "later"


@pytest.mark.parametrize("kind", [Sync, Async])
@pytest.mark.parametrize("wrong", [None, 3, {"answer": "x"}, b"bytes", ["x"]])
def test_a_wrong_type_is_named(kind: Any, wrong: Any) -> None:
    assert why(kind(lambda _: wrong)) == (
        f"pipeline: TypeError: {kind.__name__}.answer returned {type(wrong).__name__}; it must return a "
        f"PipelineOutput or the answer as a string."
    )


class UnspeakableError(Exception):
    def __str__(self) -> str:
        raise ValueError("no message for you")


@pytest.mark.parametrize("kind", [Sync, Async])
@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ValueError("bad \ud800"), "pipeline: ValueError: bad \ufffd"),
        (ValueError(), "pipeline: ValueError: ValueError()"),
        (UnspeakableError(), "pipeline: UnspeakableError: its message cannot be read"),
        (TimeoutError("slow"), "pipeline: TimeoutError: slow"),
    ],
)
def test_an_error_becomes_a_row(kind: Any, error: Exception, reason: str) -> None:
    assert why(kind(raising(error))) == reason


def test_stop_iteration_does_not_hang() -> None:
    assert why(Sync(lambda _: next(iter(())))) == "pipeline: RuntimeError: Sync.answer raised StopIteration"
    assert why(Async(lambda _: next(iter(())))) == "pipeline: RuntimeError: coroutine raised StopIteration"


def test_an_object_that_is_no_pipeline() -> None:
    assert why(object()) == "pipeline: AttributeError: 'object' object has no attribute 'answer'"


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        (
            PipelineOutput(Answer("x"), (replace(HIT, score=float("nan")),)),
            "pipeline: ValidationError: the pipeline's output cannot be recorded: Candidate: score: "
            "Input should be a finite number",
        ),
        (PipelineOutput(None), "pipeline: AttributeError: 'NoneType' object has no attribute 'text'"),  # type: ignore[arg-type]
        (PipelineOutput(Answer("x"), ("hit",)), "pipeline: AttributeError: 'str' object has no attribute 'chunk'"),  # type: ignore[arg-type]
        (
            PipelineOutput(Answer(None)),  # type: ignore[arg-type]
            "pipeline: ValidationError: the pipeline's output cannot be recorded: ExperimentResult: llm_answer: "
            "Input should be a valid string",
        ),
    ],
)
def test_an_output_that_cannot_be_recorded_becomes_an_error(output: PipelineOutput, reason: str) -> None:
    assert why(Async(lambda _: output)) == reason


def traced(score: float, error: Exception) -> Callable[[Query], Any]:
    def answer(query: Query) -> Any:
        trace = Trace()
        with trace.stage("retrieve"):
            trace.retrieved = trace.context = [replace(HIT, score=score)]
        with trace.stage("generate"):
            raise error

    return answer


def test_what_was_done_before_the_failure_is_kept() -> None:
    row = outcome(Async(traced(0.5, ModelOutputError("no JSON", raw="hm")))).row
    assert (row.why, row.raw_output, row.llm_answer) == ("generate: ModelOutputError: no JSON", "hm", "")
    assert [chunk.chunk_id for chunk in row.retrieved_chunks] == ["returns.md#chunk_0"]
    assert row.retrieval_time_ms is not None
    assert row.rerank_time_ms is None


def test_a_trace_that_cannot_be_recorded_does_not_hide_the_failure() -> None:
    assert why(Async(traced(float("nan"), ValueError("first")))) == "generate: ValueError: first"


def test_a_strangers_attributes_are_not_taken_for_ours() -> None:
    error = ValueError("x")
    error.raw = b"body"  # type: ignore[attr-defined]
    error.rag_trace = "a trace"  # type: ignore[attr-defined]
    assert why(Sync(raising(error))) == "pipeline: ValueError: x"


@pytest.mark.parametrize(
    ("error", "critical"), [(CriticalError("401"), True), (DataError("no page"), True), (ValueError("x"), False)]
)
def test_critical_errors_are_flagged(error: Exception, critical: bool) -> None:
    assert outcome(Async(raising(error))).critical is critical
    assert outcome(Async(lambda _: "fine")).critical is False


def test_cancellation_gets_out() -> None:
    class Endless:
        async def answer(self, query: Query) -> str:
            await asyncio.Event().wait()
            return ""

    async def cancelled() -> bool:
        task = asyncio.create_task(run_trial(TRIAL, Endless(), SETTINGS, "aaaa"))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    assert asyncio.run(cancelled())


def test_a_query_that_json_cannot_hold_still_gets_a_row() -> None:
    case = Case(Query("q1", "odd \ud800"), QueryType.NEGATIVE, "", metadata={"x": float("inf"), "y": object})
    row = outcome(Async(lambda query: query.text), Trial("e1", case)).row
    assert (row.query, row.llm_answer, row.metadata["x"]) == ("odd \ufffd", "odd \ufffd", None)
