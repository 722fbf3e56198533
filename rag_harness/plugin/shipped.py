"""The result of a trial on its way from its test to the writer of the result files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import pytest

if TYPE_CHECKING:
    from rag_harness.engine.trial import Ended
    from rag_harness.results.row import ExperimentResult
    from rag_harness.types import TrialId


RunAgainOn: TypeAlias = Literal["new", "same"]
"""Which answer a test that is run again looks at."""
FAILED: pytest.StashKey[bool] = pytest.StashKey()
"""Marks a test that has failed on a result: if it begins again, a plugin runs it again."""
RUN_AGAIN: pytest.StashKey[RunAgainOn] = pytest.StashKey()
"""Keeps what a test that is run again looks at. Both keys stand here, below those who use them."""


@dataclass(frozen=True)
class Shipped:
    """A result on its way from a test to the recorder.

    ``error`` is the exception that a debugger should see. ``critical``: no later trial can succeed either.
    """

    row: ExperimentResult
    resumed: bool = False
    error: Exception | None = None
    critical: bool = False


@dataclass(frozen=True)
class NotRun:
    """A trial that was not run, with the reason: or one whose conversation had ended before."""

    reason: str
    ended: Ended | None = None

    @property
    def said(self) -> str:
        """Why its test is skipped."""
        return f"ended {self.ended}" if self.ended else f"not run: {self.reason}"

    def on_report(self, trial: TrialId) -> dict[str, tuple[str | bool, ...]]:
        """Return what a test's report carries of it, in types that xdist can send."""
        if self.ended is None:
            return {"rag_not_run": (trial.experiment, trial.query_id, self.reason)}
        return {"rag_ended": ended_on_report(trial, self.ended)}


def ended_on_report(trial: TrialId, ended: Ended) -> tuple[str, str, str, bool]:
    """Return what a report carries of a turn that its user never came to: trial, reason, whether it left its role."""
    return trial.experiment, trial.query_id, str(ended), ended.out_of_role
