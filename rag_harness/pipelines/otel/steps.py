"""Steps of a trace: searches, rerankers, model calls and tools, with the documents that they found."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise, takewhile
from math import isfinite
from typing import Any, Literal

from rag_harness.core.errors import TraceError
from rag_harness.core.text.comparison import NAMES_OF_PAGES, words_of
from rag_harness.core.types import StepKind
from rag_harness.pipelines.otel.model_calls import ModelCall, ToolSeen, call_of, is_call, tools_in
from rag_harness.pipelines.otel.spans import (
    TELLS_WORK,
    SpanRecord,
    SpanTree,
    flat_list,
    is_hidden,
    kind_of,
    own_ms,
    structured,
)

_TEXTS = ("content", "page_content", "text")
_SCORES = ("score", "relevance_score")
_NODE = re.compile(r"<NodeWithScore\(node=\w{1,60}\(id_=([^()]{1,300})\), score=([^()]{1,40})\)>")
"""A chunk as LlamaIndex shows it: all that it tells of what a postprocessor returned."""
_LONGEST_NAME = 500


@dataclass(frozen=True, slots=True)
class FoundDocument:
    """A chunk as a span names it.

    Attributes:
        text: its words; empty where the trace lacks them, or hides them.
        id: its id; empty where it has none.
        score: its score; None where the trace lacks it.
        names: what may be the name of its document, from its metadata.
        hidden: whether its words were taken out on purpose.
    """

    text: str = ""
    id: str = ""
    score: float | None = None
    names: tuple[str, ...] = ()
    hidden: bool = False

    @property
    def is_told(self) -> bool:
        """Whether it can be distinguished from others: by its words, its id, or its metadata."""
        return bool(self.text or self.id or self.names)


def retrieved_by(span: SpanRecord) -> tuple[FoundDocument, ...] | None:
    """Return the documents that a search found, best first; None where its span lacks them.

    Raises:
        TraceError: the span names something that is not a document.
    """
    items = flat_list(span.attributes, "retrieval.documents")
    found = _described(items) if items else _by_genai(span)
    told = _in_output(span)
    if found is None:
        return told
    return _without_zeros(_completed(found, told or ()))


def kept_by(span: SpanRecord) -> tuple[FoundDocument, ...] | None:
    """Return the documents that a reranker returned, best first; None where its span lacks them."""
    items = flat_list(span.attributes, "reranker.output_documents")
    return _described(items) if items else _in_output(span)


def kept_nodes(span: SpanRecord) -> tuple[FoundDocument, ...] | None:
    """Return the nodes that a postprocessor of LlamaIndex returned, by id; None where the span is of another kind."""
    if "postprocess_nodes" not in span.name:
        return None
    shown = structured(span.attributes.get("output.value"))
    if not isinstance(shown, list):
        return None
    nodes = [_NODE.fullmatch(each) if isinstance(each, str) else None for each in shown]
    kept = [FoundDocument(id=node[1], score=_number(node[2])) for node in nodes if node]
    return tuple(kept) if len(kept) == len(shown) else None


def _described(items: Sequence[Mapping[str, Any]]) -> tuple[FoundDocument, ...]:
    return tuple(_document({key.removeprefix("document."): value for key, value in each.items()}) for each in items)


def _document(said: Mapping[str, Any]) -> FoundDocument:
    metadata = structured(said.get("metadata"))
    metadata = metadata if isinstance(metadata, Mapping) else {}
    text = next((said[key] for key in _TEXTS if isinstance(said.get(key), str)), "")
    names = dict.fromkeys(str(metadata[key]) for key in NAMES_OF_PAGES if isinstance(metadata.get(key), (str, int)))
    own = said.get("id")
    scores = [_number(place.get(key)) for place in (said, metadata) for key in _SCORES]
    return FoundDocument(
        text="" if is_hidden(text) else text,
        id=str(own) if isinstance(own, (str, int)) and not isinstance(own, bool) and not is_hidden(own) else "",
        score=next((score for score in scores if score is not None), None),
        names=tuple(name for name in names if name and len(name) <= _LONGEST_NAME and not is_hidden(name)),
        hidden=is_hidden(text),
    )


def _by_genai(span: SpanRecord) -> tuple[FoundDocument, ...] | None:
    said = structured(span.attributes.get("gen_ai.retrieval.documents"))
    if not isinstance(said, (list, tuple)):
        return None
    items = [structured(each) for each in said]
    wrong = next((place for place, each in enumerate(items) if not isinstance(each, Mapping)), None)
    if wrong is not None:
        raise TraceError(
            f"Document {wrong} in gen_ai.retrieval.documents of span {span.name!r} is a {type(items[wrong]).__name__}, "
            f"and no object with id or content, so what was found would be lost. Write each as an object: "
            f'[{{"id": "…", "content": "…", "score": 0.9}}].'
        )
    return tuple(map(_document, items))


def _in_output(span: SpanRecord) -> tuple[FoundDocument, ...] | None:
    """Return the documents in a span's output: LangChain has their ids there alone, and states an empty list there."""
    said = structured(span.attributes.get("output.value"))
    items = said.get("documents") if isinstance(said, Mapping) else said
    if not isinstance(items, list):
        return None
    told = [each for each in items if isinstance(each, Mapping) and any(key in each for key in _TEXTS)]
    return tuple(_document(each) for each in told) if len(told) == len(items) else None


