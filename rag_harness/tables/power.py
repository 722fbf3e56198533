"""The power of a run: differences that it can detect, and the cases that a difference needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, count
from math import ceil, isfinite

from rag_harness.core.errors import DataError, PrerequisiteError, unknown
from rag_harness.core.types import GOLDEN
from rag_harness.evaluation.measures import is_judged, measure_named
from rag_harness.runs.gates.evidence import span_of
from rag_harness.stats.inputs import UndefinedError, differences, in_both
from rag_harness.stats.paired_tests import spread_of
from rag_harness.stats.sample_size import BoundReach
from rag_harness.tables.baseline import SavedRun, SavedSuite
from rag_harness.tables.pairwise import ALPHA, cut, measure_said
from rag_harness.tables.summary import table
from rag_harness.tables.wording import better_named

USUAL_MEASURES = ("recall@5", "mrr@10", "token_f1")
"""Measures that are shown for a run without judgements."""


@dataclass(frozen=True, slots=True)
class Power:
    """The power of n cases on a measure: of one experiment against a threshold, or of two over the same cases.

    ``detectable`` and ``needed`` are None where the values do not show the variance of others; ``reason`` says why.
    ``robust`` is the number of cases that a comparison without assumptions needs; None where there are not two
    experiments, or the measure has no range.
    """

    name: str
    measure: str
    slice: str
    n: int
    sd: float | None = None
    detectable: float | None = None
    needed: int | None = None
    robust: int | None = None
    reason: str = ""
    clusters: int = 0

    def cells(self) -> list[str]:
        """Return the row of the table."""
        figures = [f"{value:.3f}" if value is not None else "-" for value in (self.sd, self.detectable)]
        needed = [f"{cases:,}" if cases is not None else "-" for cases in (self.needed, self.robust)]
        counted = f"{self.n} in {self.clusters}" if self.clusters else str(self.n)
        return [self.name, measure_said(self.measure), self.slice or "all", counted, *figures, *needed]


def power_lines(run: SavedRun, difference: float = 0.05, measures: Sequence[str] = (), key: str = "") -> list[str]:
    """Return the table and its remarks, at most 100 columns wide.

    Raises:
        DataError: the difference, a measure or the slice key is not possible; says which are.
    """
    found = power(run, difference, measures, key)
    head = ["", "measure", "slice", "n", "sd", "detects", f"for {difference:g}", "robust"]
    reasons = {f"{each.name}, {measure_said(each.measure)}: {each.reason}": None for each in found if each.reason}
    lines = [
        "gates @95%, passed in 80 % of runs; detects: the smallest difference that n cases show;",
        f"for {difference:g}: cases that such a difference needs. e3: above a threshold; e3 - e2: e3 > e2, same cases",
        "robust: cases for e3 > e2 @95% robust, which holds also where a rare, large difference was missed",
        *(["n: cases, on so many pages or in so many other clusters"] if any(each.clusters for each in found) else []),
        *table([head, *(each.cells() for each in found)]),
        *reasons,
    ]
    return [cut(line) for line in lines]


def power(run: SavedRun, difference: float, measures: Sequence[str] = (), key: str = "") -> list[Power]:
    """Return the power for each measure and slice, of each suite and of each pair of suites over the same cases.

    Raises:
        DataError: the difference, a measure or the slice key is not possible; says which are.
    """
    chosen = _measures(run, measures)
    _check_difference(difference, chosen)
    slices = [{key: value} for value in _slices(run, key)] if key else [{}]
    suites = sorted(run.suites.items())
    found = [(name, [suite], run.clusters.get(name)) for name, suite in suites]
    experiments = [(name, suite) for name, suite in suites if name != GOLDEN]
    pairs = combinations(experiments, 2)
    found += [(f"{b} - {a}", [second, first], run.clusters.get(b)) for (a, first), (b, second) in pairs]
    asked = [(measure, where) for measure in chosen for where in slices]
    rows = [_power(name, sides, *each, difference, clusters) for name, sides, clusters in found for each in asked]
    return [row for row in rows if row.n]


def _power(
    name: str,
    sides: Sequence[SavedSuite],
    measure: str,
    where: Mapping[str, str],
    difference: float,
    clusters: Mapping[str, str] | None,
) -> Power:
    values = [suite.values(measure, where) for suite in sides]
    common = [case for case in values[0] if case in values[-1]]
    alike = [clusters[case] for case in common] if clusters else None
    row = Power(name, measure, next(iter(where.values()), ""), len(common), clusters=len(set(alike or ())))
    columns = [[side[case] for case in common] for side in values]
    if not common:
        return row
    try:
        sd = spread_of(*columns)
    except UndefinedError as why:
        return replace(row, reason=f"{why}, so nothing tells how others would spread")
    reach, robust = _reach(columns, measure, alike), None
    if len(columns) > 1 and _is_share(measure):
        robust = _reach(columns, measure, alike, is_robust=True).cases(difference)
    detectable, needed = reach.of(row.n), reach.cases(difference)
    reason = "" if needed else f"no number of cases shows a difference of {difference:g}"
    seen = detectable if isfinite(detectable) else None
    return replace(row, sd=sd, detectable=seen, needed=needed, robust=robust, reason=reason)


def _reach(
    columns: Sequence[Sequence[float]], measure: str, clusters: Sequence[str] | None, *, is_robust: bool = False
) -> BoundReach:
    """Return the reach of a gate's bound, on the side where the measure is better."""
    is_difference = len(columns) > 1
    values = [a - b for a, b in zip(*columns, strict=True)] if is_difference else list(columns[0])
    span = span_of(values, "share" if _is_share(measure) else "", is_difference)
    if better_named(measure) == "lower":
        values, span = [-value for value in values], (-span[1], -span[0]) if span else None
    return BoundReach(values, span, is_difference=is_difference and not is_robust, clusters=clusters)


def _measures(run: SavedRun, named: Sequence[str]) -> list[str]:
    known = list(dict.fromkeys(measure for suite in run.suites.values() for measure in suite.measures()))
    for name in named:
        if name not in known:
            raise DataError(f"{unknown('measure', name, known)} The run has no values of it.")
    judged = [name for name in known if is_judged(name)]
    return list(named) or judged or [name for name in USUAL_MEASURES if name in known] or known


def _check_difference(difference: float, measures: Sequence[str]) -> None:
    if not (isfinite(difference) and difference > 0):
        raise DataError(f"--difference {difference:g} is none: name one above 0, e.g. --difference 0.05.")
    shares = [name for name in measures if _is_share(name)]
    if difference > 1 and shares:
        raise DataError(f"--difference {difference:g}: no two means of {shares[0]}, a share, differ by more than 1.")


def _is_share(name: str) -> bool:
    try:
        return measure_named(name).unit == "share"
    except PrerequisiteError:
        return False  # a measure that is not registered here


def _slices(run: SavedRun, key: str) -> Iterator[str]:
    cases = [case.slices for suite in run.suites.values() for case in suite.cases.values()]
    values = sorted({slices[key] for slices in cases if key in slices})
    if not values:
        known = sorted({name for slices in cases for name in slices})
        raise DataError(unknown("slice key", key, known))
    yield from values


# How many cases a change between two runs needs to be sure, and which p so many cases can reach at best.

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
        from rag_harness.stats.sample_size import BoundReach

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
