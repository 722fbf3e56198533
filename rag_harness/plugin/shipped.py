"""The result of a trial on its way from its test to the writer of the result files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rag_harness.results.row import ExperimentResult


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
    """A trial that was not run, with the reason."""

    reason: str