def _completed(found: Sequence[FoundDocument], told: Sequence[FoundDocument]) -> tuple[FoundDocument, ...]:
    """Add the output's values of the same documents: LangChain's spans have no ids otherwise."""
    if len(found) != len(told):
        return tuple(found)
    return tuple(
        replace(
            each,
            text=each.text or other.text,
            id=each.id or other.id,
            score=other.score if each.score is None else each.score,
            names=each.names or other.names,
        )
        for each, other in zip(found, told, strict=True)
    )


def _without_zeros(found: Sequence[FoundDocument]) -> tuple[FoundDocument, ...]:
    """Leave scores out where all are 0: LlamaIndex writes that where a retriever has none."""
    if any(each.score or each.score is None for each in found):
        return tuple(found)
    return tuple(replace(each, score=None) for each in found)


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if isfinite(found) else None


# Which of several searches and rerankers inside each other are steps, and what each of them returned.
#
# Frameworks wrap: LlamaIndex has a span of the search and one of the part that searches, of which only the outer tells
# what was found; LangChain has no span for a reranker, but one of the search with it around one of the search without
# it.

Role = Literal["search", "rerank", "merge"]
"""What a span does with documents: finds them, puts them into a better order, or joins what several searches found."""


@dataclass(frozen=True, slots=True)
class SearchSeen:
    """A span that is a step, its role, and its result; None where the span lacks it."""

    span: SpanRecord
    role: Role
    found: tuple[FoundDocument, ...] | None


def searches_in(tree: SpanTree) -> list[SearchSeen]:
    """Return the searches and rerankers of a trace that are steps, in the order in which they began."""
    candidates = {span.span_id: seen for span in tree.spans if (seen := _candidate(span)) is not None}
    around = tree.nearest(candidates)
    inner: dict[str, list[SearchSeen]] = {key: [] for key in ("", *candidates)}
    for span in reversed(tree.outermost_first):
        if span.span_id in candidates:
            outer = around[span.span_id].span_id if span.span_id in around else ""
            inner[outer] += _steps(candidates[span.span_id], inner[span.span_id])
    places = {span.span_id: place for place, span in enumerate(tree.spans)}
    return sorted(inner[""], key=lambda seen: places[seen.span.span_id])


def _candidate(span: SpanRecord) -> SearchSeen | None:
    kind = kind_of(span)
    if kind == "retriever":
        return SearchSeen(span, "search", () if span.failed else retrieved_by(span))
    if kind == "reranker":
        return SearchSeen(span, "rerank", () if span.failed else kept_by(span))
    nodes = kept_nodes(span)
    return None if nodes is None else SearchSeen(span, "rerank", nodes)


def _steps(outer: SearchSeen, inner: Sequence[SearchSeen]) -> list[SearchSeen]:
    """Return what of a span and of the steps inside of it are steps.

    One that does not tell what it found stays, which is an error with its name, unless others tell it: the span around
    it, of which it is a part, or the spans inside of it, around which it is a wrapper.
    """
    telling = sorted((each for each in inner if each.found is not None), key=lambda each: each.span.end_ns)
    if not telling:
        return [outer]
    return [*_with_outer(outer, telling), *(each for each in inner if each.found is None)]


