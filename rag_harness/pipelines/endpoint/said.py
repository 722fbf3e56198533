"""Conversion of a service's answer; citations become numbers of its contexts."""

from __future__ import annotations

from collections.abc import Sequence

from rag_harness.pipelines.endpoint.service_answer import ServiceAnswer
from rag_harness.types import Answer, Hit
from rag_harness.words.cited import cited_sources


def answer_of(said: ServiceAnswer, hits: Sequence[Hit]) -> Answer:
    """Return the answer. Without a path for citations, they are read from the text: ``[Source 1]``."""
    cited = _places(said, hits) if said.citations is not None else list(cited_sources(said.answer))
    inside = [n for n in cited if 1 <= n <= len(hits)]
    return Answer(
        said.answer,
        citations=tuple(inside),
        invalid_citations=tuple(n for n in cited if n not in inside),
        abstained=said.abstained,
        raw=said.answer,
    )


def _places(said: ServiceAnswer, hits: Sequence[Hit]) -> list[int]:
    """Return citations as numbers, once each. A name of no context gets a number after the last context."""
    names: dict[str, int] = {}
    for place, (context, hit) in reversed(list(enumerate(zip(said.contexts, hits, strict=True), 1))):
        names |= dict.fromkeys(filter(None, (context.document, hit.chunk.doc_id)), place)
        names |= {context.id: place} if context.id else {}
    found: list[int] = []
    behind = len(hits)
    for cited in said.citations or ():
        place = cited if isinstance(cited, int) else names.get(cited, 0)
        behind += not place
        found.append(place or behind)
    return list(dict.fromkeys(found))
