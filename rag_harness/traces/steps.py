"""The steps of a trace: searches, rerankers, model calls, tools, in their order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rag_harness.traces.flattened import is_hidden, structured
from rag_harness.traces.found_documents import FoundDocument
from rag_harness.traces.model_calls import ModelCall, call_of, is_call
from rag_harness.traces.searches import SearchSeen, searches_in
from rag_harness.traces.span_kinds import kind_of
from rag_harness.traces.span_record import SpanRecord
from rag_harness.traces.span_tree import SpanTree, own_ms
from rag_harness.traces.tool_calls import ToolSeen, tools_in
from rag_harness.types import StepKind

_QUERIES = ("query", "query_str", "query_bundle", "input", "question", "text")
_QUERY_ATTRIBUTES = ("gen_ai.retrieval.query.text", "reranker.query", "input.value")
_MOST_INSIDE = 4
"""How deep the text of a query may lie in the arguments of a search."""
_ROLES: Mapping[str, str] = {"retriever": "rewrite", "reranker": "rerank"}
SEEN = "seen"
"""Note of a step that has no span of its own: where it is told."""


@dataclass(frozen=True, slots=True)
class SeenStep:
    """A step as a trace tells it.

    Attributes:
        span: the span that it is read from.
        kind: what it does; empty where it joins what several searches found.
        name: what it is called.
        ms: what it took, without the steps inside of it, in milliseconds.
        input: what went in.
        output: what came out, where that is no documents.
        found: the documents that a search or a reranker returned, best first; None where its span does not tell.
        model_call: of a step that asks a model.
        detail: notes.
    """

    span: SpanRecord
    kind: StepKind
    name: str
    ms: float = 0.0
    input: Any = None
    output: Any = None
    found: tuple[FoundDocument, ...] | None = ()
    model_call: ModelCall | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)

    @property
    def returns_documents(self) -> bool:
        """Whether it is a search, a reranker, or joins what searches found."""
        return self.kind in ("", "retrieve", "rerank")

    @property
    def has_lost_documents(self) -> bool:
        """Whether it is a reranker, or joins what searches found, and has failed: it was given documents."""
        return self.kind in ("", "rerank") and self.span.failed


def steps_of(spans: Iterable[SpanRecord]) -> list[SeenStep]:
    """Return the steps of one trace."""
    tree = SpanTree(spans)
    calls = _calls(tree)
    steps = [
        *map(_of_search, searches_in(tree)),
        *_of_calls(calls, tree),
        *map(_of_tool, tools_in(tree, calls)),
        *(_of_guardrail(span) for span in tree.spans if kind_of(span) == "guardrail"),
    ]
    return _timed(_in_order(steps, tree), tree)


def _in_order(steps: Sequence[SeenStep], tree: SpanTree) -> list[SeenStep]:
    """Return the steps as they began. What reranks or joins searches inside of it comes after the last of them."""
    places = {span.span_id: place for place, span in enumerate(tree.spans)}
    searches = {step.span.span_id for step in steps if step.returns_documents}
    around, last = tree.nearest(searches), dict(places)
    for span in reversed(tree.outermost_first):
        if span.span_id in searches and (outer := around.get(span.span_id)) is not None:
            last[outer.span_id] = max(last[outer.span_id], last[span.span_id])
    return sorted(steps, key=lambda step: (last[step.span.span_id], -places[step.span.span_id]))


def _timed(steps: Sequence[SeenStep], tree: SpanTree) -> list[SeenStep]:
    """Return the steps with their own times. One that has no span of its own takes none."""
    spans = {step.span.span_id: step.span for step in steps}
    ms = dict(zip(spans, own_ms(list(spans.values()), tree), strict=True))
    return [step if step.detail.get(SEEN) else replace(step, ms=ms[step.span.span_id]) for step in steps]


def _calls(tree: SpanTree) -> list[tuple[SpanRecord, ModelCall]]:
    """Return the calls of models: the innermost spans, for a framework and a client may both have one of a call."""
    models = {span.span_id: span for span in tree.spans if kind_of(span) == "llm" and is_call(span)}
    around = tree.nearest(models)
    inside: dict[str, int] = {}
    for key in models:
        if key in around:
            inside[around[key].span_id] = inside.get(around[key].span_id, 0) + 1
    return [(span, call_of(span, _about_it(span, around, inside))) for key, span in models.items() if key not in inside]


def _about_it(span: SpanRecord, around: Mapping[str, SpanRecord], inside: Mapping[str, int]) -> list[SpanRecord]:
    """Return the spans around a call that are about this call alone, the nearest first."""
    found = []
    while span.span_id in around and inside[around[span.span_id].span_id] == 1:
        span = around[span.span_id]
        found.append(span)
    return found


def _of_search(seen: SearchSeen) -> SeenStep:
    kinds: Mapping[str, StepKind] = {"search": "retrieve", "rerank": "rerank", "merge": ""}
    span = seen.span
    return SeenStep(
        span, kinds[seen.role], span.name, input=text_given_to(span), found=seen.found, detail=_failure(span)
    )


def _of_calls(calls: Sequence[tuple[SpanRecord, ModelCall]], tree: SpanTree) -> Iterator[SeenStep]:
    """Yield the steps of models' calls. One that a search or a reranker makes has the role of that work."""
    around = tree.nearest({span.span_id for span in tree.spans if kind_of(span) in _ROLES})
    for span, call in calls:
        inside = around.get(span.span_id)
        role = "answer" if inside is None else _ROLES[kind_of(inside)]
        own = replace(call, call=replace(call.call, role=role))
        yield SeenStep(span, "generate", span.name, output=call.reply or None, model_call=own, detail=_failure(span))


def _of_tool(seen: ToolSeen) -> SeenStep:
    notes = {} if seen.has_span else {SEEN: "in the reply of the model"}
    detail = {**_failure(seen.span), **notes}
    return SeenStep(seen.span, "tool", seen.name, input=seen.arguments, output=seen.result, detail=detail)


def _of_guardrail(span: SpanRecord) -> SeenStep:
    said = span.attributes.get("output.value")
    output = None if is_hidden(said) else structured(said)
    return SeenStep(span, "decide", span.name, input=text_given_to(span), output=output, detail=_failure(span))


def _failure(span: SpanRecord) -> dict[str, Any]:
    return {"failed": span.message or True} if span.failed else {}


def text_given_to(span: SpanRecord) -> str | None:
    """Return what was searched for or asked; None where the span does not tell."""
    attributes = span.attributes
    said = next((attributes[name] for name in _QUERY_ATTRIBUTES if name in attributes), None)
    return None if is_hidden(said) else _text(structured(said))


def _text(value: Any) -> str | None:
    for _ in range(_MOST_INSIDE):
        if not isinstance(value, Mapping):
            break
        value = next((value[key] for key in _QUERIES if value.get(key)), None)
    return value if isinstance(value, str) and value else None
