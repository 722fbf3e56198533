"""Judges a gate on the values of a run. A gate never passes on part of the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum

from rag_harness.gates.bounds import ValuesAndTarget, clusters_of, interval_of
from rag_harness.gates.calibrated import Correct, corrected_verdict, not_at_hand
from rag_harness.gates.cluster_names import describe_clusters
from rag_harness.gates.evidence import GateRules, weighed
from rag_harness.gates.grammar import BASELINE, Gate, Reference
from rag_harness.gates.remarks import declined_of, movable, reasons, remarks_on, returns, unusable
from rag_harness.gates.scores import SuiteScores
from rag_harness.gates.unreviewed import with_drafts
from rag_harness.gates.verdict import Verdict, VerdictState, as_expected, meets_threshold


def judge(
    gate: Gate,
    suites: Mapping[str, SuiteScores],
    partial: bool = False,
    baseline: Mapping[str, SuiteScores] | None = None,
    unit: str = "share",
    correct: Correct = not_at_hand,
    rules: GateRules | None = None,
) -> Verdict:
    """Judge ``gate``. With ``partial``, a selection of cases counts as all of them. ``baseline`` is the saved run.

    ``unit`` is the unit of the gate's measure. ``correct`` estimates the mean that people would give, for a gate that
    asks for it. ``rules`` say how many cases may be without a value, and how evidence is weighed.

    Unreviewed cases do not count, unless ``rules`` say so. Where no case is reviewed, the gate is not judged. Two
    suites are compared over the cases that both have a value for. Values within 1e-12 of the threshold equal it.
    """
    rules = rules or GateRules()
    if gate.over is not None:
        # The answers are a sample, even where the cases are all that there are. The bounds of cases like these hold for
        # these cases, too: they allow for other cases besides other answers.
        rules = replace(rules, population="like")
    ways = _Ways(correct, rules, unit)

    def judged(part: Gate) -> Verdict:
        verdict = _judged(part, suites, partial, baseline or {}, ways)
        if verdict.value is None:
            return verdict
        other = [suites[gate.right.name]] if isinstance(gate.right, Reference) and gate.right.name in suites else []
        return _if_measured(verdict, [suites[gate.suite], *other], rules.max_unmeasured)

    mine = suites.get(gate.suite)
    verdict = replace(with_drafts(gate, mine, judged, rules, unit), unit=unit)
    return as_expected(verdict, bool(mine and mine.lost_of(dict(gate.slice))))


@dataclass(frozen=True, slots=True)
class _Ways:
    """The rules and functions by which values become a verdict."""

    correct: Correct
    rules: GateRules
    unit: str


def _if_measured(verdict: Verdict, sides: Sequence[SuiteScores], most: float) -> Verdict:
    """Fail a verdict where too many measurable cases have no value: these may be the bad ones."""
    gate, where = verdict.gate, dict(verdict.gate.slice)
    for scores in sides:
        without = scores.unmeasured(gate.measure, where)
        could = without + len(scores.values(gate.measure, where))
        if could and not meets_threshold(without / could, "<=", most):
            why = f"{without / could:.1%} of {could} {gate.counts} could not be measured, more than {most:.1%}"
            said = f"{why} (--rag-max-unmeasured){reasons(gate, [scores])}"
            return replace(verdict, state="failed", reason=said, lacking=True)
    return verdict


def _judged(
    gate: Gate,
    suites: Mapping[str, SuiteScores],
    partial: bool,
    baseline: Mapping[str, SuiteScores],
    ways: _Ways,
) -> Verdict:
    mine = suites.get(gate.suite)
    if mine is None or not mine.selected_of({}):
        return Verdict(gate, "not judged", reason=f"{gate.suite} is not in this run", excuse="suite")
    if (absent := _absent(gate, mine)) is not None:
        return absent
    if not isinstance(gate.right, Reference):
        left_out = _left_out(gate, [("", mine)], partial or gate in ways.rules.settled)
        return left_out or _against_number(gate, mine, gate.right, ways)
    theirs = baseline.get(gate.suite) if gate.right.name == BASELINE else suites.get(gate.right.name)
    if theirs is None:
        return _without_other(gate, gate.right)
    sides = [("", mine), (f" of {gate.right.name}", theirs)]
    return (
        _left_out(gate, sides, partial)
        or _not_comparable(gate, mine, theirs, gate.right)
        or _against_other(gate, mine, theirs, gate.right, ways)
    )


def _absent(gate: Gate, scores: SuiteScores) -> Verdict | None:
    where = dict(gate.slice)
    total = scores.total_of(where)
    if not total:
        # Such a gate could never be judged, so it would never fail.
        return Verdict(gate, "failed", reason=f"no case is in {gate.where}")
    if not scores.selected_of(where):
        return Verdict(gate, "not judged", reason=f"none of {total} {gate.counts} selected")
    return None


def _without_other(gate: Gate, right: Reference) -> Verdict:
    if right.name == BASELINE:
        return Verdict(gate, "failed", reason=f"the baseline has no results of {gate.suite}")
    return Verdict(gate, "not judged", reason=f"{right.name} is not in this run", excuse="suite")


def _left_out(gate: Gate, sides: Sequence[tuple[str, SuiteScores]], partial: bool) -> Verdict | None:
    where = dict(gate.slice)
    for whose, scores in sides:
        selected, total = scores.selected_of(where), scores.total_of(where)
        if selected < total and not (partial and selected):
            remedy = "; --rag-gate-partial judges these" if selected else ""
            return Verdict(gate, "not judged", reason=f"{selected} of {total} {gate.counts}{whose} selected{remedy}")
    return None


def _not_comparable(gate: Gate, mine: SuiteScores, theirs: SuiteScores, right: Reference) -> Verdict | None:
    """Refuse a cutoff that only one side's retrieval reaches: its deeper hits would have no counterpart."""
    cutoff, depths = gate.cutoff, (mine.depth, theirs.depth)
    if cutoff is None or None in depths or depths[0] == depths[1]:
        return None
    fewest, name = min((depth or 0, name) for depth, name in zip(depths, (gate.suite, right.name), strict=True))
    if fewest >= cutoff:
        return None
    why = f"cannot be compared at {cutoff} hits: {returns(name, fewest)}. Choose a cutoff that both have"
    return Verdict(gate, "failed", reason=why)


