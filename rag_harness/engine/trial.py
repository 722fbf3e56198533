"""Run one trial: one pipeline on one case. It never raises: a failure is a value, and becomes a row."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from time import perf_counter
from typing import Any

from pydantic import ValidationError

from rag_harness.engine.debug_line import DebugLine
from rag_harness.engine.trial_rows import KeepPrompt, Trial, make_row
from rag_harness.errors import (
    BudgetError,
    CriticalError,
    DeadlineError,
    EmptyAnswerError,
    ModelCallError,
    ModelOutputError,
    PrerequisiteError,
)
from rag_harness.files.log import log
from rag_harness.models.answer_length import refuse_long
from rag_harness.models.retrying import RetriesNoted, trial_retries
from rag_harness.pipelines.calling import called, with_page_names, without_reasoning
from rag_harness.pipelines.context_limit import most_contexts, refuse_many
from rag_harness.pipelines.returned import output_of
from rag_harness.pipelines.sent_messages import keeping_sent
from rag_harness.pipelines.trace import Trace
from rag_harness.protocols import Pipeline
from rag_harness.registry.own_parts import stated_fingerprint
from rag_harness.results.row import ExperimentResult, first_problem
from rag_harness.settings import Settings
from rag_harness.types import Answer, Case, Failure, Message, PipelineOutput, Query
from rag_harness.work.deadline import Deadline
from rag_harness.work.local_work import inline


@dataclass(frozen=True, slots=True)
class Ended:
    """A conversation that a simulated user has ended: after which turn, and why.

    ``out_of_role``: what the user was to say next did not follow from its scenario.
    """

    turn: int
    why: str
    out_of_role: bool = False

    def __str__(self) -> str:
        return f"after turn {self.turn}: {self.why}"


@dataclass(frozen=True, slots=True)
class TrialOutcome:
    """The result of a trial: its row, and whether no later trial can succeed either.

    ``row`` is None where the trial was not run, and ``not_run`` says why, or where its conversation was over before,
    and ``ended`` says so. ``error`` is what a debugger should see.
    """

    row: ExperimentResult | None
    critical: bool = False
    not_run: str = ""
    ended: Ended | None = None
    error: Exception | None = None


async def run_trial(
    trial: Trial,
    pipeline: Pipeline,
    settings: Settings,
    fingerprint: str,
    keep_prompt: KeepPrompt = lambda _: "",
    find_page: Callable[[str, str], str] | None = None,
) -> TrialOutcome:
    """Answer the case's query and make the row, in bounded time. Cancellation is the only error that it raises.

    ``find_page`` finds the page of a context that the pipeline calls otherwise, or does not name.
    """
    _rehearse(settings.refusals)
    started = perf_counter()
    trial_retries.set(RetriesNoted())
    unkept: list[CriticalError] = []

    def kept(messages: Sequence[Message]) -> str:
        try:
            return keep_prompt(messages)
        except CriticalError as error:
            unkept.append(error)  # the answer is paid for, so its row is kept without the prompt; then the run stops
            return ""

    def row_of(output: PipelineOutput, failure: Failure | None) -> ExperimentResult:
        total_ms = (perf_counter() - started) * 1000
        row = make_row(trial, output, failure, total_ms, settings, fingerprint, kept)
        stated = "" if row.version else stated_fingerprint(pipeline)
        return row.model_copy(update={"version": stated}) if stated else row

    failure: Failure | None = None
    raised: Exception | None = None
    try:
        with keeping_sent(_without_errors(keep_prompt)):
            output = without_reasoning(await _in_time(_answer(pipeline, trial.case.query), settings.deadline))
        refuse_long(output.answer.text, settings.max_answer, type(pipeline).__name__)
        refuse_many(output, most_contexts(settings), type(pipeline).__name__)
        output = output if find_page is None else with_page_names(output, find_page)
        raised = _nothing_said(output)
        failure = _failure(raised) if raised is not None else None
        row = row_of(output, failure)
    except BudgetError as error:
        log.info("%s: not run: budget: %s", trial.trial_id, error)
        return TrialOutcome(None, not_run=f"budget: {error}")
    except Exception as error:
        failure, raised = _failure(error), error
        log.error("%s: %s failed", trial.trial_id, failure.stage, exc_info=error)
        row = _failed_row(error, failure, row_of)
    log.debug("%s", DebugLine(row))
    critical = bool(unkept) or (failure is not None and failure.critical)
    return TrialOutcome(row, critical, error=raised or next(iter(unkept), None))


def _without_errors(keep_prompt: KeepPrompt) -> Callable[[Sequence[Message]], None]:
    """Return ``keep_prompt`` as it is called before an answer is there. The row tries again, and says what is wrong."""

    def keep(messages: Sequence[Message]) -> None:
        with suppress(CriticalError):
            keep_prompt(messages)

    return keep


@cache
def _rehearse(refusals: tuple[str, ...]) -> None:
    """Make a row of an answer that nobody has given, before the first answer is asked for.

    What is made at first use, such as the phrases of refusals, takes half a second on a busy machine. An answer that
    came meanwhile would wait for it, and a kill would lose it.
    """
    settings = replace(Settings(), refusals=refusals)
    case = Case(Query("", "When?"), ground_truth="The fee is paid within 30 days.")
    make_row(Trial("", case), PipelineOutput(Answer("Within 30 days the fee is paid.")), None, 0.0, settings, "")


def _nothing_said(output: PipelineOutput) -> EmptyAnswerError | None:
    said: object = output.answer.text
    if output.retrieval_only or not isinstance(said, str) or said.strip():
        return None  # a row refuses what is no text
    return EmptyAnswerError(
        "the answer is empty. A pipeline that does not know says so in words; one that only retrieves returns "
        "PipelineOutput(…, retrieval_only=True)",
        output.answer.raw,
    )


def _failed_row(
    error: Exception, failure: Failure, row_of: Callable[[PipelineOutput, Failure], ExperimentResult]
) -> ExperimentResult:
    try:
        row = row_of(_trace(error).output(Answer("")), failure)
    except Exception:  # the trace cannot be written either; a score may be NaN
        row = row_of(PipelineOutput(Answer("")), failure)
    # The trace has only calls that came back. An error of a call knows its own retries; where a deadline or a refusal
    # ended the trial, only the trial's notes do.
    given_up = error if isinstance(error, ModelCallError) else ModelCallError()
    noted = trial_retries.get()
    retries = max(row.retries + given_up.retries, noted.retries)
    waited_ms = max(row.waited_ms + given_up.waited_ms, noted.waited_ms)
    return row.model_copy(update={"retries": retries, "waited_ms": waited_ms})


async def _in_time(work: Coroutine[Any, Any, PipelineOutput], seconds: float) -> PipelineOutput:
    """Run ``work`` with a deadline; without one in a debugger."""
    if inline.get():
        return await work
    return await Deadline(seconds, f"deadline: no answer within {seconds:g} s. Allow more: --rag-deadline").bound(work)


async def _answer(pipeline: Pipeline, query: Query) -> PipelineOutput:
    name = type(pipeline).__name__
    return output_of(await called(pipeline.answer, query, f"{name}.answer"), f"{name}.answer")


def _trace(error: BaseException) -> Trace:
    """Return the trace of a failed pipeline. The trace of a missed deadline is on the cancellation that it caused."""
    told_by = error.__cause__ if isinstance(error, DeadlineError) else error
    trace = getattr(told_by, "rag_trace", None)
    return trace if isinstance(trace, Trace) else Trace()


def _failure(error: Exception) -> Failure:
    return Failure(
        stage="answer" if isinstance(error, EmptyAnswerError) else _trace(error).failed_stage or "pipeline",
        error_type=type(error).__name__,
        message=_message(error),
        raw_output=error.raw if isinstance(error, ModelOutputError) else "",
        critical=isinstance(error, (CriticalError, PrerequisiteError)),
    )


def _message(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return f"the pipeline's output cannot be recorded: {error.title}: {first_problem(error)}"
    try:
        return str(error) or repr(error)
    except Exception:
        return "its message cannot be read"