def _with_outer(outer: SearchSeen, telling: Sequence[SearchSeen]) -> list[SearchSeen]:
    if outer.found is None:
        # A reranker around a search does not count as a wrapper: which documents it has kept is unknown.
        is_wrapper = outer.role == "search" or telling[-1].role == "rerank"
        return [*telling] if is_wrapper else [*telling, outer]
    if _same(outer.found, telling[-1].found):
        return [outer] if len(telling) == 1 and telling[0].role == outer.role else [*telling]
    if outer.role == "rerank":
        return [*telling, outer]
    searches = [each for each in telling if each.role == "search"]
    return [*telling, SearchSeen(outer.span, "merge" if len(searches) > 1 else "rerank", outer.found)]


def _same(some: Sequence[FoundDocument], others: Sequence[FoundDocument] | None) -> bool:
    """Return whether an outer span returned what the inner one did, in that order and with no scores of its own."""
    return others is not None and len(some) == len(others) and all(map(_is_unchanged, some, others))


def _is_unchanged(after: FoundDocument, before: FoundDocument) -> bool:
    is_same = after.id == before.id if after.id and before.id else after.text == before.text
    return is_same and after.score in (None, before.score)


_QUERIES = ("query", "query_str", "query_bundle", "input", "question", "text")
_QUERY_ATTRIBUTES = ("gen_ai.retrieval.query.text", "reranker.query", "input.value")
_MOST_INSIDE = 4
"""How deep the text of a query may lie in the arguments of a search."""
_ROLES: Mapping[str, str] = {"retriever": "rewrite", "reranker": "rerank"}
SEEN = "seen"
"""Note of a step that has no span of its own: where it is told."""


