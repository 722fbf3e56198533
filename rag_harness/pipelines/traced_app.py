"""An app under test as a pipeline: its answer, and its spans as steps, hits and context."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rag_harness.core.concurrency import on_local_thread
from rag_harness.core.errors import ModelOutputError, PrerequisiteError, SettingsError, TraceError
from rag_harness.core.package import install
from rag_harness.core.protocols import Experiment
from rag_harness.core.registry import stated_fingerprint, stated_truth
from rag_harness.core.types import Answer, Hit, PipelineOutput, Query, Stage
from rag_harness.models.prompts import split_reply
from rag_harness.models.recording.playback import AppCalls
from rag_harness.pipelines.endpoint.answer import (
    BY_ID,
    NO_TEXT,
    Context,
    PlacedContexts,
    Placing,
    ServiceAnswer,
    answer_of,
    is_uuid,
    most_contexts,
    placing_in,
)
from rag_harness.pipelines.otel.model_calls import messages_of
from rag_harness.pipelines.otel.spans import SpanRecord, SpanTree, is_hidden, kind_of, structured
from rag_harness.pipelines.otel.steps import (
    CAPTURE,
    HIDDEN,
    FoundDocument,
    SeenStep,
    SeenTrace,
    read_trace,
    text_given_to,
)
from rag_harness.pipelines.parts import RunParts
from rag_harness.pipelines.trace import Trace
from rag_harness.pipelines.user_pipelines import ReplayedParts, called_noting

if TYPE_CHECKING:
    from rag_harness.pipelines.otel.in_process import TracedTrial


SOURCE = "search"
"""Source of the hits that a trace tells."""
_SHOWN = 100


def _context(document: FoundDocument) -> Context:
    # The id of a chunk must be the same in each run, and a UUID is new in each.
    is_new = is_uuid(document.id) and bool(document.text)
    names = (document.id, *document.names) if is_new else document.names
    return Context(document.text, "" if is_new else document.id, score=document.score, others=names)


def output_of_trace(seen: SeenTrace, placing: Placing, answer: str) -> PipelineOutput:
    """Return the output of an app whose answer is ``answer``. Citations are read from its text: ``[Source 1]``.

    Raises:
        TraceError: a document of the context has no text in the trace, and is not a document of the run.
    """
    documents = seen.outcome.documents
    placed = placing.place([_context(each) for each in documents])
    scores = _rerank_scores(seen)
    hits = [hit.reranked(scores[at], hit.rank) if at in scores else hit for at, hit in enumerate(placed.hits)]
    first, given = (
        tuple(replace(hits[at], rank=rank) for rank, at in enumerate(numbers, 1))
        for numbers in (seen.outcome.first, seen.given)
    )
    given = tuple(_with_text(hit, documents[at], placing) for hit, at in zip(given, seen.given, strict=True))
    return PipelineOutput(
        answer_of(ServiceAnswer(answer), given), retrieved=first, context=given, stages=_stages(seen, placed)
    )


def _with_text(hit: Hit, document: FoundDocument, placing: Placing) -> Hit:
    """Return a hit of the context with its text; where the trace has none, with the text of the page that its id names.

    A judge would compare the answer with an empty text.
    """
    if hit.chunk.text:
        return hit
    text = placing.text_of(hit.chunk.doc_id)
    if not text:
        named = document.id or document.names[0]
        raise TraceError(
            f"Document {named[:_SHOWN]!r} of the context has no words in the trace, and no document of the run has its "
            f"id, so the answer could only be judged by an empty text. "
            f"{HIDDEN if document.hidden else CAPTURE}; or name the documents that it is one of: --rag-kb."
        )
    return replace(hit, chunk=replace(hit.chunk, text=text))


def _rerank_scores(seen: SeenTrace) -> dict[int, float]:
    """Return the score that each document had from the last reranker that states one, by number."""
    scores: dict[int, float] = {}
    for step, found in zip(seen.steps, seen.outcome.of_step, strict=True):
        if step.kind == "rerank":
            scores |= {at: document.score for at, document in found.items() if document.score is not None}
    return scores


def _stages(seen: SeenTrace, placed: PlacedContexts) -> tuple[Stage, ...]:
    stages = [_stage(step, found, placed.hits) for step, found in zip(seen.steps, seen.outcome.of_step, strict=True)]
    # How documents were placed is said once for a trial.
    first = next((at for at, stage in enumerate(stages) if stage.kind == "retrieve"), None)
    if first is not None:
        # A context without text has the text of the page. "pages_as_texts" states it.
        how = Counter({BY_ID: placed.how.get(NO_TEXT, 0)}) + Counter({**placed.how, NO_TEXT: 0})
        notes = {**stages[first].detail, "placed": dict(how), "context_by": seen.read_off}
        silent = sum(not seen.outcome.documents[at].text for at in seen.given)
        notes |= {"pages_as_texts": silent} if silent else {}
        stages[first] = replace(stages[first], detail=notes)
    return tuple(stages)


def _stage(step: SeenStep, found: Mapping[int, FoundDocument], hits: Sequence[Hit]) -> Stage:
    asked = step.model_call
    calls = () if asked is None else (asked.call,)
    own = tuple(
        Hit(hits[at].chunk, 1 / rank if document.score is None else document.score, rank, SOURCE)
        for rank, (at, document) in enumerate(found.items(), 1)
    )
    return Stage(step.name, step.ms, calls, step.detail, step.kind, step.input, step.output, own)


_KEYS = ("answer", "response", "output", "result", "content", "text", "replies", "messages")
"""Keys or attributes that may hold the text, in this order: those of chains, query engines, agents and messages."""
_DEEPEST = 6


def answer_text(returned: Any, name: str) -> str:
    """Return the text of an answer.

    It is a text itself, or the first of the keys or attributes that is there: answer, response, output, result,
    content, text, replies, messages; of a list the last item. A mapping with one item only is its item's text.

    Args:
        returned: the value that the app returned.
        name: the app's name in messages.

    Raises:
        ModelOutputError: no text is found. The message tells what was returned.
    """
    found = _text(returned, 0)
    if found is None:
        keys = f" with {', '.join(map(repr, list(returned)[:10]))}" if isinstance(returned, Mapping) else ""
        raise ModelOutputError(
            f"{name} returned {type(returned).__name__}{keys}, and no text is found in it. Hand over a function that "
            f"returns the text: rag_traced(lambda question: app(question)[…])."
        )
    return found


def _text(value: Any, depth: int) -> str | None:
    if isinstance(value, str):
        return value
    if value is None or depth > _DEEPEST:
        return None
    if isinstance(value, (list, tuple)):
        return _of_list(value, depth)
    inside = _inside(value)
    if not inside and isinstance(value, Mapping) and len(value) == 1:
        inside = list(value.values())
    return next((text for each in inside if (text := _text(each, depth + 1)) is not None), None)


def _inside(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return [value[key] for key in _KEYS if value.get(key) is not None]
    return [found for key in _KEYS if (found := getattr(value, key, None)) is not None and not callable(found)]


def _of_list(items: list[Any] | tuple[Any, ...], depth: int) -> str | None:
    """Return the text of the last item; of a message in parts the text of all."""
    parts = [each["text"] for each in items if isinstance(each, Mapping) and isinstance(each.get("text"), str)]
    if parts:
        return "".join(parts)
    return _text(items[-1], depth + 1) if items else None


def as_recorded(told: PipelineOutput, calls: AppCalls) -> PipelineOutput:
    """Return an output with the date of the oldest recording, if all HTTP calls of the app were replayed.

    A model's step then takes its recorded time longer, where each step is one chat completion that was replayed, and
    the whole takes longer by what all of them took, at once or one after the other. Otherwise it is unknown whose time
    is whose, and the times are those of the replay.
    """
    recorded_at = calls.recorded_at
    if recorded_at is None:
        return told
    is_known = len(told.calls) == len(calls.chat_ms)
    more = iter(calls.chat_ms if is_known else [0.0] * len(told.calls))
    stages = tuple(_as_recorded(stage, recorded_at, more) for stage in told.stages)
    total_ms = None if told.total_ms is None else told.total_ms + calls.chat_elapsed_ms * is_known
    return replace(told, stages=stages, total_ms=total_ms)


def _as_recorded(stage: Stage, recorded_at: str, more: Iterator[float]) -> Stage:
    asked = [(call, next(more)) for call in stage.calls]
    done = (replace(call, recorded=True, recorded_at=recorded_at, ms=call.ms + ms) for call, ms in asked)
    return replace(stage, calls=tuple(done), ms=stage.ms + sum(ms for _, ms in asked))


class TracedPipeline:
    """Asks an app and reads its trace.

    Args:
        app: an object with ``answer(query)``, or a function of the question's text. It may be async.
        provider: the tracer provider that the app's instrumentation has; None: the global one.
        experiment: its name, for spans and chunks without a document.
        placing: finds the documents of chunks.

    Raises:
        PrerequisiteError: the app is neither.
    """

    def __init__(
        self, app: Any, provider: Any = None, experiment: str = "traced", placing: Placing | None = None
    ) -> None:
        self.app, self.provider, self._experiment = app, provider, experiment
        self.parts = ReplayedParts()
        self._placing = placing or Placing(lambda: (), experiment, SOURCE)
        self._takes_query = callable(getattr(app, "answer", None))
        if not self._takes_query and not callable(app):
            raise PrerequisiteError(
                f"Traced is a function of the question's text, or an object with a method answer; "
                f"{type(app).__name__} is neither. Hand over its method: rag_traced(app.invoke)."
            )

    def bound(self, experiment: str, placing: Placing, provider: Any) -> TracedPipeline:
        """Return the same app as the pipeline of an experiment, whose documents ``placing`` knows.

        ``provider`` counts where this pipeline names none.
        """
        own = provider if self.provider is None else self.provider
        return TracedPipeline(self.app, own, experiment, placing)

    @property
    def fingerprint(self) -> str:
        """The version that the app states."""
        return stated_fingerprint(self.app)

    @property
    def retrieves(self) -> bool | None:
        """Whether the app says that it retrieves; None where it does not say."""
        return stated_truth(self.app, "retrieves")

    async def answer(self, query: Query) -> PipelineOutput:
        """Ask the app below a span of its own, and return its answer with the content of its spans.

        Raises:
            PrerequisiteError: no tracer provider is set. The app was not asked.
            TraceError: the trace lacks what a row needs.
            RecordingMissError: a call of the app is not recorded, and this mode sends no calls.
        """
        provider = in_process()
        about = {"openinference.span.kind": "CHAIN", "input.value": query.text, "rag_harness.query_id": query.query_id}
        with provider.traced_trial(self.provider, f"rag_trial {self._experiment}", about) as trial:
            try:
                returned, calls = await self._asked(query)
            except Exception as error:
                await self._tell(error, trial.so_far())
                raise
            text = returned.answer.text if isinstance(returned, PipelineOutput) else answer_text(returned, self._name)
            provider.end_root(trial, text)
            with Trace().stage("trace"):
                told = await self._told(trial, text)
            told = as_recorded(replace(told, total_ms=trial.ms, trace_id=trial.trace_id), calls)
            told = self.parts.dated(told, calls)
        return _completed(returned, told) if isinstance(returned, PipelineOutput) else told

    async def _asked(self, query: Query) -> tuple[Any, AppCalls]:
        """Return the app's result, and the results of its HTTP calls."""
        if self._takes_query:
            return await called_noting(self.app.answer, query, f"{self._name}.answer")
        return await called_noting(self.app, query.text, self._name)

    @property
    def _name(self) -> str:
        return str(getattr(self.app, "__qualname__", type(self.app).__name__))

    async def _told(self, trial: TracedTrial, text: str) -> PipelineOutput:
        try:
            spans = await trial.spans()
            # Looking up texts is CPU-bound. Off the loop, calls in flight continue.
            return await on_local_thread(lambda: self._read(spans, text))
        except TraceError as error:
            error.raw = text
            raise

    def _read(self, spans: Sequence[SpanRecord], answer: str) -> PipelineOutput:
        seen = read_trace(spans, answer)
        return output_of_trace(seen, self._placing, answer)

    async def _tell(self, error: Exception, spans: Sequence[SpanRecord]) -> None:
        """Let the row of an app that has raised show how far it came."""
        with suppress(TraceError, AttributeError):
            error.rag_trace = _SoFar(await on_local_thread(lambda: self._read(spans, "")))  # type: ignore[attr-defined]


