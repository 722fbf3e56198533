"""From the spans of a trial to what its row says: steps, what was retrieved, what a model was given."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rag_harness.errors import TraceError
from rag_harness.traces.flattened import is_hidden
from rag_harness.traces.model_calls import is_call
from rag_harness.traces.prompted import prompted
from rag_harness.traces.seen_documents import SearchOutcome, outcome_of
from rag_harness.traces.span_kinds import TELLS_WORK, kind_of
from rag_harness.traces.span_record import SpanRecord
from rag_harness.traces.steps import SeenStep, steps_of

MOST_SPANS = 10_000
"""Most spans of a trial. An app that makes more has lost its way, or the spans are of many trials."""
_SHOWN = 3
HIDDEN = "Its words are hidden: unset OPENINFERENCE_HIDE_OUTPUTS and OPENINFERENCE_HIDE_RETRIEVAL_DOCUMENTS"
CAPTURE = "Let the instrumentation capture content: OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true"
"""What to do where words are not told."""


@dataclass(frozen=True, slots=True)
class SeenTrace:
    """What a trace tells.

    Attributes:
        steps: in the order in which they began; a reranker comes after the search inside of it.
        outcome: what the searches came to.
        given: the documents that the model was given, by number, in the order of the prompt.
        by_prompt: whether ``given`` is read off the prompt; else it is what the last search or reranker returned.
    """

    steps: Sequence[SeenStep]
    outcome: SearchOutcome
    given: Sequence[int]
    by_prompt: bool

    @property
    def read_off(self) -> str:
        """What ``given`` is read off, in words, with what makes it uncertain."""
        if self.by_prompt:
            return "the prompt" if self.given else "the prompt, in which nothing stands of what was found"
        failed = next((step.name for step in self.steps if step.has_lost_documents), None)
        return "the last search" if failed is None else f"the last search, for {failed} failed: what went on is unknown"


def read_trace(spans: Sequence[SpanRecord], answer: str) -> SeenTrace:
    """Return what the spans of a trial tell. ``answer`` is what the app said.

    Raises:
        TraceError: spans are missing, cut, or do not tell what was found; says what is missing and what to do.
    """
    _check(spans)
    steps = steps_of(spans)
    _check_told(steps)
    outcome = outcome_of(steps)
    asked = [step.model_call for step in steps if step.model_call is not None]
    calls = [each for each in asked if each.call.role == "answer"]
    given = prompted(outcome.documents, calls, _filled(spans), answer)
    return SeenTrace(steps, outcome, outcome.left if given is None else given, given is not None)


def _check(spans: Sequence[SpanRecord]) -> None:
    if len(spans) > MOST_SPANS:
        raise TraceError(f"The trace has {len(spans):,} spans, and no trial has more than {MOST_SPANS:,}.")
    cut = [span for span in spans if span.dropped]
    if cut:
        raise TraceError(
            f"{cut[0].dropped} attributes of span {cut[0].name!r} were dropped{_more(cut)}: the SDK keeps the last 128 "
            f"of a span unless told otherwise, and the first documents are lost. Set it before the app starts: "
            f"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT=100000."
        )
    eventful = [span for span in spans if span.dropped_events and kind_of(span) in TELLS_WORK]
    if eventful:
        raise TraceError(
            f"{eventful[0].dropped_events} events of span {eventful[0].name!r} were dropped{_more(eventful)}, and "
            f"messages may stand in them: the SDK keeps the last 128 of a span. Set it before the app starts: "
            f"OTEL_SPAN_EVENT_COUNT_LIMIT=100000."
        )
    if spans and not any(kind_of(span) for span in spans):
        names = ", ".join(repr(span.name) for span in spans[:_SHOWN]) + (", …" if len(spans) > _SHOWN else "")
        raise TraceError(
            f"{len(spans)} spans came ({names}), and none says by OpenInference's convention or OpenTelemetry's for "
            f"generative AI what it is. Instrument the framework too: docs/how-to/traces.md."
        )


def _check_told(steps: Iterable[SeenStep]) -> None:
    for step in steps:
        if step.found is None:
            raise TraceError(
                f"Span {step.span.name!r} is one of a search or a reranker, and does not tell what it returned. Its "
                f"instrumentation may leave content out: unset OPENINFERENCE_HIDE_OUTPUTS, or set "
                f"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true. A span by hand needs "
                f"retrieval.documents.0.document.id or .content, and output.value = [] where nothing was found."
            )
        for place, document in enumerate(step.found):
            if not document.is_told:
                raise TraceError(
                    f"Document {place} of span {step.span.name!r} has neither an id nor words, so nobody knows which "
                    f"it is. {HIDDEN if document.hidden else 'Put one of them into the span'}."
                )


def _more(spans: Sequence[SpanRecord]) -> str:
    return f", and of {len(spans) - 1} more spans" if len(spans) > 1 else ""


def _filled(spans: Iterable[SpanRecord]) -> list[str]:
    """Return the prompts that templates were made into, in the order of their spans."""
    filled = [span for span in spans if kind_of(span) == "prompt" or (kind_of(span) == "llm" and not is_call(span))]
    said = (span.attributes.get("output.value") for span in sorted(filled, key=lambda span: span.end_ns))
    return [text for text in said if isinstance(text, str) and not is_hidden(text)]
