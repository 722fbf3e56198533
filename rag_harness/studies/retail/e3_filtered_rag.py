"""E3: vector search for candidates; a reranker keeps the best; then answer."""

from __future__ import annotations

from dataclasses import dataclass

from rag_harness.pipelines.generation import Generator
from rag_harness.pipelines.parts import RunParts
from rag_harness.pipelines.trace import Trace
from rag_harness.protocols import Experiment, Reranker, Retriever
from rag_harness.retrieval.retrievers import RerankedRetriever
from rag_harness.types import IndexSpec, PipelineOutput, Query


@dataclass(frozen=True)
class FilteredRag:
    """Retrieves ``candidates`` chunks, reranks them, and answers from the best ``top_k``."""

    retriever: Retriever
    reranker: Reranker
    generator: Generator
    candidates: int
    top_k: int

    async def answer(self, query: Query) -> PipelineOutput:
        trace = Trace()
        await trace.retrieve(self.retriever, query.text, self.candidates)
        await trace.rerank(self.reranker, query.text, self.top_k)
        return await self.generator.answer(query, trace)


def build(parts: RunParts) -> Experiment:
    """Return this experiment."""
    return filtered("e3", parts)


def filtered(
    name: str,
    parts: RunParts,
    reasoning: bool = False,
    spec: IndexSpec | None = None,
    prompted_as: str = "",
    data: str = "",
) -> Experiment:
    """Return the experiment ``name`` of this design, over an index of ``spec``; without it, over the options' index.

    Its prompts are its own, or those of the experiment ``prompted_as``. Its documents are those of ``data``.
    """
    settings, retrieval = parts.settings, parts.retrieval(spec, data)
    generator = Generator(parts.chat(), parts.prompts(prompted_as or name), reasoning)
    reranker = retrieval.reranker()
    return Experiment(
        name,
        FilteredRag(retrieval.dense, reranker, generator, settings.candidates, settings.top_k),
        data=data,
        retriever=RerankedRetriever(retrieval.dense, reranker, settings.candidates),
        prepare=parts.prepared(retrieval),
        answer_from=generator.answer_from,
        chunks=lambda: retrieval.chunks,
    )
