"""Judge a gate on the values of a run. A gate never passes on part of the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum, isfinite
from typing import Protocol

from rag_harness.gates.grammar import BASELINE, Gate, Reference
from rag_harness.gates.verdict import Interval, State, Verdict, equal

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


def judge(
    gate: Gate,
    suites: Mapping[str, SuiteScores],
    partial: bool = False,
    baseline: Mapping[str, SuiteScores] | None = None,
) -> Verdict:
    """Judge ``gate``. ``partial`` judges a selection as if it were everything; ``baseline`` is the saved run.

    Two suites are compared over the cases that both have a value for. Values within 1e-12 of the threshold equal it.
    """
    mine = suites.get(gate.suite)
    absent = _absent(gate, mine)
    if mine is None or absent:
        return absent or Verdict(gate, "silent")
    if not isinstance(gate.right, Reference):
        return _left_out(gate, [("", mine)], partial) or _against_number(gate, mine, gate.right)
    theirs = (baseline or {}).get(gate.suite) if gate.right.name == BASELINE else suites.get(gate.right.name)
    if theirs is None:
        return _without_other(gate, gate.right)
    sides = [("", mine), (f" of {gate.right.name}", theirs)]
    return _left_out(gate, sides, partial) or _against_other(gate, mine, theirs, gate.right)


def _absent(gate: Gate, scores: SuiteScores | None) -> Verdict | None:
    where = dict(gate.slice)
    if scores is None or not scores.selected_of({}):
        return Verdict(gate, "silent")
    if not scores.total_of(where):
        # It could never be judged, so silence would be a green light for good.
        return Verdict(gate, "failed", reason=f"no case is in {gate.where}")
    return None if scores.selected_of(where) else Verdict(gate, "silent")


def _without_other(gate: Gate, right: Reference) -> Verdict:
    if right.name == BASELINE:
        return Verdict(gate, "failed", reason=f"the baseline has no results of {gate.suite}")
    return Verdict(gate, "not judged", reason=f"{right.name} has no results in this run")


def _left_out(gate: Gate, sides: Sequence[tuple[str, SuiteScores]], partial: bool) -> Verdict | None:
    where = dict(gate.slice)
    for whose, scores in sides:
        selected, total = scores.selected_of(where), scores.total_of(where)
        if selected < total and not (partial and selected):
            return Verdict(gate, "not judged", reason=f"{selected} of {total} cases{whose} selected")
    return None


def _against_number(gate: Gate, scores: SuiteScores, threshold: float) -> Verdict:
    values = list(scores.values(gate.measure, dict(gate.slice)).values())
    if problem := _unusable(gate, values):
        return Verdict(gate, "failed", reason=problem)
    return _weighed(gate, values, threshold, _interval(values), _remarks(gate, [scores]))


def _against_other(gate: Gate, mine: SuiteScores, theirs: SuiteScores, right: Reference) -> Verdict:
    ours, others = (each.values(gate.measure, dict(gate.slice)) for each in (mine, theirs))
    both = [case for case in ours if case in others]
    first, second = [ours[case] for case in both], [others[case] for case in both]
    if problem := _unusable(gate, [*first, *second]):
        return Verdict(gate, "failed", reason=f"{problem} in both {gate.suite} and {right.name}")
    from rag_harness.stats import paired_bootstrap_interval

    interval = paired_bootstrap_interval(first, second)
    return _weighed(gate, first, _mean(second) + right.offset, interval, _remarks(gate, [mine, theirs]))


def _unusable(gate: Gate, values: Sequence[float]) -> str:
    if not values:
        return f"no case has a value of {gate.measure}"
    bad = sum(not isfinite(value) for value in values)
    return f"{bad} of the values of {gate.measure} are NaN or infinite" if bad else ""


def _remarks(gate: Gate, sides: Sequence[SuiteScores]) -> tuple[bool, str]:
    """Return whether any case was lost, and what else a reader must know of how many cases were looked at."""
    where = dict(gate.slice)
    lost = sum(scores.lost_of(where) for scores in sides)
    remarks = [f"{lost} case{'s' * (lost > 1)} lost to a crash, so it cannot pass"] if lost else []
    selected, total = min((each.selected_of(where), each.total_of(where)) for each in sides)
    remarks += [f"{selected} of {total} cases selected"] if selected < total else []
    return bool(lost), ", ".join(remarks)


def _weighed(
    gate: Gate, values: Sequence[float], threshold: float, interval: Interval, remarks: tuple[bool, str]
) -> Verdict:
    value, (lost, reason) = _mean(values), remarks
    state: State = "passed" if _holds(value, gate.op, threshold) and not lost else "failed"
    return Verdict(gate, state, value, threshold, len(values), interval, reason)


def _holds(value: float, op: str, threshold: float) -> bool:
    return "=" in op if equal(value, threshold) else (value > threshold) == (">" in op)


def _mean(values: Sequence[float]) -> float:
    return fsum(values) / len(values)


def _interval(values: Sequence[float]) -> Interval:
    from rag_harness.stats import bootstrap_interval, wilson_interval

    if set(values) <= {0.0, 1.0}:
        return wilson_interval(int(sum(values)), len(values))
    return bootstrap_interval(values)
