"""From a question to the experiment's answer, in the form that a client reads."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass, replace

from rag_harness.errors import DeadlineError, ModelCallError, ModelOutputError, QueryTooLongError, RagHarnessError
from rag_harness.files.log import log
from rag_harness.models.answer_length import refuse_long
from rag_harness.models.patience import somebody_waits
from rag_harness.pipelines.calling import declined
from rag_harness.pipelines.trace import Trace
from rag_harness.service.citing import cited
from rag_harness.service.corpus.serving import Serving
from rag_harness.service.problems import ProblemError
from rag_harness.service.read_inputs import ReadInputs
from rag_harness.service.schemas import Answered, Cited, Debug, Found, Mode, Outcome, Step
from rag_harness.settings.reliability_numbers import WEAK_SIGNALS
from rag_harness.types import Answer, Decision, Hit, PipelineOutput, Query

NOT_NOW = "I can't answer that right now."
_OUTCOMES: dict[str, Outcome] = {"pass": "pass", "warn": "warn", "abstain": "abstain"}


@dataclass(frozen=True, slots=True)
class ServiceQuestion:
    """A question and how to answer it: ``trace_id`` names the query, ``mode`` is normal or strict."""

    text: str
    trace_id: str
    inputs: ReadInputs
    mode: Mode = "normal"

    def query(self) -> Query:
        """Return what the pipeline sees."""
        return Query(self.trace_id, self.text, self.inputs)


async def answer(serving: Serving, question: ServiceQuestion, seconds: float) -> PipelineOutput:
    """Return the experiment's answer. If its model cannot be asked, return an abstention with what was found.

    Raises:
        ProblemError: there is no answer: the question is too long, took too long, or failed before anything was found.
    """
    strict = question.mode == "strict"
    experiment = serving.strict if strict and serving.strict is not None else serving.experiment
    try:
        with somebody_waits():
            output: PipelineOutput = await asyncio.wait_for(experiment.pipeline.answer(question.query()), seconds)
        refuse_long(output.answer.text, serving.longest_answer, "The model")
        output = replace(output, answer=replace(output.answer, abstained=declined(output.answer, serving.refusals)))
    except QueryTooLongError as error:
        raise query_too_long(error) from error
    except (ModelCallError, ModelOutputError, DeadlineError) as error:
        output = _without_a_model(error)
    except (TimeoutError, asyncio.TimeoutError) as error:
        output = _too_slow(error, seconds)
    except RagHarnessError as error:
        log.warning("Question %s: %s", question.trace_id, error)
        raise ProblemError(503, "cannot_answer", "Nothing can be answered now; the server's log says why.") from error
    return _held_back(output) if strict and not _is_given_in_strict_mode(output) else output


def query_too_long(error: QueryTooLongError) -> ProblemError:
    """Return the problem of a question that is too long for the embedder. Asking it again does not help."""
    detail = f"The question has {error.tokens} tokens, and may have {error.most}. Ask a shorter one."
    return ProblemError(413, "query_too_long", detail, extra={"tokens": error.tokens, "limit": error.most})


def _too_slow(error: Exception, seconds: float) -> PipelineOutput:
    """Return an abstention: the time was over before the model had answered.

    Raises:
        ProblemError: the time was over before anything was found.
    """
    trace = _trace_of(error.__cause__)
    if trace is None:
        raise ProblemError(504, "too_slow", f"No answer within {seconds:g} s. Ask again, or ask for less.") from error
    log.warning("The model did not answer within %g s", seconds)
    return _abstains(trace, "TooSlow")


def _without_a_model(error: Exception) -> PipelineOutput:
    """Return an abstention: the model does not answer, or its answer cannot be read."""
    log.warning("The model did not answer: %s", error)
    trace = _trace_of(error)
    if trace is None:
        raise ProblemError(
            503,
            "model_unavailable",
            "The model does not answer, and nothing was found without it.",
            {"Retry-After": "5"},
        ) from error
    return _abstains(trace, type(error).__name__)


def _trace_of(error: BaseException | None) -> Trace | None:
    """Return the trace of the work before an error; None if nothing was found before it."""
    trace = getattr(error, "rag_trace", None)
    return trace if isinstance(trace, Trace) and trace.context else None


def _abstains(trace: Trace, why: str) -> PipelineOutput:
    trace.decisions.append(Decision("decision", "abstain", reason=f"MODEL_UNAVAILABLE: {why}"))
    return trace.output(Answer(NOT_NOW, abstained=True), 0.0)


def _is_given_in_strict_mode(output: PipelineOutput) -> bool:
    """Whether it is no warning, or the only warning is that the signals of the search are weak."""
    last = _last_decision(output)
    if last is None or outcome_of(output) != "warn":
        return True
    unsure = last.value is not None and last.threshold is not None and last.value < last.threshold
    reasons = reasons_of(output)
    return bool(reasons) and not unsure and all(reason.startswith(WEAK_SIGNALS) for reason in reasons)


def _held_back(output: PipelineOutput) -> PipelineOutput:
    """Return an abstention in place of an answer that mode strict does not give."""
    reasons = [*reasons_of(output), "STRICT: only answers with no warning except a weak search are given"]
    decision = Decision("decision", "abstain", output.confidence, reason="; ".join(reasons))
    said = Answer("I am not sure enough to answer that.", abstained=True)
    return replace(output, answer=said, decisions=(*output.decisions, decision))


def outcome_of(output: PipelineOutput) -> Outcome:
    """Return the outcome of an answer: its last decision; without one, whether the answer itself abstains."""
    last = _last_decision(output)
    if last is not None and last.outcome in _OUTCOMES:
        return _OUTCOMES[last.outcome]
    return "abstain" if declined(output.answer) else "unchecked"


def reasons_of(output: PipelineOutput) -> list[str]:
    """Return the reason codes of the last decision."""
    last = _last_decision(output)
    return [code for code in last.reason.split("; ") if code] if last is not None else []


def _last_decision(output: PipelineOutput) -> Decision | None:
    return next((each for each in reversed(output.decisions) if each.name == "decision"), None)


def links_of(output: PipelineOutput) -> dict[int, str]:
    """Return the link that the pipeline made for each source: what a stage notes as ``links``."""
    noted = (link for stage in output.stages for link in stage.detail.get("links", ()))
    return {link["source"]: str(link["url"]) for link in noted if link.get("url")}


def answer_for_client(
    serving: Serving, output: PipelineOutput, question: ServiceQuestion, debug: bool, is_kept: bool = False
) -> Answered:
    """Return an answer in the form that a client reads, with exact citations.

    ``is_kept`` says that the server keeps its conversation.
    """
    said, inputs = output.answer, question.inputs
    was_read = inputs.history_was_read if inputs.has_history else None
    citations = cited(said.text, said.citations, output.context, serving.document, links_of(output))
    return Answered(
        answer=said.text,
        citations=[Cited(**asdict(each)) for each in citations],
        confidence=output.confidence,
        decision=outcome_of(output),
        reasons=reasons_of(output),
        trace_id=question.trace_id,
        experiment=serving.experiment.id,
        conversation=inputs["conversation"] if is_kept else None,
        turn=inputs["turn"] if is_kept else None,
        history_read=was_read,
        debug=_debug(output) if debug else None,
    )


def _debug(output: PipelineOutput) -> Debug:
    return Debug(
        stages=[Step(name=stage.name, ms=stage.ms, calls=len(stage.calls)) for stage in output.stages],
        retrieved=[_found(hit) for hit in output.retrieved or output.context],
        context=[_found(hit) for hit in output.context],
        decisions=[asdict(each) for each in output.decisions],
    )


def _found(hit: Hit) -> Found:
    section = " > ".join(hit.chunk.section)
    chunk = hit.chunk
    return Found(id=chunk.chunk_id, document=chunk.doc_id, section=section, score=hit.score, text=chunk.text)