class _SoFar(Trace):
    """The trace of an app that raised."""

    def __init__(self, told: PipelineOutput) -> None:
        super().__init__(failed_stage="pipeline")
        self._told = told

    def output(self, answer: Answer, confidence: float | None = None) -> PipelineOutput:  # noqa: ARG002 - as a Trace
        return replace(self._told, answer=answer)


def _completed(said: PipelineOutput, told: PipelineOutput) -> PipelineOutput:
    """Return the output that an app states, with the rest from its trace."""
    return replace(
        said,
        retrieved=said.retrieved or told.retrieved,
        context=said.context or told.context,
        stages=said.stages or told.stages,
        total_ms=told.total_ms,
        trace_id=told.trace_id,
        recorded_at=told.recorded_at,
    )


def in_process() -> Any:
    """Return the module that knows the SDK of OpenTelemetry."""
    try:
        from rag_harness.pipelines.otel import in_process as provider
    except ImportError as error:
        raise PrerequisiteError(
            f"Traces cannot be read: {error.name} is not installed. Nothing was asked. {install('traces')}"
        ) from error
    return provider


CODE = ("rag_harness.pipelines.traced_app", "rag_harness.pipelines.otel.in_process")
"""The modules that decide what is read off a trace."""


def traced_experiment(experiment: Experiment, parts: RunParts, provider: Any) -> Experiment:
    """Return an experiment whose app is asked below spans. Its documents are part of what decides its rows.

    Args:
        experiment: its pipeline is the app, or one that is traced already.
        parts: have the documents.
        provider: the tracer provider where the pipeline names none; None: the global one.

    Raises:
        SettingsError: trials run on other machines.
    """
    from dataclasses import replace

    if parts.settings.engine == "ray":
        raise SettingsError(
            f"Experiment {experiment.id!r} is traced, and spans are collected in the process that asks. Leave "
            f"--rag-engine=ray out."
        )
    data = parts.data(experiment.data)
    placing = placing_in(data, experiment.id, SOURCE, most_contexts(parts.settings))
    pipeline = (
        experiment.pipeline if isinstance(experiment.pipeline, TracedPipeline) else TracedPipeline(experiment.pipeline)
    )
    known = {**experiment.ingredients, "traced": True, "documents": data.digest if data.has_documents else ""}
    bound = pipeline.bound(experiment.id, placing, provider)
    return replace(experiment, pipeline=bound, ingredients=known, code={**experiment.code, "traces": CODE})