def _against_number(gate: Gate, scores: SuiteScores, threshold: float, ways: _Ways) -> Verdict:
    found = scores.values(gate.measure, dict(gate.slice))
    values = list(found.values())
    if problem := unusable(gate, values, [scores]):
        return Verdict(gate, "failed", reason=problem)
    remarks = remarks_on(gate, {gate.suite: scores}, ways.rules)
    if gate.calibrated:
        verdict = corrected_verdict(gate, found, threshold, ways.correct, remarks, ways.unit)
        return _counted(replace(verdict, alike=_alike(gate, found, ways.rules)), scores)
    evidence = ValuesAndTarget(found, threshold, _population(gate, scores, len(values)), remarks[0])
    return _counted(_weighed(gate, values, threshold, evidence, remarks, ways), scores)


def _counted(verdict: Verdict, scores: SuiteScores) -> Verdict:
    """Return a verdict that says how many cases its mean could have, where some answers gave nothing to measure."""
    gate, where = verdict.gate, dict(verdict.gate.slice)
    left_out = scores.left_out(gate.measure, where)
    if not left_out:
        return verdict
    of = verdict.n + sum(left_out.values()) + scores.unmeasured(gate.measure, where)
    return replace(verdict, of=of, declined=declined_of(left_out))


def _against_other(gate: Gate, mine: SuiteScores, theirs: SuiteScores, right: Reference, ways: _Ways) -> Verdict:
    from rag_harness.stats.by_case import differences, in_both

    ours, others = (scores.values(gate.measure, dict(gate.slice)) for scores in (mine, theirs))
    ours, others = in_both(ours, others)
    first, second = list(ours.values()), list(others.values())
    if problem := unusable(gate, [*first, *second], [mine, theirs]):
        return Verdict(gate, "failed", reason=f"{problem} in both {gate.suite} and {right.name}")
    threshold = _aggregate(gate, second) + right.offset
    sides = {gate.suite: mine, right.name: theirs}
    lost, said = remarks_on(gate, sides, ways.rules)
    said = ", ".join(filter(None, [said, *_declined_of_each(gate, sides)]))
    remarks = lost, ", ".join(filter(None, [movable(gate, mine, theirs, list(ours), ways.unit), said]))
    evidence = ValuesAndTarget(differences(ours, others), right.offset, _population(gate, mine, len(first)), remarks[0])
    return _weighed(gate, first, threshold, evidence, remarks, ways)


def _declined_of_each(gate: Gate, sides: Mapping[str, SuiteScores]) -> list[str]:
    """Say how many answers of each side claim nothing: the comparison is over the cases that both have a value for."""
    found = {name: declined_of(scores.left_out(gate.measure, dict(gate.slice))) for name, scores in sides.items()}
    return [f"{n} declined by {name}" for name, n in found.items() if n]


def _population(gate: Gate, scores: SuiteScores, n: int) -> int:
    """Estimate how many cases of the data have a value, where ``n`` of the selected cases have one."""
    where = dict(gate.slice)
    return round(n * scores.total_of(where) / scores.selected_of(where))


def _weighed(
    gate: Gate,
    values: Sequence[float],
    threshold: float,
    found: ValuesAndTarget,
    remarks: tuple[bool, str],
    ways: _Ways,
) -> Verdict:
    """Return the verdict by the value, with its interval, or by evidence where the gate asks for that."""
    value, (lost, reason) = _aggregate(gate, values), remarks
    state: VerdictState = "passed" if meets_threshold(value, gate.op, threshold) and not lost else "failed"
    interval = interval_of(gate, found, ways.rules, ways.unit)
    point = Verdict(gate, state, value, threshold, len(values), interval, reason)
    point = replace(point, alike=_alike(gate, found.values, ways.rules))
    return weighed(point, found, ways.rules, ways.unit)


def _alike(gate: Gate, values: Mapping[str, float], rules: GateRules) -> str:
    """Say on how many pages, or in how many conversations, the cases are; empty where each stands alone."""
    # A verdict about these cases and no others does not hang on how alike they are.
    clusters = clusters_of(gate.suite, values, rules) if rules.population == "like" else None
    return describe_clusters(clusters, rules.cluster) if clusters else ""


def _aggregate(gate: Gate, values: Sequence[float]) -> float:
    if gate.quantile is None:
        return fsum(values) / len(values)
    from rag_harness.stats import quantile

    return quantile(sorted(values), gate.quantile / 100)
