"""E4 with a planning step before retrieval: does planning help?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

from rag_harness.pipelines.parts import RunParts
from rag_harness.pipelines.trace import Trace
from rag_harness.protocols import ChatModel, Experiment, Retriever
from rag_harness.retrieval.retrievers import RerankedRetriever, fused
from rag_harness.studies.retail.e3_filtered_rag import FilteredRag, filtered
from rag_harness.studies.retail.planning import planned
from rag_harness.studies.retail.subquestions import subquestions
from rag_harness.types import Hit, PipelineOutput, Query

SOURCE = "planned"
"""The source of a chunk that several fused searches have found."""


@dataclass(frozen=True)
class PlannedRag:
    """Plans searches, retrieves ``candidates`` chunks for each, fuses them to as many, and goes on as E4 does.

    The reranker gets the original question, and as many candidates as in E4. With a single search, this is E4.
    """

    unplanned: FilteredRag
    rewriter: ChatModel | None

    async def answer(self, query: Query) -> PipelineOutput:
        trace, e4 = Trace(), self.unplanned
        rankings = list[list[Hit]]()
        for search in await planned(query.text, self.rewriter, trace):
            await trace.retrieve(e4.retriever, search, e4.candidates)
            rankings.append(trace.retrieved)
        trace.retrieved = _fused(rankings, e4.candidates)
        await trace.rerank(e4.reranker, query.text, e4.top_k)
        return await e4.generator.answer(query, trace)


@dataclass(frozen=True)
class PlannedRetriever:
    """The retrieve step alone. It plans by rules, since the retrieval suite asks no model."""

    inner: Retriever

    def retrieve(self, query: str, k: int) -> list[Hit]:
        return _fused([self.inner.retrieve(search, k) for search in subquestions(query)], k)


def _fused(rankings: Sequence[list[Hit]], k: int) -> list[Hit]:
    return fused(rankings, k, SOURCE) if len(rankings) > 1 else rankings[0]


def build(parts: RunParts) -> Experiment:
    """Return this experiment."""
    settings, retrieval = parts.settings, parts.retrieval()
    e4 = filtered("e4-plan", parts, reasoning=True, prompted_as="e4")

    def prepare(queries: Sequence[Query]) -> None:
        retrieval.prepare([search for query in queries for search in subquestions(query.text)])

    planned_first = PlannedRetriever(retrieval.dense)
    return replace(
        e4,
        pipeline=PlannedRag(cast("FilteredRag", e4.pipeline), parts.rewriter()),
        retriever=RerankedRetriever(planned_first, retrieval.reranker(), settings.candidates),
        prepare=prepare,
    )