_USERS = ("user", "human")


@dataclass(frozen=True, slots=True)
class KeptTrace:
    """A question that was asked, and its answer.

    Attributes:
        question: its words.
        answer: the words of the answer; empty where the app failed, even if a model of it had answered.
        trace_id: the id of the trace.
        began_ns: when it was asked, in nanoseconds since 1970.
        ms: its time, in milliseconds.
        failed: whether the app failed.
        message: the message of its failure.
        spans: all that is known of it.
    """

    question: str
    answer: str
    trace_id: str
    began_ns: int
    ms: float
    failed: bool
    message: str
    spans: Sequence[SpanRecord]

    def output(self, placing: Placing) -> PipelineOutput:
        """Return it as a pipeline's output.

        Raises:
            TraceError: spans are cut, or lack the documents that were found.
        """
        seen = read_trace(self.spans, self.answer)
        told = output_of_trace(seen, placing, self.answer)
        return replace(told, total_ms=self.ms, trace_id=self.trace_id)


def kept_trace(spans: Sequence[SpanRecord]) -> KeptTrace:
    """Return the question and the answer of a trace: those of its root span, else those of its models.

    Raises:
        TraceError: it tells no question, or no answer though it has not failed.
    """
    tree = SpanTree(spans)
    # A span that has lost the one around it may have begun before the root span, by the clock of its own machine.
    root = min(
        (span for span in tree.spans if span.span_id not in tree.parents),
        key=lambda span: (span.parent_id != "", span.start_ns, span.span_id),
    )
    # A search that lost the span around it has words of documents as its output.
    is_whole = kind_of(root) in ("", "other", "llm")
    question = (is_whole and (text_given_to(root) or _in_messages(root))) or _asked_of_model(tree)
    if not question:
        raise TraceError(f"Its root span {root.name!r} tells no question: input.value is missing or hidden.")
    answer = "" if root.failed else (is_whole and _said(root)) or _said_by_model(tree)
    if not answer and not root.failed:
        raise TraceError(f"Its root span {root.name!r} tells no answer: output.value is missing or hidden.")
    return KeptTrace(
        question, split_reply(answer).answer, root.trace_id, root.start_ns, root.ms, root.failed, root.message, spans
    )


def _in_messages(root: SpanRecord) -> str:
    """Return the user's last message, where the input of a span is messages."""
    given = structured(root.attributes.get("input.value"))
    given = given.get("messages") if isinstance(given, Mapping) else given
    messages = [each for each in given if isinstance(each, Mapping)] if isinstance(given, list) else []
    said = [each.get("content") for each in messages if each.get("role", each.get("type")) in _USERS]
    return said[-1] if said and isinstance(said[-1], str) else ""


def _said(root: SpanRecord) -> str:
    said = root.attributes.get("output.value")
    if said is None or is_hidden(said):
        return ""
    try:
        return answer_text(structured(said), root.name)
    except ModelOutputError:
        return ""


def _asked_of_model(tree: SpanTree) -> str:
    sent = (message for span in tree.spans if kind_of(span) == "llm" for message in messages_of(span, "input"))
    return next((message.text for message in sent if message.role in _USERS and message.text), "")


def _said_by_model(tree: SpanTree) -> str:
    calls = sorted((span for span in tree.spans if kind_of(span) == "llm"), key=lambda span: span.end_ns)
    said = [message.text for span in calls for message in messages_of(span, "output") if message.text]
    return said[-1] if said else ""
