"""Verdicts by evidence: a confidence bound of the value must clear the threshold, not the value alone.

A gate passes where both bounds are on the right side of the threshold, and fails where both are on the wrong side. Else
it is undecided, and the verdict says what would settle it. Each bound holds by itself with the gate's confidence.
NumPy is imported when such a gate is judged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import fsum, isfinite
from typing import TYPE_CHECKING

from rag_harness.gates.bounds import Clusters, Population, ValuesAndTarget, bounds_of, clusters_of, is_paired, span_of
from rag_harness.gates.cluster_names import describe_one_cluster, kind_of_cluster
from rag_harness.gates.grammar import Gate, Reference
from rag_harness.gates.units import told_apart
from rag_harness.gates.verdict import Interval, Verdict, VerdictState, equal, meets_threshold

if TYPE_CHECKING:
    from collections.abc import Hashable

_OF_THEIR_OWN = {"conversations": "in conversations", "pages": "on pages", "clusters": "in clusters"}
_OPPOSITE = {">=": "<", ">": "<=", "<=": ">", "<": ">="}


def how_to_review(suite: str) -> str:
    """Say how the questions of a suite are reviewed, where their file is not known."""
    return f"read the questions of {suite}, and set reviewed to yes"


def _none_skipped(_: str) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class GateRules:
    """How gates are judged.

    Unreviewed questions do not count unless ``counts_drafts``; ``review`` says how the questions of a suite are
    reviewed. ``max_unmeasured`` is the highest share of measurable cases that may be without a value. ``clusters``
    returns the cluster of each case; ``cluster`` is the label whose values they are, where somebody has named one.
    ``settled`` maps gates that were stopped early to their state and the reason; cases that they did not need are not
    missing. ``chosen`` says how the cases of a partial run were chosen. ``skipped`` says which lines of a suite's
    questions could not be used and were left out; empty if none were.
    """

    max_unmeasured: float = 1.0
    population: Population = "like"
    counts_drafts: bool = False
    review: Callable[[str], str] = how_to_review
    cluster: str = ""
    clusters: Clusters | None = None
    settled: Mapping[Gate, tuple[VerdictState, str]] = field(default_factory=dict)
    chosen: str = "selected"
    skipped: Callable[[str], str] = _none_skipped


def weighed(point: Verdict, found: ValuesAndTarget, rules: GateRules, unit: str) -> Verdict:
    """Return the verdict by evidence where the gate asks for it, else ``point``, the verdict by the value alone."""
    if point.gate in rules.settled:
        state, said = rules.settled[point.gate]
        return _with_reason(replace(point, state="failed" if found.lost else state), said)
    if point.gate.confidence is None:
        return point
    if point.gate.quantile is not None and isinstance(point.gate.right, Reference):
        return _with_reason(point, "by the value alone: a quantile against another has no bounds")
    from rag_harness.stats.inputs import UndefinedError

    try:
        low, high, how = bounds_of(point.gate, found, rules, unit, point.gate.confidence / 100)
    except UndefinedError as why:
        alike = clusters_of(point.gate.suite, found.values, rules) or ()
        said = describe_one_cluster(alike, rules.cluster) or str(why)
        return _with_reason(replace(point, state="failed" if found.lost else "undecided"), said)
    bounds = (low, high)
    state = decided(bounds, point.gate.op, found.target)
    cases = _cases(point.gate, rules, found.population)
    more = _more(point.gate, found, unit, rules) if state == "undecided" else ""
    by = f", {how}" if how else ""
    said = f"{bound_said(bounds, point.gate, found.target, unit, state)} for {cases}{by}{more}"
    return _with_reason(replace(point, state="failed" if found.lost else state, bounds=bounds), said)


def decided(bounds: Interval, op: str, target: float) -> VerdictState:
    """Return passed where both bounds are on the side that the operator asks for, failed where neither is."""
    low, high = bounds
    worst, best = (low, high) if ">" in op else (high, low)
    if meets_threshold(worst, op, target):
        return "passed"
    return "failed" if meets_threshold(best, _OPPOSITE[op], target) else "undecided"


def by_bounds(point: Verdict, bounds: Interval, lost: bool, unit: str, remedy: str) -> Verdict:
    """Return the verdict by given bounds, e.g. of a calibrated mean. ``remedy`` says what would settle it."""
    threshold = point.threshold or 0.0
    state = decided(bounds, point.gate.op, threshold)
    said = f"{bound_said(bounds, point.gate, threshold, unit, state)} for {point.gate.counts} like these"
    said += f"; {remedy}" if state == "undecided" else ""
    return _with_reason(replace(point, state="failed" if lost else state, bounds=bounds), said)


def _cases(gate: Gate, rules: GateRules, population: int) -> str:
    return f"these {population} {gate.counts}" if rules.population == "finite" else f"{gate.counts} like these"


def bound_said(
    bounds: Interval, gate: Gate, target: float, unit: str, state: VerdictState, between: str = "{} to {}"
) -> str:
    """Say which bound decides, e.g. ``at least 0.502``; both, as ``between`` says, where they leave the gate open."""
    low, high = (_shown(end, target, unit) for end in bounds)
    if state == "undecided":
        said = between.format(low, high)
    else:
        said = f"at least {low}" if (state == "passed") == (">" in gate.op) else f"at most {high}"
    difference = "difference " if isinstance(gate.right, Reference) else ""
    return f"{difference}{said}"


def _shown(end: float, target: float, unit: str) -> str:
    return told_apart(end, target, unit, equal(end, target))[0] if isfinite(end) else "…"


def _more(gate: Gate, found: ValuesAndTarget, unit: str, rules: GateRules) -> str:
    """Say how many more cases would settle the gate."""
    clusters = clusters_of(gate.suite, found.values, rules)
    number = _needed(gate, found, unit, clusters)
    left = found.population - len(found.values)
    if rules.population == "finite":
        number = min(number or left, left)
        return f"; {number:,} of the other {left:,} would settle it"
    if number is None:
        return "; at the threshold no number of cases would settle it"
    own = f", {_OF_THEIR_OWN[kind_of_cluster(clusters)]} of their own," if clusters else ""
    return f"; about {number:,} more{own} would settle it"


def _needed(gate: Gate, found: ValuesAndTarget, unit: str, clusters: Sequence[Hashable] | None) -> int | None:
    """Return how many more cases, like the present ones, settle the gate with a power of 80 %."""
    from rag_harness.stats.settling import BoundReach

    values, target = list(found.values.values()), found.target
    span = span_of(values, unit, is_difference=isinstance(gate.right, Reference))
    if gate.quantile is not None:  # a quantile is compared by the share of cases below the target
        values, target, span = (
            [float(meets_threshold(v, "<=", target)) for v in values],
            gate.quantile / 100,
            (0.0, 1.0),
        )
    gap = fsum(values) / len(values) - target
    if gap < 0:
        values, span = [-value for value in values], (-span[1], -span[0]) if span else None
    reach = BoundReach(values, span, (gate.confidence or 0) / 100, is_difference=is_paired(gate), clusters=clusters)
    needed = reach.cases(abs(gap))
    return None if needed is None else max(needed - len(values), 1)


def _with_reason(verdict: Verdict, said: str) -> Verdict:
    return replace(verdict, reason=", ".join(part for part in (said, verdict.reason) if part))
