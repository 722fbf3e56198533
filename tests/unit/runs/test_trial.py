"""A trial never raises: whatever a pipeline does becomes a row."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from rag_harness.core.concurrency import Deadline, Lazy, begin_ahead, paused
from rag_harness.core.errors import BudgetError, CriticalError, DataError, ModelCallError, ModelOutputError
from rag_harness.core.settings import Settings
from rag_harness.core.text import language_detection
from rag_harness.core.text.memory import without_memory
from rag_harness.core.types import (
    Answer,
    Call,
    Case,
    Chunk,
    Completion,
    Decision,
    Hit,
    Message,
    PipelineOutput,
    Query,
    Stage,
    Timings,
    Usage,
)
from rag_harness.models.calls import PassingError, retried
from rag_harness.pipelines.trace import Trace
from rag_harness.records.row import ExperimentResult, parse_row
from rag_harness.runs import trial as trial_module
from rag_harness.runs.trial import DebugLine, Trial, TrialOutcome, run_trial
from rag_harness.runs.trial import make_row as trial_make_row
from tests.unit.rows import failed_row, make_row

# A trial never raises: whatever a pipeline does becomes a row.

CASE = Case(Query("q1", "How long?"), "direct", "30 days", {"returns.md": 1}, metadata={"a": 1})
TRIAL = Trial("e3", CASE)
SETTINGS = Settings(profile="mock", mode="replay")
CHUNK = Chunk("returns.md#chunk_0", "returns.md", "30 days.", 0, 8, ("Returns", "Windows"), metadata={"version": 2})
HIT = Hit(CHUNK, 0.5, 1, scores={"rerank": 0.9})


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


def outcome(pipeline: Any, trial: Trial = TRIAL, settings: Settings = SETTINGS) -> TrialOutcome:
    found = asyncio.run(run_trial(trial, pipeline, settings, "aaaa"))
    assert parse_row(row_of(found).line()) == found.row
    return found


def row_of(found: TrialOutcome) -> ExperimentResult:
    assert found.row is not None
    return found.row


def why(pipeline: Any) -> str:
    row = row_of(outcome(pipeline))
    assert (row.status, row.llm_answer, row.query_id, row.ground_truth) == ("error", "", "q1", "30 days")
    return row.why


def test_an_answer_becomes_a_row() -> None:
    answer = Answer("30 days [Source 1].", ("look",), (1,), (9,), raw="{}")
    output = PipelineOutput(answer, (HIT,), (HIT,), Usage(10, 2, 1), Timings(1.0, 2.0, 3.0, 0.5), "m")
    row = row_of(outcome(Async(lambda _: output)))
    assert (row.trial_id, row.ok, row.error, row.query, row.metadata) == ("e3-q1", True, None, "How long?", {"a": 1})
    assert (row.profile, row.mode, row.dry_run, row.fingerprint) == ("mock", "replay", True, "aaaa")
    assert (row.llm_answer, row.raw_output, row.reasoning_steps) == ("30 days [Source 1].", "{}", ("look",))
    assert (row.citations, row.invalid_citations) == ((1,), (9,))
    assert (row.retrieval_time_ms, row.rerank_time_ms, row.llm_time_ms, row.ttft_ms) == (1.0, 2.0, 3.0, 0.5)
    assert (row.usage.prompt_tokens, row.model, row.total_time_ms) == (10, "m", 6.0)
    chunk, candidate = row.retrieved_chunks[0], row.candidates[0]
    assert (chunk.metadata.filename, chunk.metadata.section) == ("returns.md", "Returns > Windows")
    assert (chunk.metadata.version, chunk.metadata.date) == ("2", None)
    assert (chunk.scores, candidate.scores) == ({"dense": 0.5, "rerank": 0.9},) * 2
    assert (candidate.chunk_id, candidate.score, candidate.rerank_score) == ("returns.md#chunk_0", 0.5, 0.9)


@pytest.mark.parametrize(("last", "retries"), [("refused", 2), ("given up", 3), ("too late", 2)])
def test_the_row_of_a_failed_trial_says_how_often_was_tried(last: str, retries: int) -> None:
    tries: list[None] = []

    async def once(_: object) -> None:
        tries.append(None)
        if len(tries) == 3 and last == "refused":
            raise CriticalError("no such key")
        if len(tries) == 3 and last == "too late":
            await asyncio.sleep(60)
        raise PassingError(ConnectionError("busy"))

    async def wait(_: float) -> None:
        """Do not wait."""

    async def answer(_: Query) -> None:
        await retried(once, lambda: Deadline(60, "late"), lambda _, why: ModelCallError(why), wait)

    settings = replace(SETTINGS, deadline=0.2)
    found = asyncio.run(run_trial(TRIAL, Sync(answer), settings, "aaaa")).row
    assert found is not None
    assert (found.status, found.retries) == ("error", retries)
    assert found.waited_ms > 1000
    assert len(tries) == retries + 1


def test_a_row_says_where_in_a_book_its_chunks_are() -> None:
    told = {"module": 2, "chapter": 4, "url": "/module-2/chapter-4#" + "x" * 1000, "title": "Of another kind"}
    output = PipelineOutput(Answer("30 days"), context=(replace(HIT, chunk=replace(CHUNK, metadata=told)),))
    found = asyncio.run(run_trial(TRIAL, Async(lambda _: output), SETTINGS, "aaaa")).row
    assert found is not None
    (where,) = (chunk.metadata for chunk in found.retrieved_chunks)
    assert (where.module, where.chapter) == ("2", "4")
    assert where.url is not None
    assert where.url.startswith("/module-2/chapter-4#x")
    assert len(where.url) == 300


def test_flat_columns_are_read_off_the_stages_and_prompts_are_kept_by_name() -> None:
    asked = (Message("user", "How long?"),)
    first = Call("rewrite", "small", Usage(3, 1, 1), 4.0, 1.0, 2.0, 1, recorded=True, messages=asked)
    second = Call("answer", "large", Usage(10, 2, 1), 6.0, 0.5, 5.0, 1, recorded=True)
    stages = (
        Stage("retrieve", 1.0, detail={"k": 5}),
        Stage("rewrite", 4.0, (first,)),
        Stage("generate", 6.0, (second,)),
    )
    decided = Decision("proceed", "yes", 0.7, 0.5, "the context is there")
    output = PipelineOutput(Answer("30 days"), stages=stages, decisions=(decided,), confidence=0.8)
    kept: list[Any] = []

    def keep(messages: Any) -> str:
        kept.append(messages)
        return "d1" if messages else ""

    trial = Trial("e3", CASE)
    found = asyncio.run(run_trial(trial, Async(lambda _: output), SETTINGS, "aaaa", keep)).row
    assert found is not None
    assert (found.retrieval_time_ms, found.rerank_time_ms, found.llm_time_ms, found.total_time_ms) == (1, None, 10, 11)
    assert (found.usage.prompt_tokens, found.usage.calls, found.model, found.ttft_ms) == (13, 2, "large", 0.5)
    assert (found.retries, found.waited_ms, found.timings_recorded) == (2, 7.0, True)
    assert [stage.name for stage in found.stages] == ["retrieve", "rewrite", "generate"]
    assert (found.stages[0].detail, found.stages[1].calls[0].prompt) == ({"k": 5}, "d1")
    assert kept[0] == asked
    assert (found.decisions[0].outcome, found.decisions[0].threshold, found.confidence) == ("yes", 0.5, 0.8)


@pytest.mark.parametrize("breaks", [False, True])
def test_messages_are_kept_while_the_model_thinks(breaks: bool) -> None:
    """When the answer comes, only its row is left to write. A disk that is full is the row's to tell."""
    events: list[str] = []

    def keep(_: Any) -> str:
        events.append("kept")
        if breaks:
            raise CriticalError("no room")
        return "d1"

    class Thinking:
        model = "m"

        async def complete(self, *_: object) -> Completion:
            await asyncio.sleep(0)
            events.append("answered")
            return Completion("30 days", "m", Usage(), 1.0)

    class Asking:
        async def answer(self, query: Query) -> PipelineOutput:
            trace = Trace()
            said = await trace.complete(Thinking(), [Message("user", query.text)])
            return trace.output(Answer(said.text))

    found = asyncio.run(run_trial(TRIAL, Asking(), SETTINGS, "aaaa", keep))
    assert events == ["kept", "answered"] + ["kept"] * breaks  # the row tries again where it did not succeed
    assert row_of(found).ok
    assert found.critical == breaks