@dataclass(frozen=True, slots=True)
class SeenStep:
    """A step of a trace.

    Attributes:
        span: the span that it is read from.
        kind: its kind; empty where it joins the results of several searches.
        name: its name.
        ms: its time without the steps inside of it, in milliseconds.
        input: its input.
        output: its output, unless that is documents.
        found: the documents that a search or a reranker returned, best first; None where its span lacks them.
        model_call: the call of a step that asks a model.
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
    """Return the calls of models: the innermost spans. A framework and a client may both have a span of one call."""
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
    """Return the query or question of a span; None where the span lacks it."""
    attributes = span.attributes
    said = next((attributes[name] for name in _QUERY_ATTRIBUTES if name in attributes), None)
    return None if is_hidden(said) else _text(structured(said))


def _text(value: Any) -> str | None:
    for _ in range(_MOST_INSIDE):
        if not isinstance(value, Mapping):
            break
        value = next((value[key] for key in _QUERIES if value.get(key)), None)
    return value if isinstance(value, str) and value else None


class SeenDocuments:
    """Numbers documents from 0, in the order in which they were seen. What two spans name may be one document.

    Attributes:
        all: each document, with the values that any span has of it.
    """

    def __init__(self) -> None:
        self.all: list[FoundDocument] = []
        self._by_both: dict[tuple[str, str], int] = {}
        self._by_id: dict[str, int] = {}
        self._by_text: dict[str, int] = {}

    def number(self, document: FoundDocument) -> int:
        """Return the number of a document. Two chunks may have the id of one page, so texts count where both have."""
        at = self._by_both.get((document.id, document.text))
        if at is None and not document.text:
            at = self._by_id.get(document.id)
        if at is None and document.text:
            at = self._by_text.get(document.text)
            # Two chunks with ids of their own may have the same text.
            at = at if at is None or not document.id or not self.all[at].id else None
        if at is None:
            at = len(self.all)
            self.all.append(document)
        self._note(document, at)
        return at

    def _note(self, document: FoundDocument, at: int) -> None:
        known = self.all[at]
        if known is not document and not (known.text and known.id and known.names):
            self.all[at] = known = replace(
                known, text=known.text or document.text, id=known.id or document.id, names=known.names or document.names
            )
        self._by_both.setdefault((document.id, document.text), at)
        self._by_both.setdefault((known.id, known.text), at)
        if known.id:
            self._by_id.setdefault(known.id, at)
        if known.text:
            self._by_text.setdefault(known.text, at)


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """The result of the searches of a trace; documents by their numbers, each once.

    Attributes:
        documents: all of them, by number.
        of_step: what each step returned, best first, as it tells them, in the order of the steps.
        first: the documents of the first stages, in their order. The joined list of joined searches comes first.
        left: the documents that all rerankers left.
    """

    documents: Sequence[FoundDocument]
    of_step: Sequence[Mapping[int, FoundDocument]]
    first: Sequence[int]
    left: Sequence[int]


def outcome_of(steps: Sequence[SeenStep]) -> SearchOutcome:
    """Return the result of the searches of a trace."""
    seen = SeenDocuments()
    of_step = [_numbered(step, seen) for step in steps]
    first, left = _Lists(), _Lists()
    # A search ends before the reranker around it does.
    for step, found in sorted(zip(steps, of_step, strict=True), key=lambda each: each[0].span.end_ns):
        # What a reranker that failed was given is still there.
        if step.returns_documents and not step.has_lost_documents:
            numbers = list(found)
            if step.kind != "rerank":
                first.take(numbers, replaces=step.kind == "", keeps=True)
            left.take(numbers, replaces=step.kind != "retrieve", keeps=False)
    return SearchOutcome(seen.all, of_step, first.flat(), left.flat())


def _numbered(step: SeenStep, seen: SeenDocuments) -> dict[int, FoundDocument]:
    found: dict[int, FoundDocument] = {}
    for document in step.found or ():
        found.setdefault(seen.number(document), document)
    return found


class _Lists:
    """Lists of numbers, each of which may take the place of those that it was made of. The work is linear."""

    def __init__(self) -> None:
        # Each list that is there, with those that come behind it, which are such pairs, too.
        self._lists: dict[int, tuple[Sequence[int], Sequence[Any]]] = {}
        # By number: the lists in which it came. By list that comes behind another: the list before it.
        self._holding: dict[int, list[int]] = {}
        self._around: dict[int, int] = {}
        self._taken = 0

    def take(self, new: Sequence[int], replaces: bool, keeps: bool) -> None:
        """Take a list.

        Args:
            new: the list.
            replaces: whether it was made of others: those with which it shares a number, or the last one where there
                is none.
            keeps: whether the numbers that it leaves out of them come behind it.
        """
        key, self._taken = self._taken, self._taken + 1
        used = self._made_of(new) if replaces else []
        behind = [self._lists.pop(each) for each in used]
        self._around |= dict.fromkeys(used, key) if keeps else {}
        self._lists[key] = new, behind if keeps else ()
        for number in new:
            # All lists with a number go into the one that is made of them.
            self._holding[number] = [] if replaces else self._holding.get(number, [])
            self._holding[number].append(key)

    def flat(self) -> list[int]:
        """Return all numbers, each once."""
        found: dict[int, None] = {}
        waiting = list(reversed(self._lists.values()))
        while waiting:
            numbers, behind = waiting.pop()
            found |= dict.fromkeys(numbers)
            waiting += reversed(behind)
        return list(found)

    def _made_of(self, new: Sequence[int]) -> list[int]:
        found = {self._outermost(key) for number in new for key in self._holding.get(number, ())}
        there = sorted(key for key in found if key in self._lists)
        return there or list(islice(reversed(self._lists), 1))

    def _outermost(self, key: int) -> int:
        passed = []
        while key in self._around:
            passed.append(key)
            key = self._around[key]
        self._around |= dict.fromkeys(passed, key)
        return key


# Which documents stood in the prompt of the answer: what was found is not always what a model was given.

_BEGIN = 30
"""Words of a document that must be in the prompt: the end of a long one may be cut off there. Documents that begin
alike need more: as many as tell them apart."""
_PASSED_ON = 4
"""Fewest words of a reply that is recognised in the prompt of another call."""
_MOST_CALLS = 50
_MOST_DOCUMENTS = 1000
"""More are not compared: what was left after the last reranker counts as given."""
_ESCAPED = re.compile(r"\\u([0-9a-fA-F]{4})|\\[nrt]")


def prompted(
    documents: Sequence[FoundDocument], calls: Sequence[ModelCall], prompts: Sequence[str], answer: str
) -> list[int] | None:
    """Return the documents that a model was given for the answer, by number, in the order of the prompt.

    They are in the prompt of the call that gave the answer, or of a call whose reply is in that prompt.

    Args:
        documents: the documents that were found.
        calls: the calls of models outside searches, in their order.
        prompts: prompts that were made; they count where no call has its own.
        answer: the answer of the app.

    Returns:
        None: the trace lacks prompts or texts. Empty: the trace has a prompt, and it contains no document.
    """
    if not documents or len(documents) > _MOST_DOCUMENTS:
        return None
    texts = [_words(each.text) for each in documents]
    given = _prompts_of(calls[-_MOST_CALLS:], answer) or [_words(text) for text in prompts[-1:]]
    if not all(text.strip() for text in texts) or not any(prompt.strip() for prompt in given):
        return None
    begins, apart = _begins(texts)
    places: list[tuple[int, int, int]] = []
    for number, prompt in enumerate(given):
        found = {at: place for at, begin in enumerate(apart) if (place := prompt.find(begin)) >= 0}
        told_apart = {begins[at] for at in found}
        for at, begin in enumerate(begins):
            # Where the prompt has cut off what tells documents apart, each of them may be meant.
            if begin not in told_apart and (place := prompt.find(begin)) >= 0:
                found[at] = place
        places += [(number, place, at) for at, place in found.items()]
    return list(dict.fromkeys(at for *_, at in sorted(places)))


def _begins(texts: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the first words of each text, and as many of them as no other text begins with."""
    words = [text.split() for text in texts]
    most = [_BEGIN] * len(words)
    order = sorted(range(len(words)), key=words.__getitem__)
    for one, other in pairwise(order):
        # In this order, those that begin most alike are neighbours.
        alike = takewhile(lambda pair: pair[0] == pair[1], zip(words[one], words[other], strict=False))
        shared = sum(1 for _ in alike)
        most[one], most[other] = (max(most[at], shared + 1) for at in (one, other))
    begins = [f" {' '.join(each[:_BEGIN])} " for each in words]
    return begins, [f" {' '.join(each[:count])} " for each, count in zip(words, most, strict=True)]


