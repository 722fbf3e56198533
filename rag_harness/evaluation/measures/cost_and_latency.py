"""Measures of a trial's time, cost and tokens."""

from __future__ import annotations

from typing import ClassVar

from rag_harness.core.types import Case
from rag_harness.evaluation.measures.measure import RowMeasure, Score
from rag_harness.records.row import ExperimentResult


class _Spent(RowMeasure):
    """Lower is better."""

    better = "lower"
    worst = None
    missing: ClassVar[str]

    def score(self, case: Case, row: ExperimentResult) -> Score:  # noqa: ARG002
        value = self.read(row)
        return Score(value, "" if value is not None else self.missing)

    def read(self, row: ExperimentResult) -> float | None:
        """Return the value in the row; None where it has none."""
        raise NotImplementedError


class TotalMs(_Spent):
    """Sum of the stages, without waiting for other trials in flight; wall time where no stage is timed."""

    called, unit, missing = "total_ms", "ms", "no time"

    def read(self, row: ExperimentResult) -> float | None:
        return row.total_time_ms


class RetrievalMs(_Spent):
    """Time of the first stage; where trials share a batch, a share of it."""

    called, unit, missing, needs = "retrieval_ms", "ms", "no time of a retrieval", ("retrieval",)

    def read(self, row: ExperimentResult) -> float | None:
        return row.retrieval_time_ms


class RerankMs(_Spent):
    """Time of the reranker; where trials share a batch, a share of it."""

    called, unit, missing, needs = "rerank_ms", "ms", "no time of a reranker", ("retrieval",)

    def read(self, row: ExperimentResult) -> float | None:
        return row.rerank_time_ms


class LlmMs(_Spent):
    """Time of all stages that asked a model; of a replayed answer, what the recorded calls took."""

    called, unit, missing, needs = "llm_ms", "ms", "no time of a model call", ("answer",)

    def read(self, row: ExperimentResult) -> float | None:
        return row.llm_time_ms


class TtftMs(_Spent):
    """Time to the first token."""

    called, unit, missing, needs = "ttft_ms", "ms", "no streamed answer", ("answer",)

    def read(self, row: ExperimentResult) -> float | None:
        return row.ttft_ms


class CostUsd(_Spent):
    """What the calls cost, for a replayed answer what the recorded ones did."""

    called, unit, missing, needs = "cost_usd", "usd", "no known price", ("answer",)

    def read(self, row: ExperimentResult) -> float | None:
        return row.cost_usd


class PromptTokens(_Spent):
    """Tokens of the prompts, as the models' servers counted them."""

    called, unit, missing, needs = "prompt_tokens", "tokens", "no counted tokens", ("answer",)

    def read(self, row: ExperimentResult) -> float | None:
        return row.usage.prompt_tokens if row.usage.calls else None


class CompletionTokens(_Spent):
    """Tokens of the answers, as the models' servers counted them."""

    called, unit, missing, needs = "completion_tokens", "tokens", "no counted tokens", ("answer",)

    def read(self, row: ExperimentResult) -> float | None:
        return row.usage.completion_tokens if row.usage.calls else None


class Tokens(_Spent):
    """Tokens of prompts and answers."""

    called, unit, missing, needs = "tokens", "tokens", "no counted tokens", ("answer",)

    def read(self, row: ExperimentResult) -> float | None:
        return row.usage.prompt_tokens + row.usage.completion_tokens if row.usage.calls else None
