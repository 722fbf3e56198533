"""How many cases a change between two runs needs to be sure, and which p so many cases can reach at best."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from math import ceil

from rag_harness.gates.bounds import span_of
from rag_harness.report.baseline import SavedSuite
from rag_harness.report.pairwise import ALPHA
from rag_harness.stats.by_case import differences, in_both

_DRAWN, _LEAST_DRAWN = 14, 1 / 10_001
"""From so many cases signs are drawn (``permutation_test``), and no p is smaller."""


def least_p(cases: int, tests: int = 1) -> float:
    """Return the smallest p, adjusted by Holm, that ``tests`` permutation tests can have, whatever the cases show.

    The cases that all move the same way are the extreme one of 2 ** cases sign flips, on either side.
    """
    return min(1.0, tests * (_LEAST_DRAWN if cases >= _DRAWN else 2.0 ** (1 - max(cases, 1))))


def fewest_cases(tests: int) -> int | None:
    """Return with how many cases p can be at most 5 %, adjusted for ``tests``; None where no number is enough."""
    if least_p(_DRAWN, tests) > ALPHA:
        return None
    return next(cases for cases in count(1) if least_p(cases, tests) <= ALPHA)


@dataclass(frozen=True, slots=True)
class CasesNeeded:
    """Cases like those of two runs that show a difference of a measure in 80 % of runs, as ``rag-harness power``."""

    now: SavedSuite
    before: SavedSuite
    measure: str
    unit: str
    clusters: Mapping[str, str] | None

    def of(self, gap: float, tests: int) -> int | None:
        """Return the number of all cases for a difference of ``gap``, where ``tests`` measures are tested.

        None where no number shows it.
        """
        from rag_harness.stats.settling import BoundReach

        new, old = in_both(self.now.values(self.measure, {}), self.before.values(self.measure, {}))
        values = [*differences(new, old).values()]
        if sum(values) < 0:
            values = [-value for value in values]
        span = span_of(values, self.unit, is_difference=True)
        alike = [self.clusters[case] for case in new] if self.clusters else None
        reach = BoundReach(values, span, 1 - ALPHA / (2 * tests), is_difference=True, clusters=alike)
        found = reach.cases(gap)
        fewest, differing = fewest_cases(tests), sum(value != 0 for value in values)
        if found is None or fewest is None or not differing:
            return None
        return max(found, ceil(fewest * len(values) / differing))
