"""Sorts the measures of two runs by what became of them: changed, not surely changed, the same in every case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rag_harness.report.comparison import Comparison, MeasureChange, unit_named

_LEADING = (
    "error_rate", "answer_correctness", "expectations", "g_mean", "faithfulness", "factuality", "recall@5",
    "evidence_recall", "mrr@10", "token_f1",
)  # fmt: skip
"""The measures that are named first, the most telling first. Others follow by their p."""
_SPENT = ("ms", "usd", "tokens")
FEWEST = 6
"""Fewer cases never reach p <= 5 %: of 5 cases that all rose, 2 of 32 sign flips give as large a change."""


@dataclass(frozen=True, slots=True)
class RunDiff:
    """The measures of two runs by what became of them, the most telling first.

    Attributes:
        answers: changes that chance hardly explains, of what the answers are worth.
        spent: the same, of time, tokens and money.
        unsure: measures that differ by no more than chance explains.
        same: measures with the same value in every case.
        found: the comparison that they are of.
    """

    answers: Sequence[MeasureChange]
    spent: Sequence[MeasureChange]
    unsure: Sequence[MeasureChange]
    same: Sequence[MeasureChange]
    found: Comparison

    @property
    def suites(self) -> list[str]:
        """The suites that are compared."""
        return list(dict.fromkeys(change.suite for change in self.found.changes))

    def changed(self, suite: str) -> bool:
        """Whether a measure of a suite has changed more than chance explains."""
        return any(change.suite == suite for change in (*self.answers, *self.spent))

    def rows(self, suite: str) -> list[MeasureChange]:
        """Return the measures of a suite that differ; those that chance hardly explains come first."""
        by_p = sorted(self.unsure, key=p_of)
        return [change for change in (*self.answers, *self.spent, *by_p) if change.suite == suite]

    def same_of(self, suite: str) -> list[str]:
        """Return the measures of a suite that have the same value in every case."""
        return [change.measure for change in self.same if change.suite == suite]

    @property
    def worse_talks(self) -> list[MeasureChange]:
        """For each suite with conversations that got worse, the measure that shows it: a surely worse one if any."""
        changes = [change for change in (*self.answers, *self.leading) if _has_worse(change)]
        # An error counts as the worst on every measure, so the others show its conversations, too.
        ordered = sorted(changes, key=lambda each: (not each.is_surely_worse, each.measure == "error_rate"))
        first: dict[str, MeasureChange] = {}
        for change in ordered:
            first.setdefault(change.suite, change)
        return list(first.values())

    @property
    def leading(self) -> Sequence[MeasureChange]:
        """What is not surely changed, the most telling first."""
        return sorted((*self.unsure, *self.same), key=_order)


def run_diff(found: Comparison) -> RunDiff:
    """Sort the changes of a comparison by what became of them."""
    ordered = sorted(found.changes, key=_order)
    sure = [change for change in ordered if change.is_sure]
    unsure = [change for change in ordered if not (change.is_sure or change.is_same)]
    answers = [change for change in sure if unit_named(change.measure) not in _SPENT]
    spent = [change for change in sure if unit_named(change.measure) in _SPENT]
    return RunDiff(answers, spent, unsure, [change for change in ordered if change.is_same], found)


def _order(change: MeasureChange) -> tuple[int, float, str, str]:
    place = _LEADING.index(change.measure) if change.measure in _LEADING else len(_LEADING)
    return place, p_of(change), change.suite, change.measure


def _has_worse(change: MeasureChange) -> bool:
    is_spent = unit_named(change.measure) in _SPENT
    return not is_spent and change.conversations is not None and bool(change.conversations.worse)


def p_of(change: MeasureChange) -> float:
    """Return p; 1 where every case is the same."""
    return 1.0 if change.p is None else change.p
