"""Sums over the rows of a suite, gathered block by block."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from math import inf

import numpy as np
import numpy.typing as npt

from rag_harness.report.blocks.block import Mask, RowBlock
from rag_harness.report.origins import Origins
from rag_harness.words.chance import without_chance

STAGES = {
    "total": "total_time_ms",
    "retrieve": "retrieval_time_ms",
    "rerank": "rerank_time_ms",
    "model call": "llm_time_ms",
    "first token": "ttft_ms",
}
MOST_ERRORS = 5
Rows = npt.NDArray[np.intp]
"""Positions in a block, in its order."""


class Totals:
    """Counts, sums and times of the rows of a suite.

    Attributes:
        times: milliseconds of each stage by case, shape (cases,); NaN where there is none.
        recorded: whether the times of a case's answer are those of a recorded call, shape (cases,).
        new: whether this run made the answer of a case itself, shape (cases,): it is neither resumed nor replayed, nor
            declined without a model.
        outcomes: digest of what scores are made of, by case, shape (cases,); 0 where there is no row.
        evasive: number of answers that read like refusals and are not counted as ones.
        depth: highest number of hits of a row.
        models: number of answers of each model; "" is a pipeline that names none.
        origins: where the answers come from.
        first_errors: id and error of the first trials without an answer.
        alike_errors: number of trials of each error, of the first few errors that differ by more than chance.
        retrieves: whether it says that it retrieves, or an answer came with a context.
        says_retrieval: whether it says that it retrieves; None where it does not say.
        placed: for a service, the number of context documents that were found by id, by text, or not at all.
    """

    def __init__(self, cases: int) -> None:
        self.times: dict[str, npt.NDArray[np.float64]] = {stage: np.full(cases, np.nan) for stage in STAGES}
        self.recorded: npt.NDArray[np.bool_] = np.zeros(cases, dtype=np.bool_)
        self.new: npt.NDArray[np.bool_] = np.zeros(cases, dtype=np.bool_)
        self.outcomes: npt.NDArray[np.int64] = np.zeros(cases, dtype=np.int64)
        self.rows: int = 0
        self.errors: int = 0
        self.resumed: int = 0
        self.replayed: int = 0
        self.abstained: int = 0
        self.evasive: int = 0
        self.depth: int = 0
        self.prompt_tokens: int = 0
        self.completion_tokens: int = 0
        self.calls: int = 0
        self.cost_usd: float | None = None
        self.paid_usd: float = 0.0
        self.waited_ms: float = 0.0
        self.longest_wait_ms: float = 0.0
        self.retries: int = 0
        self.began: float = inf
        self.ended: float = -inf
        self.models: Counter[str] = Counter()
        self.placed: Counter[str] = Counter()
        self.first_errors: list[tuple[str, str]] = []
        self.alike_errors: dict[str, int] = {}
        self._first_alike: dict[str, str] = {}
        self.origins: Origins = Origins()
        self.retrieves: bool = False
        self.says_retrieval: bool | None = None
        self.answers: bool = False

    @property
    def answered(self) -> int:
        """Number of rows with an answer and no error."""
        return self.rows - self.errors

    def take(self, block: RowBlock, rows: Rows, resumed: Mask) -> None:
        """Count some rows of a block. ``resumed``, of shape (cases,), marks those of an earlier run."""
        positions, of_old = block["position"][rows], resumed[block["position"][rows]]
        self.outcomes[positions] = block["outcome"][rows]
        self.rows += len(rows)
        self.resumed += int(of_old.sum())
        self.recorded[positions] = block["replayed"][rows]
        self.replayed += int(block["replayed"][rows].sum())
        is_ok, is_replayed = block["ok"][rows], block["replayed"][rows]
        is_computed = block["computed"][rows]
        is_declined = is_ok & is_computed & block["abstained"][rows] & (block["calls"][rows] == 0)
        when = block["ended"][rows], block["recorded"][rows]
        self.origins.take(*when, is_ok, is_replayed, of_old, is_computed, is_declined)
        self.abstained += int(block["abstained"][rows].sum())
        self.evasive += int(block["evades"][rows].sum())
        self._spend(block, rows)
        self._outcome(block, rows)
        self.depth = max(self.depth, int(block["hits"][rows].max(initial=0)))
        self.retrieves |= bool(block["retrieves"][rows].any())
        if self.says_retrieval is None and block["says"][rows].any():
            self.says_retrieval = self.retrieves
        for stage, times in self.times.items():
            times[positions] = block[f"ms {stage}"][rows]
        self._pace(block, rows[~of_old & ~is_replayed & ~is_declined & ~np.isnan(block["ended"][rows])])

    def _spend(self, block: RowBlock, rows: Rows) -> None:
        self.prompt_tokens += int(block["prompt_tokens"][rows].sum())
        self.completion_tokens += int(block["completion_tokens"][rows].sum())
        self.calls += int(block["calls"][rows].sum())
        costs = block["cost"][rows]
        if not np.isnan(costs).all():
            self.cost_usd = _added(self.cost_usd or 0.0, costs)

    @property
    def tokens(self) -> int:
        """All tokens of prompts and answers."""
        return self.prompt_tokens + self.completion_tokens

    def _outcome(self, block: RowBlock, rows: Rows) -> None:
        ok = block["ok"][rows]
        self.errors += int(len(rows) - ok.sum())
        self.answers |= bool(block["answers"][rows].any())
        models, texts = block["model"][rows], block.texts
        numbered, times = np.unique(block["version"][rows], return_counts=True)
        self.origins.versions += Counter(
            {texts.versions[n]: int(count) for n, count in zip(numbered, times, strict=True) if texts.versions[n]}
        )
        numbers, first, counts = np.unique(models[models >= 0], return_index=True, return_counts=True)
        for place in np.argsort(first):
            self.models[texts.models[numbers[place]]] += int(counts[place])
        taken = np.zeros(len(block), np.bool_)
        taken[rows] = True
        for row, kind, count in block["placed"].tolist():
            if taken[row]:
                self.placed[texts.placed[kind]] += count
        errors = [(trial, why) for row, trial, why in texts.errors if taken[row]]
        self.first_errors += islice(errors, MOST_ERRORS - len(self.first_errors))
        for _, why in errors:
            shown = self._first_alike.setdefault(without_chance(why), why)
            if shown in self.alike_errors or len(self.alike_errors) < MOST_ERRORS:
                self.alike_errors[shown] = self.alike_errors.get(shown, 0) + 1

    def _pace(self, block: RowBlock, rows: Rows) -> None:
        if not len(rows):
            return
        self.new[block["position"][rows]] = True
        waited, ended = block["waited"][rows], block["ended"][rows]
        self.retries += int(block["retries"][rows].sum())
        self.waited_ms = _added(self.waited_ms, waited)
        self.longest_wait_ms = max(self.longest_wait_ms, float(np.nan_to_num(waited).max()))
        self.paid_usd = _added(self.paid_usd, block["cost"][rows])
        self.ended = max(self.ended, float(ended.max()))
        self.began = min(self.began, float((ended - (block["ms total"][rows] + waited) / 1000).min()))


def _added(start: float, values: npt.NDArray[np.float64]) -> float:
    """Add the values one by one, so that the sum does not depend on where blocks end."""
    return float(np.add.accumulate(np.concatenate([[start], values[~np.isnan(values)]]))[-1])
