"""What the rows of a suite add up to, gathered row by row."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from math import inf

import numpy as np

from rag_harness.results.row import ExperimentResult
from rag_harness.types import SERVICE

STAGES = {
    "total": "total_time_ms",
    "retrieve": "retrieval_time_ms",
    "rerank": "rerank_time_ms",
    "model call": "llm_time_ms",
    "first token": "ttft_ms",
}
MOST_ERRORS = 5
_LONGEST_WHY = 200


class Totals:
    """Counts, sums and times of the rows of a suite.

    Attributes:
        times: milliseconds of each stage by case, shape (cases,); NaN where there is none.
        new: whether this run itself asked for the answer of a case, shape (cases,): neither resumed nor replayed.
        depth: the most hits that a row has.
        models: how many answers each model gave; "" is a pipeline that names none.
        placed: of a service, by what the documents of so many contexts were found: id, text, nothing.
    """

    def __init__(self, cases: int) -> None:
        self.times = {stage: np.full(cases, np.nan) for stage in STAGES}
        self.new = np.zeros(cases, dtype=np.bool_)
        self.rows = self.errors = self.resumed = self.replayed = self.abstained = self.depth = 0
        self.prompt_tokens = self.completion_tokens = self.calls = 0
        self.cost_usd: float | None = None
        self.paid_usd = self.waited_ms = 0.0
        self.retries = 0
        self.began, self.ended = inf, -inf
        self.models: Counter[str] = Counter()
        self.placed: Counter[str] = Counter()
        self.first_errors: list[tuple[str, str]] = []
        self.retrieves = self.answers = False

    def add(self, row: ExperimentResult, position: int, hits: int, resumed: bool) -> None:
        """Count the row of the case at ``position``, with so many hits."""
        self.rows += 1
        self.resumed += resumed
        self.replayed += row.timings_recorded
        self.abstained += row.abstained
        self._spend(row)
        self._outcome(row)
        self.depth = max(self.depth, hits)
        self.retrieves |= bool(hits) or row.retrieval_time_ms is not None
        for stage, field in STAGES.items():
            value = getattr(row, field)
            self.times[stage][position] = np.nan if value is None else value
        if not resumed and not row.timings_recorded and row.finished_at:
            self._pace(row, position)

    def _spend(self, row: ExperimentResult) -> None:
        self.prompt_tokens += row.usage.prompt_tokens
        self.completion_tokens += row.usage.completion_tokens
        self.calls += row.usage.calls
        if row.cost_usd is not None:
            self.cost_usd = (self.cost_usd or 0.0) + row.cost_usd

    @property
    def tokens(self) -> int:
        """All tokens of prompts and answers."""
        return self.prompt_tokens + self.completion_tokens

    def _outcome(self, row: ExperimentResult) -> None:
        if row.ok:
            # What declined without a model is no answer of a model without a name.
            if row.model or not row.abstained:
                self.models[row.model] += 1
            self.answers |= bool(row.llm_answer.strip())
            for stage in row.stages:
                if any(call.role == SERVICE for call in stage.calls):
                    self.placed.update(stage.detail.get("placed", {}))
            return
        self.errors += 1
        if len(self.first_errors) < MOST_ERRORS:
            self.first_errors.append((row.trial_id, row.why[:_LONGEST_WHY]))

    def _pace(self, row: ExperimentResult, position: int) -> None:
        self.new[position] = True
        self.retries += row.retries
        self.waited_ms += row.waited_ms
        self.paid_usd += row.cost_usd or 0.0
        end = datetime.fromisoformat(row.finished_at).timestamp()
        self.ended = max(self.ended, end)
        self.began = min(self.began, end - (row.total_time_ms + row.waited_ms) / 1000)
