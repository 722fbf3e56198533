"""What a configuration finds, without an answer: no model is called. One ranking serves every ``top_k``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from rag_harness.derived.tuning.contenders import Contender
from rag_harness.pipelines.configured.experiment import ConfiguredRag
from rag_harness.pipelines.trace import Trace
from rag_harness.protocols import Experiment, Pipeline, Retriever
from rag_harness.results.row import ExperimentResult
from rag_harness.types import Answer, Message, PipelineOutput, Query


@dataclass(frozen=True)
class NoAnswer:
    """Stands in for a generator: what was found is all."""

    async def answer(self, query: Query, trace: Trace, said_before: tuple[Message, ...] = ()) -> PipelineOutput:  # noqa: ARG002
        """Return what was found."""
        return replace(trace.output(Answer("")), retrieval_only=True)


@dataclass(frozen=True)
class RetrieveStep:
    """The retrieve step of an experiment alone."""

    retriever: Retriever
    k: int

    async def answer(self, query: Query) -> PipelineOutput:
        trace = Trace()
        await trace.retrieve(self.retriever, query.text, self.k)
        trace.context = trace.retrieved
        return replace(trace.output(Answer("")), retrieval_only=True)


def ranking_of(built: Experiment, name: str, k: int) -> Experiment:
    """Return an experiment that finds what ``built`` finds, the best ``k``, and answers nothing."""
    pipeline: Pipeline
    if isinstance(built.pipeline, ConfiguredRag):
        pipeline = replace(built.pipeline, generator=NoAnswer(), top_k=k)  # type: ignore[arg-type]
    else:
        assert built.retriever is not None
        pipeline = RetrieveStep(built.retriever, k)
    return replace(built, id=name, pipeline=pipeline, ingredients={**built.ingredients, "ranked": k})


def with_top_k(row: ExperimentResult, candidate: Contender) -> ExperimentResult:
    """Return the row of a ranking as that of a configuration, with as many chunks as it gives to a model."""
    changed: dict[str, Any] = {"retrieved_chunks": row.retrieved_chunks[: candidate.top_k]}
    if not candidate.values.get("rerank"):
        changed["candidates"] = row.candidates[: candidate.top_k]
    return row.model_copy(update=changed)