def test_messages_of_a_replayed_call_are_kept_with_its_row() -> None:
    kept: list[Any] = []

    def keep(messages: Any) -> str:
        kept.append(messages)
        return "d1"

    class Replaying:
        model = "m"

        async def complete(self, *_: object) -> Completion:
            return Completion("30 days", "m", Usage(), 1.0)

    class Asking:
        async def answer(self, query: Query) -> PipelineOutput:
            trace = Trace()
            await trace.complete(Replaying(), [Message("user", query.text)])
            await asyncio.sleep(0)
            assert kept == []
            return trace.output(Answer("30 days"))

    found = asyncio.run(run_trial(TRIAL, Asking(), SETTINGS, "aaaa", keep))
    assert row_of(found).ok
    assert len(kept) == 1


@pytest.mark.parametrize("kind", [Sync, Async])
def test_a_string_is_an_answer(kind: Any) -> None:
    row = row_of(outcome(kind(lambda query: f"about {query.text}")))
    assert (row.ok, row.llm_answer, row.raw_output) == (True, "about How long?", "about How long?")


def test_a_sync_pipeline_leaves_the_loop_free() -> None:
    answer = row_of(outcome(Sync(lambda _: threading.current_thread().name))).llm_answer
    assert answer != threading.current_thread().name


