"""The state of the gates of a run: how many have each verdict, and which failed or nearly failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any

from rag_harness.evaluation.measures.opinion import OF_TURNS
from rag_harness.records.scores import CauseLine
from rag_harness.runs.gates import BASELINE, Gate, Reference
from rag_harness.runs.gates.configuration import gate_or_none
from rag_harness.runs.gates.evidence import beside_bounds, how_sure
from rag_harness.runs.gates.verdict import equal, limit_said, meets_threshold, told_apart
from rag_harness.stats.inputs import differences
from rag_harness.tables.conversations import over_repeats
from rag_harness.tables.suite_table import SuiteTable
from rag_harness.tables.wording import counted

_OF_EXPECTATIONS = ("expectations", "expect_", "rubric_", *OF_TURNS)
"""Are in the names of measures of expectations, of rubrics, and of what is asked of turns."""
FEW_GATES = 3
"""Failed gates that the end of a run shows."""
BAD = ("failed", "stale", "xpassed")
"""States of a gate that fail a run."""
STATE_WORDS = {
    "undecided": "undecided",
    "passed": "passed",
    "xfailed": "failed as expected",
    "not judged": "not judged",
}
"""The words for the other states, in the order in which they are told."""
FAILING_OPTIONS = {"undecided": "--rag-undecided=fail", "not judged": "--rag-not-judged=fail"}
"""Options that let gates without a verdict fail a run, by the state of such gates."""


@dataclass(frozen=True, slots=True)
class GateLine:
    """A gate for people.

    Attributes:
        condition: its text.
        state: its verdict.
        figures: value and how sure it is, of a comparison both values and the difference; empty where not judged. Of a
            gate with ``@`` that is the bound that decides, of any other the 95 % interval.
        reason: what is to be said beside the figures, without what they say already.
        worst: id of the trial that counts most against it; empty where none can be named.
        worst_why: what that trial does not keep to; empty where nobody looked.
        measure: what the gate is on; empty where its text cannot be read.
        is_good_enough: whether the value alone would have passed: what failed the gate is the reason.
    """

    condition: str
    state: str
    figures: str = ""
    reason: str = ""
    worst: str = ""
    worst_why: str = ""
    measure: str = ""
    is_good_enough: bool = False


@dataclass(frozen=True, slots=True)
class GatesState:
    """The verdicts of a run.

    Attributes:
        counts: number of gates by state.
        failed: gates that fail the run.
        undecided: gates that their cases leave undecided.
        closest: the passed gate whose value is nearest to its limit, measured by its interval; None for none.
        needed: suites that are not in this run, and that gates need which were not judged. Those that one of this run
            would be compared with come first.
        strict: options by which gates without a verdict fail this run.
        part: on how many questions gates were judged, where a selection left some out: ``on 2 of 10 questions``.
        expected_failures: gates that failed as expected.
        are_elsewhere: whether none was judged and none is on a suite of this run.
    """

    counts: Mapping[str, int]
    failed: Sequence[GateLine]
    undecided: Sequence[GateLine]
    closest: GateLine | None
    needed: Sequence[str]
    strict: Sequence[str] = ()
    part: str = ""
    expected_failures: Sequence[str] = ()
    are_elsewhere: bool = False

    @property
    def total(self) -> int:
        """The number of gates."""
        return sum(self.counts.values())

    @property
    def verdict(self) -> str:
        """All verdicts in a word: FAIL, UNDECIDED, PASS; empty where no gate was judged."""
        if self.failed or self.strict:
            return "FAIL"
        if self.undecided:
            return "UNDECIDED"
        return "PASS" if self.counts.get("passed") else ""


def gates_state(
    gates: Sequence[Mapping[str, Any]],
    tables: Mapping[str, SuiteTable],
    causes: Sequence[CauseLine],
    k: int,
    unchecked: Mapping[str, int] | None = None,
) -> GatesState:
    """Return the state of gates.

    Args:
        gates: verdicts, as ``summary.json`` has them.
        tables: tables of the suites that were selected.
        causes: causes of failures, the worst of each experiment first.
        k: the value of ``@k``.
        unchecked: number of gates without a verdict that fail the run, by their state.
    """
    read = [(said, gate_or_none(said["gate"], k)) for said in gates]
    lines = [_line(said, gate, tables, causes) for said, gate in read]
    passed = [(_slack(said), line) for (said, _), line in zip(read, lines, strict=True) if _passed(said)]
    nearest = min(passed, key=lambda each: each[0], default=(inf, None))
    return GatesState(
        counts=Counter(line.state for line in lines),
        failed=[line for line in lines if line.state in BAD],
        undecided=[line for line in lines if line.state == "undecided"],
        closest=nearest[1] if nearest[0] < inf else None,
        needed=_needed([gate for said, gate in read if said["state"] == "not judged" and gate is not None], tables),
        strict=[option for name, option in FAILING_OPTIONS.items() if unchecked and unchecked.get(name)],
        part=_part([gate for said, gate in read if gate is not None and _is_judged(said)], tables),
        expected_failures=[line.condition for line in lines if line.state == "xfailed"],
        are_elsewhere=bool(read) and all(gate is not None and _is_elsewhere(said, gate, tables) for said, gate in read),
    )


def with_worst_why(state: GatesState, why: Callable[[str, str], str]) -> GatesState:
    """Return the state with what the worst trial of each failed gate on expectations or a rubric does not meet.

    ``why`` returns this for a trial and a measure. It reads the trial's row, so it is called only for the few gates
    that are shown.
    """
    shown = [
        replace(line, worst_why=why(line.worst, line.measure))
        if line.worst and any(name in line.measure for name in _OF_EXPECTATIONS)
        else line
        for line in state.failed[:FEW_GATES]
    ]
    return replace(state, failed=[*shown, *state.failed[FEW_GATES:]])


def _passed(said: Mapping[str, Any]) -> bool:
    return bool(said["state"] == "passed")


def _line(
    said: Mapping[str, Any], gate: Gate | None, tables: Mapping[str, SuiteTable], causes: Sequence[CauseLine]
) -> GateLine:
    is_bad = said["state"] in BAD and gate is not None
    worst = _worst(gate, tables, causes) if is_bad and gate is not None else ""
    measure = gate.measure if gate is not None else ""
    return GateLine(
        condition=said["gate"],
        state=said["state"],
        figures=_figures(said, gate),
        reason=beside_bounds(said, gate),
        worst=worst,
        measure=measure,
        is_good_enough=_is_good_enough(said, gate),
    )


def _is_good_enough(said: Mapping[str, Any], gate: Gate | None) -> bool:
    value, threshold = said.get("value"), said.get("threshold")
    if gate is None or value is None or threshold is None:
        return False
    return meets_threshold(value, gate.op, threshold)


def _figures(said: Mapping[str, Any], gate: Gate | None) -> str:
    value, threshold = said.get("value"), said.get("threshold")
    if value is None or threshold is None:
        return ""
    unit = said.get("unit", "share")
    shown = told_apart(value, threshold, unit, equal(value, threshold))
    is_difference = gate is not None and isinstance(gate.right, Reference)
    against = f"{shown[0]} against {limit_said(gate, threshold, shown[1], unit)}"
    parts = [against if is_difference else shown[0], how_sure(said, gate)]
    return (", " if is_difference or said.get("bounds") else " ").join(filter(None, parts))


def _slack(said: Mapping[str, Any]) -> float:
    """Return the distance of a value from its limit, in half widths of its interval; infinite where it is not known."""
    value, threshold, interval = said.get("value"), said.get("threshold"), said.get("interval")
    if value is None or threshold is None or not interval or None in interval or interval[0] == interval[1]:
        return inf
    return float(abs(value - threshold) / ((interval[1] - interval[0]) / 2))


def _is_judged(said: Mapping[str, Any]) -> bool:
    return said["state"] != "not judged" and said.get("value") is not None


def _is_elsewhere(said: Mapping[str, Any], gate: Gate, tables: Mapping[str, SuiteTable]) -> bool:
    return said["state"] == "not judged" and not any(name in tables for name in _suites(gate))


def _part(gates: Sequence[Gate], tables: Mapping[str, SuiteTable]) -> str:
    """Say how many of their questions gates were judged on; empty where that is all."""
    names = sorted({name for gate in gates for name in _suites(gate) if name in tables})
    counts = [(tables[name].selected_of({}), tables[name].total_of({})) for name in names]
    if all(asked == total for asked, total in counts):
        return ""
    if len(set(counts)) == 1:
        return f"on {counts[0][0]:,} of {counted(counts[0][1], 'question')}"
    return f"on {sum(asked for asked, _ in counts):,} of {counted(sum(total for _, total in counts), 'trial')}"


def _needed(gates: Sequence[Gate], tables: Mapping[str, SuiteTable]) -> list[str]:
    missing = {name for gate in gates for name in _suites(gate) if name not in tables}
    beside = {name for gate in gates if any(name in tables for name in _suites(gate)) for name in _suites(gate)}
    return sorted(missing, key=lambda name: (name not in beside, name))


def _suites(gate: Gate) -> Iterator[str]:
    yield gate.suite
    if isinstance(gate.right, Reference) and gate.right.name != BASELINE:
        yield gate.right.name


def _is_share(table: SuiteTable, measure: str) -> bool:
    return table.columns[measure].measure.unit == "share"


def _worst(gate: Gate, tables: Mapping[str, SuiteTable], causes: Sequence[CauseLine]) -> str:
    """Return the trial with the worst value; of several that with a cause, the worst of these first."""
    if gate.turns is not None and gate.turns.kind == "drift":
        return ""  # no single turn has it
    tables = over_repeats(gate, tables)
    table = tables.get(gate.suite)
    if table is None or not table.has(gate.measure):
        return ""
    values = table.values(gate.measure, dict(gate.slice))
    if isinstance(gate.right, Reference) and (other := tables.get(gate.right.name)) is not None:
        values = differences(values, other.values(gate.measure, dict(gate.slice))) if other.has(gate.measure) else {}
    if not values:
        return ""
    limit = (min if ">" in gate.op else max)(values.values())
    if not isinstance(gate.right, Reference) and ">" in gate.op and limit == 1 and _is_share(table, gate.measure):
        return ""  # every value is the best there is: the gate fails by the cases that have none
    worst = {case for case, value in values.items() if value == limit}
    explained = (line.query_id for line in causes if line.experiment == gate.suite and line.query_id in worst)
    return f"{gate.suite}-{next(explained, min(worst))}"
