"""The protocol of a run's values, as gates read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

SliceLabels = Mapping[str, str]


class SuiteScores(Protocol):
    """The values of a suite: of an experiment or of ``golden``. An empty slice means all cases.

    A case that raised or was lost to a crash has the measure's worst value. A case that the measure does not apply to,
    or that could not be measured, has none.
    """

    def total_of(self, where: SliceLabels, /) -> int:
        """Count the cases in the data."""
        ...

    def selected_of(self, where: SliceLabels, /) -> int:
        """Count the cases that this run was to look at, lost ones included."""
        ...

    def lost_of(self, where: SliceLabels, /) -> int:
        """Count the cases that were lost to a crash."""
        ...

    def values(self, measure: str, where: SliceLabels, /) -> Mapping[str, float]:
        """Return the value of each case by its id."""
        ...

    def absent(self, measure: str, where: SliceLabels, /) -> Mapping[str, int]:
        """Count the selected cases without a value, by the reason: "no ground truth"."""
        ...

    def unmeasured(self, measure: str, where: SliceLabels, /) -> int:
        """Count the selected cases without a value that have an answer, and that the measure applies to."""
        ...

    def left_out(self, measure: str, where: SliceLabels, /) -> Mapping[str, int]:
        """Count the cases whose answer gave nothing to measure, though the question allows the measure, by the reason.

        They are neither measured nor unmeasured: an answer that declines claims nothing.
        """
        ...

    def outcomes(self, where: SliceLabels, /) -> Mapping[str, int]:
        """Return a digest of each case's row. A case with equal digests has equal scores, times and costs aside."""
        ...

    @property
    def depth(self) -> int | None:
        """The highest number of hits of a case; None where nothing was retrieved, or the number is not known."""
        ...
