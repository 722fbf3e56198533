"""Measures of conversations that a simulated user plays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_harness.measures.expectation_measures import numbers_kept
from rag_harness.measures.measure import Need, RowMeasure, Score

if TYPE_CHECKING:
    from rag_harness.results.row import ExperimentResult
    from rag_harness.types import Case

KEPT = "kept"
"""The note of a turn's user stage: which of the scenario's ``reached`` earlier answers have kept, from 0."""


class GoalReached(RowMeasure):
    """1 where the answers of a conversation have reached the goal of its simulated user, and 0 where not.

    The goal is reached when each of the scenario's ``reached`` was kept by some answer. A conversation has one value,
    which stands at its first turn.
    """

    called, of_conversation, looks_by_expectations = "goal_reached", True, True
    needs: tuple[Need, ...] = ("answer",)

    def applies(self, case: Case) -> str:
        """Return why there is no goal that could be reached."""
        if case.scenario is None:
            return "no simulated user asks it"
        return "" if case.scenario.reached else "its scenario does not say when the goal is reached"

    def score(self, case: Case, row: ExperimentResult) -> Score:
        """Return whether the goal was reached by the end of this turn."""
        assert case.scenario is not None
        before = row.user.detail.get(KEPT, ()) if row.user is not None else ()
        kept = {*before, *numbers_kept(case, row, case.scenario.reached)}
        left = [str(each) for number, each in enumerate(case.scenario.reached) if number not in kept]
        return Score(float(not left), f"no answer has kept {'; '.join(left)}" if left else "")
