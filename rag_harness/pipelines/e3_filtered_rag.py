"""E3: vector search for candidates, a reranker keeps the best, then answer."""

from __future__ import annotations

from dataclasses import dataclass

from rag_harness.pipelines.generation import Generator
from rag_harness.pipelines.parts import RunParts
from rag_harness.pipelines.trace import Trace
from rag_harness.protocols import Pipeline, Reranker, Retriever
from rag_harness.types import PipelineOutput, Query


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


def build(parts: RunParts) -> Pipeline:
    """Return the pipeline of this experiment."""
    settings = parts.settings
    generator = Generator(parts.chat, parts.prompts("e3"))
    return FilteredRag(parts.retriever, parts.reranker, generator, settings.candidates, settings.top_k)
