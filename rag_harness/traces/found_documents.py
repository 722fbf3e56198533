"""The documents that a span of a search or a reranker names: id, text, score, and names from their metadata."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

from rag_harness.errors import TraceError
from rag_harness.traces.flattened import flat_list, is_hidden, structured
from rag_harness.traces.span_record import SpanRecord
from rag_harness.words.page_names import NAMES_OF_PAGES

_TEXTS = ("content", "page_content", "text")
_SCORES = ("score", "relevance_score")
_NODE = re.compile(r"<NodeWithScore\(node=\w{1,60}\(id_=([^()]{1,300})\), score=([^()]{1,40})\)>")
"""A chunk as LlamaIndex shows it: all that it tells of what a postprocessor returned."""
_LONGEST_NAME = 500


@dataclass(frozen=True, slots=True)
class FoundDocument:
    """A chunk as a span names it.

    Attributes:
        text: its words; empty where they are not told, or hidden.
        id: its id; empty where it has none.
        score: its score; None where none is told.
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
        """Whether it can be told from others: by its words, its id, or its metadata."""
        return bool(self.text or self.id or self.names)


def retrieved_by(span: SpanRecord) -> tuple[FoundDocument, ...] | None:
    """Return what a search has found, best first; None where its span does not tell.

    Raises:
        TraceError: what it names is no document.
    """
    items = flat_list(span.attributes, "retrieval.documents")
    found = _described(items) if items else _by_genai(span)
    told = _in_output(span)
    if found is None:
        return told
    return _without_zeros(_completed(found, told or ()))


def kept_by(span: SpanRecord) -> tuple[FoundDocument, ...] | None:
    """Return what a reranker has returned, best first; None where its span does not tell."""
    items = flat_list(span.attributes, "reranker.output_documents")
    return _described(items) if items else _in_output(span)


def kept_nodes(span: SpanRecord) -> tuple[FoundDocument, ...] | None:
    """Return what a postprocessor of LlamaIndex has returned, by id; None where the span is of none."""
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
    """Return the documents in a span's output: LangChain has their ids there alone, and an empty list is told there."""
    said = structured(span.attributes.get("output.value"))
    items = said.get("documents") if isinstance(said, Mapping) else said
    if not isinstance(items, list):
        return None
    told = [each for each in items if isinstance(each, Mapping) and any(key in each for key in _TEXTS)]
    return tuple(_document(each) for each in told) if len(told) == len(items) else None


def _completed(found: Sequence[FoundDocument], told: Sequence[FoundDocument]) -> tuple[FoundDocument, ...]:
    """Add what the output tells of the same documents: LangChain's spans have no ids otherwise."""
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