def test_a_sync_method_may_return_an_awaitable() -> None:
    inner = Async(lambda _: "later")
    assert row_of(outcome(Sync(partial(Async.answer, inner)))).llm_answer == "later"

    def hidden(query: Query) -> Any:
        return inner.answer(query)

    assert row_of(outcome(Sync(hidden))).llm_answer == "later"


@pytest.mark.parametrize("kind", [Sync, Async])
@pytest.mark.parametrize("wrong", [None, 3, {"x": "answer"}, b"bytes", ["x"]])
def test_a_wrong_type_is_named(kind: Any, wrong: Any) -> None:
    said = why(kind(lambda _: wrong))
    assert said.startswith(f"pipeline: TypeError: {kind.__name__}.answer returned {type(wrong).__name__}")
    assert "; it must return a PipelineOutput or the answer as a string. Read as one: a pair" in said


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


@pytest.mark.parametrize("kind", [Sync, Async])
def test_a_pipeline_that_exits_does_not_end_the_loop(kind: Any) -> None:
    reason = f"pipeline: RuntimeError: {kind.__name__}.answer asked Python to exit, with 3"
    assert why(kind(raising(SystemExit(3)))) == reason


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
    row = row_of(outcome(Async(traced(0.5, ModelOutputError("no JSON", raw="hm")))))
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


@pytest.mark.parametrize(("said", "abstained"), [("I don't know.", True), ("30 days", False)])
def test_whether_a_text_alone_declines_is_read_off_it(said: str, abstained: bool) -> None:
    assert row_of(outcome(Async(lambda _: said))).abstained is abstained


def test_why_a_model_stopped_is_in_the_row() -> None:
    calls = (Call("answer", "m", finish_reason="length"),)
    output = PipelineOutput(Answer("30 days of"), stages=(Stage("generate", 1.0, calls),))
    assert row_of(outcome(Async(lambda _: output))).stages[0].calls[0].finish_reason == "length"


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
    case = Case(Query("q1", "odd \ud800"), "negative", "", answerable=False, metadata={"x": float("inf"), "y": object})
    row = row_of(outcome(Async(lambda query: query.text), Trial("e1", case)))
    assert (row.query, row.llm_answer, row.metadata["x"]) == ("odd \ufffd", "odd \ufffd", None)


IMPATIENT = replace(SETTINGS, deadline=0.1)
LATE = "DeadlineError: deadline: no answer within 0.1 s. Allow more: --rag-deadline"


class Slow:
    async def answer(self, query: Query) -> str:
        await asyncio.sleep(60)
        return "too late"


def test_a_trial_ends_at_its_deadline() -> None:
    row = row_of(outcome(Slow(), settings=IMPATIENT))
    assert row.why == f"pipeline: {LATE}"


def test_a_sync_pipeline_that_hangs_gets_its_row() -> None:
    released = threading.Event()
    row = row_of(outcome_of_hanging(released))
    assert row.why == f"pipeline: {LATE}"


def outcome_of_hanging(released: threading.Event) -> TrialOutcome:
    async def session() -> TrialOutcome:
        try:
            return await run_trial(TRIAL, Sync(lambda _: released.wait(60)), IMPATIENT, "aaaa")
        finally:
            released.set()

    return asyncio.run(session())


