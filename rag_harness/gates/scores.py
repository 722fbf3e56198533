"""What a gate needs to know of the values of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

Slice = Mapping[str, str]


class SuiteScores(Protocol):
    """What a gate needs to know of a suite: an experiment or ``golden``. An empty slice means all of it.

    A case that raised or was lost to a crash is among the values, with the worst that the measure has; one that the
    measure does not apply to, or that could not be measured, is not.
    """

    def total_of(self, where: Slice, /) -> int:
        """Count the cases in the data."""
        ...

    def selected_of(self, where: Slice, /) -> int:
        """Count those that this run was to look at, lost ones included."""
        ...

    def lost_of(self, where: Slice, /) -> int:
        """Count those that a crash took."""
        ...

    def values(self, measure: str, where: Slice, /) -> Mapping[str, float]:
        """Return the value of each case by its id."""
        ...

    def absent(self, measure: str, where: Slice, /) -> Mapping[str, int]:
        """Count the selected cases without a value, by what they have: "no ground truth"."""
        ...

    def unmeasured(self, measure: str, where: Slice, /) -> int:
        """Count those of them that the measure applies to, and that have an answer."""
        ...

    @property
    def depth(self) -> int | None:
        """The most hits that a case has; None where nothing was retrieved, or that is not known."""
        ...
