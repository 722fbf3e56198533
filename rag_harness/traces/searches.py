"""Which of several searches and rerankers inside each other are steps, and what each of them returned.

Frameworks wrap: LlamaIndex has a span of the search and one of the part that searches, of which only the outer tells
what was found; LangChain has no span for a reranker, but one of the search with it around one of the search without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rag_harness.traces.found_documents import FoundDocument, kept_by, kept_nodes, retrieved_by
from rag_harness.traces.span_kinds import kind_of
from rag_harness.traces.span_record import SpanRecord
from rag_harness.traces.span_tree import SpanTree

Role = Literal["search", "rerank", "merge"]
"""What a span does with documents: finds them, puts them into a better order, or joins what several searches found."""


@dataclass(frozen=True, slots=True)
class SearchSeen:
    """A span that is a step, its role, and what it returned; None where the span does not tell."""

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
        # A reranker around a search is no wrapper: it is unknown what it has kept.
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