def test_a_deadline_keeps_what_was_done_and_names_the_stage() -> None:
    class Traced:
        async def answer(self, query: Query) -> str:
            trace = Trace()
            with trace.stage("retrieve"):
                trace.retrieved = trace.context = [HIT]
            # What a stage does with every exception, said by hand.
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError as error:
                trace.failed_stage = "generate"
                error.rag_trace = trace  # type: ignore[attr-defined]
                raise
            return ""

    row = row_of(outcome(Traced(), settings=IMPATIENT))
    assert row.why == f"generate: {LATE}"
    assert [chunk.chunk_id for chunk in row.retrieved_chunks] == ["returns.md#chunk_0"]


def test_waiting_for_ones_own_caps_does_not_count() -> None:
    class Waiting:
        async def answer(self, query: Query) -> str:
            with paused():
                await asyncio.sleep(0.25)
            return "in time"

    assert row_of(outcome(Waiting(), settings=IMPATIENT)).llm_answer == "in time"


@pytest.mark.parametrize("kind", [Sync, Async])
def test_a_trial_without_budget_is_not_run(kind: Any) -> None:
    found = asyncio.run(run_trial(TRIAL, kind(raising(BudgetError("the next call may cost"))), SETTINGS, "aaaa"))
    assert found == TrialOutcome(None, not_run="budget: the next call may cost")


@pytest.mark.parametrize(
    ("model", "usage", "cost"),
    [
        ("gpt-4o-mini", Usage(1_000_000, 1_000_000, 1), 0.75),
        ("openai/gpt-4o-mini-2024-07-18", Usage(1_000_000, 0, 1), 0.15),
        # Nobody knows the model that answered; the one that was asked for has a price.
        ("served/model", Usage(1_000_000, 0, 1), 2.5),
        ("gpt-4o-mini", Usage(0, 0, 1), None),
        ("", Usage(), None),
        ("mock/placeholder", Usage(calls=1), 0.0),
    ],
)
def test_cost(model: str, usage: Usage, cost: float | None) -> None:
    output = PipelineOutput(Answer("x"), usage=usage, model=model)
    row = row_of(outcome(Async(lambda _: output), settings=replace(SETTINGS, chat_model="openai:gpt-4o")))
    assert row.cost_usd == cost


def test_cost_of_a_model_without_a_price() -> None:
    output = PipelineOutput(Answer("x"), usage=Usage(5, 5, 1), model="own/model")
    assert row_of(outcome(Async(lambda _: output), settings=replace(SETTINGS, chat_model="own/model"))).cost_usd is None


@pytest.mark.parametrize("kind", [Sync, Async])
def test_an_answer_that_is_too_long_is_a_failed_trial(kind: Any) -> None:
    settings = Settings(profile="mock", mode="replay", max_answer=1000)
    assert row_of(outcome(kind(lambda _: "x" * 1000), settings=settings)).ok
    for said in ("x" * 1001, PipelineOutput(Answer("x" * 1001))):
        row = row_of(outcome(kind(lambda _, said=said: said), settings=settings))
        assert row.error is not None
        assert row.error.type == "ModelOutputError"
        assert "answered with at least 1,001 characters, and 1,000 are taken" in row.error.message


def test_all_that_a_row_is_made_with_is_there_before_an_answer_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer waits for nothing on its way to the disk: the first ones waited half a second for phrases."""
    re.purge()
    # What earlier tests have worked out would hide the patterns that it needs.
    for name, module in [*sys.modules.items()]:
        for each in vars(module).values() if name.startswith("rag_harness.core.text") else ():
            if hasattr(each, "cache_clear"):
                each.cache_clear()
    trial_module._rehearse.cache_clear()
    compiled: list[str] = []

    def answer(_: Query) -> PipelineOutput:
        compile_ = re._compiler.compile  # type: ignore[attr-defined]

        def noted(pattern: Any, flags: int = 0) -> Any:
            if threading.current_thread().name != "rag-languages":  # which is loaded beside
                compiled.append(str(pattern)[:60])
            return compile_(pattern, flags)

        monkeypatch.setattr(re._compiler, "compile", noted)  # type: ignore[attr-defined]
        return PipelineOutput(Answer("Within 30 days."), context=(HIT,))

    with without_memory():  # of earlier runs, which would hide them too
        assert row_of(outcome(Async(answer), settings=replace(SETTINGS, mode="live"))).ok
    assert compiled == []


def test_what_tells_languages_is_loaded_beside_the_first_call_and_only_for_a_gold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It takes longer than all else that a row is made with, and a process with one core's calls would wait for it."""
    loaded: list[str] = []
    identifier = Lazy(lambda: loaded.append(threading.current_thread().name))
    monkeypatch.setattr(language_detection, "_identifier", identifier)
    monkeypatch.setattr(language_detection, "_likely", lambda _: pytest.fail("loaded in the thread that asks"))
    begin_ahead.cache_clear()
    for has_gold, threads in ((False, []), (True, ["rag-languages"])):
        trial_module._rehearse.__wrapped__((), has_gold)
        for each in threading.enumerate():
            if each.name == "rag-languages":
                each.join()
        assert loaded == threads


