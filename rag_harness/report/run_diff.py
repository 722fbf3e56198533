"""Sorts the measures of two runs by what became of them: changed, not surely changed, the same in every case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rag_harness.measures.correct import CORRECT
from rag_harness.report.cases_needed import least_p
from rag_harness.report.comparison import Comparison, MeasureChange, unit_named
from rag_harness.report.pairwise import ALPHA

_LEADING = (
    "error_rate", "correct", "answer_correctness", "expectations", "g_mean", "faithfulness", "factuality", "recall@5",
    "evidence_recall", "mrr@10", "token_f1",
)  # fmt: skip
"""The measures that are named first, the most telling first. Others follow by their p."""
_SPENT = ("ms", "usd", "tokens")
_OF_ONE = ("share", "score")
LARGE = 0.1
"""A large change: this much of a share or a score, and this part of the value before of anything else."""


@dataclass(frozen=True, slots=True)
class RunDiff:
    """The measures of two runs by what became of them, the most telling first.

    Attributes:
        answers: changes that chance hardly explains, of what the answers are worth.
        spent: the same, of time, tokens and money.
        unsure: measures that differ by no more than chance explains.
        seen: measures that differ, and that are not tested.
        same: measures with the same value in every case.
        found: the comparison that they are of.
    """

    answers: Sequence[MeasureChange]
    spent: Sequence[MeasureChange]
    unsure: Sequence[MeasureChange]
    seen: Sequence[MeasureChange]
    same: Sequence[MeasureChange]
    found: Comparison

    @property
    def moving(self) -> list[MeasureChange]:
        """Measures of which p and interval disagree about a change; those of the answers first."""
        found = [change for change in self.unsure if change.is_moving]
        return sorted(found, key=lambda each: (is_spent(each), _order(each)))

    @property
    def unsure_answers(self) -> list[MeasureChange]:
        """The measures of what the answers are worth that differ by no more than chance explains."""
        return [change for change in self.unsure if not is_spent(change)]

    @property
    def wide(self) -> list[MeasureChange]:
        """Those of ``unsure_answers`` whose interval does not rule out a large change, the most telling first."""
        return [change for change in self.unsure_answers if not _rules_out_large(change)]

    @property
    def can_be_sure(self) -> bool:
        """Whether p of any measure could be at most 5 %, whatever so many cases show."""
        return any(least_p(change.units, self.tests(change)) <= ALPHA for change in self.unsure)

    def tests(self, change: MeasureChange) -> int:
        """Return for how many measures p of a change is adjusted: the tested ones of its suite that differ."""
        return sum(each.suite == change.suite and each.is_tested and not each.is_same for each in self.found.changes)

    @property
    def suites(self) -> list[str]:
        """The suites that are compared."""
        return list(dict.fromkeys(change.suite for change in self.found.changes))

    def changed(self, suite: str) -> bool:
        """Whether a measure of a suite has changed more than chance explains."""
        return any(change.suite == suite for change in (*self.answers, *self.spent))

    def rows(self, suite: str) -> list[MeasureChange]:
        """Return the measures of a suite that differ: surely changed ones, other tested ones, then the rest."""
        by_p = sorted(self.unsure, key=p_of)
        return [change for change in (*self.answers, *self.spent, *by_p, *self.seen) if change.suite == suite]

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
        return sorted((*self.unsure, *self.seen, *self.same), key=_order)

    @property
    def moved(self) -> list[MeasureChange]:
        """For each suite where cases got better or worse, the measure that says which: ``correct`` if known."""
        first: dict[str, MeasureChange] = {}
        for change in sorted(self.found.changes, key=lambda each: (each.measure != CORRECT, not each.is_tested)):
            if change.gained or change.lost:
                first.setdefault(change.suite, change)
        return list(first.values())


def run_diff(found: Comparison) -> RunDiff:
    """Sort the changes of a comparison by what became of them."""
    ordered = sorted(found.changes, key=_order)
    sure = [change for change in ordered if change.is_sure]
    differing = [change for change in ordered if not (change.is_sure or change.is_same)]
    unsure = [change for change in differing if change.is_tested]
    seen = [change for change in differing if not change.is_tested]
    answers = [change for change in sure if not is_spent(change)]
    spent = [change for change in sure if is_spent(change)]
    return RunDiff(answers, spent, unsure, seen, [change for change in ordered if change.is_same], found)


def _order(change: MeasureChange) -> tuple[int, float, str, str]:
    place = _LEADING.index(change.measure) if change.measure in _LEADING else len(_LEADING)
    return place, p_of(change), change.suite, change.measure


def _has_worse(change: MeasureChange) -> bool:
    return not is_spent(change) and change.conversations is not None and bool(change.conversations.worse)


def is_spent(change: MeasureChange) -> bool:
    """Whether a measure is of time, tokens or money."""
    return unit_named(change.measure) in _SPENT


def is_of_one(change: MeasureChange) -> bool:
    """Whether a measure is a share or a score."""
    return unit_named(change.measure) in _OF_ONE


def large(change: MeasureChange) -> float:
    """Return from which size on a change of a measure is large, in the unit of the measure."""
    return LARGE if is_of_one(change) else LARGE * abs(change.before)


def _rules_out_large(change: MeasureChange) -> bool:
    return change.interval is not None and max(map(abs, change.interval)) < large(change)


def p_of(change: MeasureChange) -> float:
    """Return p; 1 where every case is the same."""
    return 1.0 if change.p is None else change.p
