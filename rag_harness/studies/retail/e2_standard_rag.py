"""E2: vector search, then answer from the best chunks."""

from __future__ import annotations

from dataclasses import dataclass

from rag_harness.pipelines.generation import Generator
from rag_harness.pipelines.parts import RunParts
from rag_harness.pipelines.trace import Trace
from rag_harness.protocols import Experiment, Retriever
from rag_harness.types import PipelineOutput, Query


@dataclass(frozen=True)
class StandardRag:
    """Retrieves ``top_k`` chunks and answers from them."""

    retriever: Retriever
    generator: Generator
    top_k: int

    async def answer(self, query: Query) -> PipelineOutput:
        trace = Trace()
        await trace.retrieve(self.retriever, query.text, self.top_k)
        trace.context = trace.retrieved
        return await self.generator.answer(query, trace)


def build(parts: RunParts) -> Experiment:
    """Return this experiment."""
    retrieval, generator = parts.retrieval(), Generator(parts.chat(), parts.prompts("e2"))
    return Experiment(
        "e2",
        StandardRag(retrieval.dense, generator, parts.settings.top_k),
        retriever=retrieval.dense,
        prepare=parts.prepared(retrieval),
        answer_from=generator.answer_from,
        chunks=lambda: retrieval.chunks,
    )