def _prompts_of(calls: Sequence[ModelCall], answer: str) -> list[str]:
    """Return the prompts of the call that gave the answer and of those whose replies went into it, in their order."""
    words = [(_words(call.prompt), _words(call.reply)) for call in calls]
    said = _words(answer)
    gave = [at for at, (_, reply) in enumerate(words) if reply.strip() and (reply in said or said in reply)]
    last = gave[-1] if gave else len(words) - 1
    used: list[str] = []
    for prompt, reply in reversed(words[: last + 1]):
        is_passed_on = len(reply.split()) >= _PASSED_ON and any(reply in later for later in used)
        if not used or is_passed_on:
            used.append(prompt)
    return [prompt for prompt in reversed(used) if prompt.strip()]


def _words(text: str) -> str:
    # The result of a tool may be in a prompt as JSON.
    words = words_of(_ESCAPED.sub(lambda found: chr(int(found[1], 16)) if found[1] else " ", text))
    return f" {' '.join(words)} "


MOST_SPANS = 10_000
"""Most spans of a trial. An app that makes more has lost its way, or the spans are of many trials."""
_SHOWN = 3
HIDDEN = "Its words are hidden: unset OPENINFERENCE_HIDE_OUTPUTS and OPENINFERENCE_HIDE_RETRIEVAL_DOCUMENTS"
CAPTURE = "Let the instrumentation capture content: OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true"
"""What to do where words are not told."""


@dataclass(frozen=True, slots=True)
class SeenTrace:
    """The content of a trace.

    Attributes:
        steps: in the order in which they began; a reranker comes after the search inside of it.
        outcome: the result of the searches.
        given: the documents that the model was given, by number, in the order of the prompt.
        by_prompt: whether ``given`` is read from the prompt; else it is the result of the last search or reranker.
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
    """Return the content of a trial's spans. ``answer`` is the app's answer.

    Raises:
        TraceError: spans are missing, are cut, or lack the documents that were found. The message has the fault and the
            remedy.
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
            f"messages may be in them: the SDK keeps the last 128 of a span. Set it before the app starts: "
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
                    f"Document {place} of span {step.span.name!r} has neither an id nor words, so it is not known "
                    f"which it is. {HIDDEN if document.hidden else 'Put one of them into the span'}."
                )


def _more(spans: Sequence[SpanRecord]) -> str:
    return f", and of {len(spans) - 1} more spans" if len(spans) > 1 else ""


def _filled(spans: Iterable[SpanRecord]) -> list[str]:
    """Return the prompts that templates were made into, in the order of their spans."""
    filled = [span for span in spans if kind_of(span) == "prompt" or (kind_of(span) == "llm" and not is_call(span))]
    said = (span.attributes.get("output.value") for span in sorted(filled, key=lambda span: span.end_ns))
    return [text for text in said if isinstance(text, str) and not is_hidden(text)]