# A trial in a line of the log.


def test_hits_tokens_retries_and_waits_are_said() -> None:
    hits = [{"chunk_id": f"a#{n}", "score": 1 - n / 100, "rerank_score": n / 10} for n in range(22)]
    row = make_row(candidates=hits, retries=2, waited_ms=3012.4)
    said = str(DebugLine(row))
    assert "; found a#0 1.000/0.000, a#1 0.990/0.100, " in said
    assert "a#19 0.810/1.900, and 2 more; in the prompt " in said
    tokens = f"{row.usage.prompt_tokens} prompt tokens, {row.usage.completion_tokens} answered, {row.usage.calls} call"
    assert tokens in said
    assert said.endswith("; retries 2, waited 3012 ms")


def test_a_failed_trial_without_hits_has_a_line_too() -> None:
    said = str(DebugLine(failed_row().model_copy(update={"candidates": (), "retrieved_chunks": ()})))
    assert said.startswith("e3-q1: error in ")
    assert "; found nothing; in the prompt nothing; " in said


# An agent's row has its steps in their order: what each search was asked, and what it brought.

FOUND = Hit(Chunk("returns.md#0", "returns.md", "45 days"), 0.7, 1)
STEPS = (
    Stage("look", 5, kind="retrieve", input="return a lamp", hits=(FOUND,)),
    Stage("retrieve", 7, input="return a tent"),
    Stage("calculator", 1, kind="tool", input={"sum": [1, 2]}, output=3),
    Stage("generate", 20, detail={"note": "x"}),
)


def row_with_steps(*stages: Stage) -> ExperimentResult:
    output = PipelineOutput(Answer("45 days"), stages=stages)
    return trial_make_row(Trial("a1", Case(Query("q1", "How long?"))), output, None, 1.0, Settings(), "print")


def test_steps_stand_in_the_row_in_their_order_and_are_read_again() -> None:
    row = row_with_steps(*STEPS)
    assert parse_row(row.line()) == row
    assert [stage.does for stage in row.stages] == ["retrieve", "retrieve", "tool", "generate"]
    assert [(hit.chunk_id, hit.filename, hit.score) for hit in row.stages[0].hits] == [
        ("returns.md#0", "returns.md", 0.7)
    ]
    assert (row.stages[2].input, row.stages[2].output) == ({"sum": [1, 2]}, 3)


def test_a_step_that_tells_nothing_of_this_is_written_as_before() -> None:
    stages: list[dict[str, Any]] = json.loads(row_with_steps(*STEPS).line())["stages"]
    assert stages[3].keys() == {"name", "ms", "calls", "detail"}
    assert stages[1].keys() == {"name", "ms", "calls", "detail", "input"}


def test_times_are_the_sums_of_the_steps_of_a_kind() -> None:
    row = row_with_steps(*STEPS)
    assert (row.retrieval_time_ms, row.rerank_time_ms, row.llm_time_ms, row.total_time_ms) == (12, None, 20, 33)
    assert row_with_steps(STEPS[3]).retrieval_time_ms is None


@pytest.mark.parametrize("told", ["x" * 30_000, {"page": "x" * 30_000}])
def test_what_a_tool_returned_is_shortened_in_the_row(told: Any) -> None:
    said = row_with_steps(Stage("fetch", 1, kind="tool", output=told)).stages[0].output
    assert len(said) < 20_100
    assert said.endswith(" characters)")


def test_what_is_no_json_is_told_as_text() -> None:
    row = row_with_steps(Stage("fetch", 1, kind="tool", input={"when": object, "nan": float("nan")}))
    assert row.stages[0].input == {"when": "<class 'object'>", "nan": None}
    assert parse_row(row.line()) == row
