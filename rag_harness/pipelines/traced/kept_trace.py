"""A trace that was kept, as a question with its answer: what a pipeline said to somebody, and how it came to that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rag_harness.errors import ModelOutputError, TraceError
from rag_harness.models.reasoning import parted
from rag_harness.pipelines.endpoint.placing import Placing
from rag_harness.pipelines.traced.answer_text import answer_text
from rag_harness.pipelines.traced.traced_output import output_of
from rag_harness.traces.flattened import is_hidden, structured
from rag_harness.traces.model_messages import messages_of
from rag_harness.traces.seen_trace import read_trace
from rag_harness.traces.span_kinds import kind_of
from rag_harness.traces.span_record import SpanRecord
from rag_harness.traces.span_tree import SpanTree
from rag_harness.traces.steps import text_given_to
from rag_harness.types import PipelineOutput

_USERS = ("user", "human")


@dataclass(frozen=True, slots=True)
class KeptTrace:
    """A question that was asked, and what was said.

    Attributes:
        question: its words.
        answer: the words of the answer; empty where the app failed, whatever a model of it had said.
        trace_id: the id of the trace.
        began_ns: when it was asked, in nanoseconds since 1970.
        ms: what it took, in milliseconds.
        failed: whether the app failed.
        message: what it said of its failure.
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
            TraceError: spans are cut, or do not tell what was found.
        """
        seen = read_trace(self.spans, self.answer)
        told = output_of(seen, placing, self.answer)
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
        question, parted(answer).answer, root.trace_id, root.start_ns, root.ms, root.failed, root.message, spans
    )


def _in_messages(root: SpanRecord) -> str:
    """Return what the user said last, where a span was given messages."""
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
