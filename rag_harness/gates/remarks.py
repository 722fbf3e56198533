"""Remarks on a gate's cases: some were lost, left out, without a value, or retrieved less deep than the cutoff."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import isfinite

from rag_harness.gates.evidence import GateRules
from rag_harness.gates.grammar import Gate
from rag_harness.gates.scores import SuiteScores
from rag_harness.measures.judged.reasons import ABSTENTIONS, OTHER_LANGUAGE

NO_VALUE = "no value"
"""The reason of a measure that returns no value and says nothing."""
MANY_ABSTAIN = 0.1
"""Share of the cases from which a judge without an LLM abstains on many."""
OF_DECLINED = ("an abstention, which claims nothing", "a right abstention", "contradicts nothing")
"""How the reasons end that lie in an answer which declines."""
_ALWAYS_MOVES = ("ms", "usd")
"""Units of measures that differ from run to run, whatever a row says."""


def returns(name: str, depth: int) -> str:
    """Say how many hits a suite retrieves."""
    return f"{name} returns at most {depth} hit{'s' * (depth != 1)}"


def unusable(gate: Gate, values: Sequence[float], sides: Sequence[SuiteScores]) -> str:
    """Say why the values have no mean; "" where they have one."""
    if not values:
        return f"no {gate.counts[:-1]} has a value of {gate.measure}{reasons(gate, sides)}"
    if all(map(isfinite, values)):
        return ""
    bad = sum(not isfinite(value) for value in values)
    return f"{bad} of the values of {gate.measure} are NaN or infinite"


def reasons(gate: Gate, sides: Sequence[SuiteScores]) -> str:
    """Say why cases have no value, as ``: 3 of 80 have no ground truth``."""
    where = dict(gate.slice)
    total = sum(scores.selected_of(where) for scores in sides)
    counts: dict[str, int] = {}
    for scores in sides:
        for reason, n in scores.absent(gate.measure, where).items():
            counts[reason] = counts.get(reason, 0) + n
    advice = _advice(counts, total)
    others = counts if not advice else {why: n for why, n in counts.items() if not _abstains(why)}
    said = [_said(gate, n, total, reason) for reason, n in sorted(others.items(), key=lambda item: -item[1])]
    return f": {', '.join(filter(None, [advice, *said]))}" if advice or said else ""


def _advice(counts: Mapping[str, int], total: int) -> str:
    """Say what to do where a judge without an LLM abstains on many answers."""
    abstained = sum(n for why, n in counts.items() if _abstains(why))
    if not abstained or abstained < MANY_ABSTAIN * total:
        return ""
    is_embedded = any(of in why for why in counts for of in ABSTENTIONS if of != OTHER_LANGUAGE)
    who = "the embedded judge" if is_embedded else "the judge"
    return f"{who} abstains on {abstained} of {total}; ask a model: --rag-judge=fused"


def _abstains(reason: str) -> bool:
    return any(why in reason for why in ABSTENTIONS)


def _said(gate: Gate, n: int, total: int, reason: str) -> str:
    if reason == NO_VALUE:
        return f"{gate.measure} returned no value for {n} of {total}"
    return f"{n} of {total} have {reason}"


def declined_of(left_out: Mapping[str, int]) -> int:
    """Count the answers that gave nothing to measure because they say that they do not know."""
    return sum(n for why, n in left_out.items() if why.endswith(OF_DECLINED))


def remarks_on(gate: Gate, sides: Mapping[str, SuiteScores], rules: GateRules) -> tuple[bool, str]:
    """Return whether any case was lost, and the remarks on the cases that were looked at."""
    where = dict(gate.slice)
    lost = sum(scores.lost_of(where) for scores in sides.values())
    why = "without all answers" if gate.over else "lost to a crash"
    what = gate.counts if lost > 1 else gate.counts[:-1]
    remarks = [f"{lost} {what} {why}, so it cannot pass"] if lost else []
    selected, total = min((scores.selected_of(where), scores.total_of(where)) for scores in sides.values())
    is_part = selected < total and (len(sides) > 1 or gate not in rules.settled)
    remarks += [f"{selected} of {total} {gate.counts} {rules.chosen}"] if is_part else []
    remarks += dict.fromkeys(filter(None, map(rules.skipped, sides)))
    unmeasured = sum(scores.unmeasured(gate.measure, where) for scores in sides.values())
    remarks += [f"{unmeasured} could not be measured{reasons(gate, list(sides.values()))}"] if unmeasured else []
    remarks += [] if unmeasured else _without_measure(gate, sides)
    return bool(lost), ", ".join([*remarks, *_shallow(gate, sides)])


def _without_measure(gate: Gate, sides: Mapping[str, SuiteScores]) -> list[str]:
    """Say how many answers gave nothing to measure, unless they declined, which the line says beside n."""
    counts: Counter[str] = Counter()
    for scores in sides.values():
        counts.update(scores.left_out(gate.measure, dict(gate.slice)))
    total = sum(scores.selected_of(dict(gate.slice)) for scores in sides.values())
    return [_said(gate, n, total, why) for why, n in counts.most_common() if not why.endswith(OF_DECLINED)]


def movable(gate: Gate, mine: SuiteScores, theirs: SuiteScores, cases: Sequence[str], unit: str) -> str:
    """Say how many of the compared cases can differ at all: "of 20 cases, 8 can move"; empty where all can.

    A case whose row is the same on both sides has the same score on both. Times and costs differ all the same.
    """
    if unit in _ALWAYS_MOVES:
        return ""
    where = dict(gate.slice)
    ours, others = mine.outcomes(where), theirs.outcomes(where)
    same = sum(case in ours and ours[case] == others.get(case) for case in cases)
    if not same:
        return ""
    if same == len(cases):
        return f"no {gate.counts[:-1]} can move: all rows are equal"
    return f"of {len(cases)} {gate.counts}, {len(cases) - same} can move: the rows of the others are equal"


def _shallow(gate: Gate, sides: Mapping[str, SuiteScores]) -> list[str]:
    """Name the sides whose retrieval is less deep than the measure's cutoff."""
    depths = {name: scores.depth for name, scores in sides.items()}
    cutoff = gate.cutoff
    return [returns(name, depth) for name, depth in depths.items() if cutoff and depth and depth < cutoff]
