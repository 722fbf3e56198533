"""E4: as E3, and the model reasons step by step before it answers."""

from __future__ import annotations

from rag_harness.pipelines.e3_filtered_rag import FilteredRag
from rag_harness.pipelines.generation import Generator
from rag_harness.pipelines.parts import RunParts
from rag_harness.protocols import Pipeline


def build(parts: RunParts) -> Pipeline:
    """Return the pipeline of this experiment."""
    settings = parts.settings
    generator = Generator(parts.chat, parts.prompts("e4"), reasoning=True)
    return FilteredRag(parts.retriever, parts.reranker, generator, settings.candidates, settings.top_k)
