"""Judge a gate on the values of a run, with remarks on lost, skipped and unreviewed cases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum, isfinite
from typing import Protocol

from rag_harness.core.types import PLACEHOLDER, REVIEWED
from rag_harness.evaluation.measures.opinion import ABSTENTIONS, OTHER_LANGUAGE
from rag_harness.runs.gates.evidence import (
    Correct,
    GateRules,
    ValuesAndTarget,
    clusters_of,
    corrected_verdict,
    describe_clusters,
    interval_of,
    not_at_hand,
    weighed,
)
from rag_harness.runs.gates.grammar import BASELINE, Gate, Reference
from rag_harness.runs.gates.verdict import Verdict, VerdictState, as_expected, meets_threshold, value_said

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


# Remarks on a gate's cases: some were lost, left out, without a value, or retrieved less deep than the cutoff.

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


# A draft may ask what no page answers, or copy its page. So a draft makes no gate pass and no gate fail, and one draft
# among 200 questions does not keep the others from being judged.

_OTHER = {"yes": "no", "no": "yes"}


@dataclass(frozen=True, slots=True)
class _Parts:
    """A gate's cases in two groups: those that it is judged on, and those that were set apart."""

    gate: Gate
    judged: Gate
    kept: int
    apart: int
    placeholders: int


def judged_part(gate: Gate, counts_drafts: bool) -> Gate:
    """Return the gate over its judged cases only. Placeholders are never judged, drafts only where asked for."""
    named = dict(gate.slice)
    takes_drafts = (counts_drafts or REVIEWED in named) and PLACEHOLDER not in named
    pair = (PLACEHOLDER, "no") if takes_drafts else (REVIEWED, "yes")
    return replace(gate, slice=(*gate.slice, pair))


def with_drafts(
    gate: Gate, scores: SuiteScores | None, judged: Callable[[Gate], Verdict], rules: GateRules, unit: str
) -> Verdict:
    """Return the verdict of ``judged`` over the reviewed cases, and say how many cases were set apart."""
    if scores is None:
        return judged(gate)
    parts = _parts(gate, scores, rules)
    if not parts.apart:
        return _none_reviewed(gate, scores, rules) or judged(gate)
    verdict = judged(parts.judged)
    if verdict.value is not None:
        return replace(
            verdict, gate=gate, unreviewed=parts.apart, reason=_joined(_beside(parts, scores, unit), verdict)
        )
    if verdict.state == "not judged":
        return replace(verdict, gate=gate, reason=f"of the reviewed: {verdict.reason}")
    whole = judged(gate)
    if whole.value is None and (parts.kept or whole.state != "failed"):
        return whole
    said = _all_drafts(parts, rules.review(gate.suite))
    return replace(whole, state="not judged", unreviewed=parts.apart, reason=_joined(said, whole), excuse="drafts")


def _parts(gate: Gate, scores: SuiteScores, rules: GateRules) -> _Parts:
    part = judged_part(gate, rules.counts_drafts)
    every, (key, value) = dict(gate.slice), part.slice[-1]
    apart = scores.selected_of({**every, key: _OTHER[value]})
    placeholders = scores.selected_of({**every, PLACEHOLDER: "yes"})
    return _Parts(gate, part, scores.selected_of(every) - apart, apart, placeholders)


def _none_reviewed(gate: Gate, scores: SuiteScores, rules: GateRules) -> Verdict | None:
    """Return the verdict of a gate on reviewed cases where no case is reviewed; None where some are."""
    where = dict(gate.slice)
    if where.get(REVIEWED) != "yes" or scores.total_of(where):
        return None
    others = {key: value for key, value in where.items() if key != REVIEWED}
    drafts = scores.selected_of(others)
    if not drafts:
        return None
    said = f"none of {_cases(gate, drafts)} is reviewed: {rules.review(gate.suite)}"
    return Verdict(gate, "not judged", reason=said, unreviewed=drafts, excuse="drafts")


def _beside(parts: _Parts, scores: SuiteScores, unit: str) -> str:
    """Say which cases the verdict is about, and what the value would be with the others."""
    said = f"on the {parts.kept} reviewed of {_cases(parts.gate, parts.kept + parts.apart)}"
    where, quantile = dict(parts.gate.slice), parts.gate.quantile is not None
    values = list(scores.values(parts.gate.measure, where).values())
    more = len(values) - len(scores.values(parts.gate.measure, dict(parts.judged.slice)))
    if not more or quantile or isinstance(parts.gate.right, Reference):
        return said
    return f"{said}; with the drafts {value_said(fsum(values) / len(values), unit)}"


def _all_drafts(parts: _Parts, remedy: str) -> str:
    if parts.placeholders == parts.apart == 1:
        return f"its one {parts.gate.counts[:-1]} is a placeholder: write a question in its place"
    if parts.placeholders == parts.apart:
        return f"all {parts.apart} {parts.gate.counts} are placeholders: write questions in their place"
    kept = f", and none of the others has a value ({parts.kept})" if parts.kept else ""
    what = "is an unreviewed draft" if parts.apart == 1 else "are unreviewed drafts"
    return f"{parts.apart} of {_cases(parts.gate, parts.kept + parts.apart)} {what}{kept}: {remedy}"


def _cases(gate: Gate, number: int) -> str:
    return f"{number} {gate.counts if number != 1 else gate.counts[:-1]}"


def _joined(said: str, verdict: Verdict) -> str:
    return "; ".join(part for part in (said, verdict.reason) if part)


# Judges a gate on the values of a run. A gate never passes on part of the data.


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

    ``unit`` is the unit of the gate's measure. ``correct`` estimates the mean that people would give; it is used where
    a gate asks for it. ``rules`` say how many cases may be without a value, and how evidence is weighed.

    Unreviewed cases do not count, unless ``rules`` say so. Where no case is reviewed, the gate is not judged. Two
    suites are compared over the cases with a value in both. Values within 1e-12 of the threshold equal it.
    """
    rules = rules or GateRules()
    if gate.over is not None:
        # The answers are a sample, even where the cases are all that there are. The bounds of cases like these hold for
        # these cases, too: they allow for other cases besides other answers.
        rules = replace(rules, population="like")
    ways = _VerdictRules(correct, rules, unit)

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
class _VerdictRules:
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
    ways: _VerdictRules,
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


def _against_number(gate: Gate, scores: SuiteScores, threshold: float, ways: _VerdictRules) -> Verdict:
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


def _against_other(
    gate: Gate, mine: SuiteScores, theirs: SuiteScores, right: Reference, ways: _VerdictRules
) -> Verdict:
    from rag_harness.stats.inputs import differences, in_both

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
    ways: _VerdictRules,
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
