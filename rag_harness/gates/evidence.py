"""Verdicts that need evidence: a bound of the value must clear the threshold, not the value alone.

Passed where the bound on the threshold's side reaches it, failed where the other one lies beyond it, else inconclusive,
with what would settle it. Each bound holds by itself with the gate's confidence. NumPy is imported when one is judged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import TYPE_CHECKING, Literal, NamedTuple

from rag_harness.gates.grammar import Gate, Reference
from rag_harness.gates.units import told_apart
from rag_harness.gates.verdict import Interval, State, Verdict, equal, holds

if TYPE_CHECKING:
    from collections.abc import Hashable

Population = Literal["like", "finite"]
"""What a verdict is about: cases like these, or the cases of the suite and no others."""
Clusters = Callable[[str], Mapping[str, str]]
"""Gives the cluster of each case of a suite; "" is a cluster of its own."""
_OPPOSITE = {">=": "<", ">": "<=", "<=": ">", "<": ">="}


def how_to_review(suite: str) -> str:
    """Say how the questions of a suite are reviewed, where nobody knows their file."""
    return f"read the questions of {suite}, and set reviewed to yes"


@dataclass(frozen=True, slots=True)
class Rules:
    """How a gate is judged. Questions that nobody has reviewed decide nothing unless ``counts_drafts``; ``review`` says
    how those of a suite are reviewed.

    ``max_unmeasured`` is the share of cases that may be without a value, though they could have one. ``cluster`` names
    what makes cases alike, e.g. ``source_page``; ``clusters`` then says which case belongs where. ``settled`` are gates
    that needed no more cases, with their state and why: what was not asked for that reason is not missing.
    ``chosen`` says how the cases of a part were chosen.
    """

    max_unmeasured: float = 1.0
    population: Population = "like"
    counts_drafts: bool = False
    review: Callable[[str], str] = how_to_review
    cluster: str = ""
    clusters: Clusters | None = None
    settled: Mapping[Gate, tuple[State, str]] = field(default_factory=dict)
    chosen: str = "selected"


class Found(NamedTuple):
    """What a verdict hangs on: the value of each case, or its difference, held against ``target``."""

    values: Mapping[str, float]
    target: float
    population: int
    lost: bool


def weighed(point: Verdict, found: Found, rules: Rules, unit: str) -> Verdict:
    """Return the verdict with evidence in place of the one by value alone, where the gate asks for it."""
    if point.gate in rules.settled:
        state, said = rules.settled[point.gate]
        return _with_reason(replace(point, state="failed" if found.lost else state), said)
    if point.gate.confidence is None:
        return point
    if point.gate.quantile is not None and isinstance(point.gate.right, Reference):
        return _with_reason(point, "by the value alone: a quantile against another has no bounds")
    from rag_harness.stats.inputs import UndefinedError

    clusters = _clusters(point.gate, found, rules)
    try:
        bounds = _bounds(point.gate, found, rules, unit, clusters)
    except UndefinedError as why:
        return _with_reason(replace(point, state="failed" if found.lost else "inconclusive"), str(why))
    state = decided(bounds, point.gate.op, found.target)
    cases = _cases(rules, found.population, len(set(clusters)) if clusters else 0)
    more = _more(point.gate, found, bounds, clusters, rules) if state == "inconclusive" else ""
    said = f"{_said(bounds, point.gate, found.target, unit, state)} for {cases}{more}"
    return _with_reason(replace(point, state="failed" if found.lost else state, bounds=bounds), said)


def decided(bounds: Interval, op: str, target: float) -> State:
    """Return passed where both bounds are on the side that the operator asks for, failed where neither is."""
    low, high = bounds
    worst, best = (low, high) if ">" in op else (high, low)
    if holds(worst, op, target):
        return "passed"
    return "failed" if holds(best, _OPPOSITE[op], target) else "inconclusive"


def by_bounds(point: Verdict, bounds: Interval, lost: bool, unit: str, remedy: str) -> Verdict:
    """Return the verdict that bounds from elsewhere give, those of a calibrated mean; ``remedy`` would settle it."""
    threshold = point.threshold or 0.0
    state = decided(bounds, point.gate.op, threshold)
    said = f"{_said(bounds, point.gate, threshold, unit, state)} for cases like these"
    said += f"; {remedy}" if state == "inconclusive" else ""
    return _with_reason(replace(point, state="failed" if lost else state, bounds=bounds), said)


def _bounds(
    gate: Gate, found: Found, rules: Rules, unit: str, clusters: Sequence[Hashable] | None
) -> tuple[float, float]:
    from rag_harness.stats import mean_bounds, quantile, quantile_interval
    from rag_harness.stats.inputs import UndefinedError

    values, confidence = list(found.values.values()), (gate.confidence or 0) / 100
    population = found.population if rules.population == "finite" else None
    if gate.quantile is None:
        return mean_bounds(values, _span(gate, unit, values), confidence, clusters, population)
    if population == len(values):
        exact = quantile(sorted(values), gate.quantile / 100)
        return exact, exact
    if clusters is not None:
        raise UndefinedError(
            f"a quantile has no bounds by {rules.cluster}; ask for a mean, or leave --rag-cluster away"
        )
    return quantile_interval(values, gate.quantile / 100, 2 * confidence - 1)


def _span(gate: Gate, unit: str, values: Sequence[float]) -> tuple[float, float] | None:
    """Return the range of a share, or of the difference of two; None where a value lies outside, as no share does."""
    span = (-1.0, 1.0) if isinstance(gate.right, Reference) else (0.0, 1.0)
    return span if unit == "share" and span[0] <= min(values) <= max(values) <= span[1] else None


def _clusters(gate: Gate, found: Found, rules: Rules) -> list[Hashable] | None:
    if rules.clusters is None:
        return None
    known = rules.clusters(gate.suite)
    return [known.get(case) or (case,) for case in found.values]


def _cases(rules: Rules, population: int, clusters: int) -> str:
    if rules.population == "finite":
        return f"these {population} cases"
    return f"cases like these, of {clusters} clusters by {rules.cluster}" if clusters else "cases like these"


def _said(bounds: Interval, gate: Gate, target: float, unit: str, state: State) -> str:
    low, high = (_shown(end, target, unit) for end in bounds)
    if state == "inconclusive":
        said = f"{low} to {high}"
    else:
        said = f"at least {low}" if (state == "passed") == (">" in gate.op) else f"at most {high}"
    difference = "difference " if isinstance(gate.right, Reference) else ""
    return f"{difference}{said}"


def _shown(end: float, target: float, unit: str) -> str:
    return told_apart(end, target, unit, equal(end, target))[0] if isfinite(end) else "…"


def _more(gate: Gate, found: Found, bounds: Interval, clusters: Sequence[Hashable] | None, rules: Rules) -> str:
    """Say how many cases more would settle it."""
    number = _needed(gate, list(found.values.values()), found.target, bounds, clusters)
    left = found.population - len(found.values)
    if rules.population == "finite":
        number = min(number or left, left)
        return f"; {number} of the other {left} would settle it"
    if number is None:
        return "; at exactly the threshold no number of cases would settle it"
    return f"; about {number} more{', in clusters of their own,' if clusters else ''} would settle it"


def _needed(
    gate: Gate, values: Sequence[float], target: float, bounds: Interval, clusters: Sequence[Hashable] | None
) -> int | None:
    from rag_harness.stats.settling import more_to_settle, quantile_to_settle, spread_of

    confidence, n = (gate.confidence or 0) / 100, len(values)
    if gate.quantile is not None:
        below = sum(holds(value, "<=", target) for value in values) / n
        return quantile_to_settle(n, below, gate.quantile / 100, confidence)
    mean = sum(values) / n
    reach = mean - bounds[0] if mean > target else bounds[1] - mean
    return more_to_settle(n, mean - target, reach, spread_of(values, clusters), confidence)


def _with_reason(verdict: Verdict, said: str) -> Verdict:
    return replace(verdict, reason=", ".join(part for part in (said, verdict.reason) if part))
