"""E1: no retrieval; the model answers from its own knowledge."""

from __future__ import annotations

from dataclasses import dataclass

from rag_harness.pipelines.generation import Generator
from rag_harness.pipelines.parts import RunParts
from rag_harness.pipelines.trace import Trace
from rag_harness.protocols import Experiment
from rag_harness.types import PipelineOutput, Query


@dataclass(frozen=True)
class Baseline:
    """Asks the model and nothing else."""

    generator: Generator

    async def answer(self, query: Query) -> PipelineOutput:
        return await self.generator.answer(query, Trace())


def build(parts: RunParts) -> Experiment:
    """Return this experiment."""
    return Experiment("e1", Baseline(Generator(parts.chat(), parts.prompts("e1"))))
