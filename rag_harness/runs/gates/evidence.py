"""Confidence bounds of the value of a gate, and verdicts by them.

Alone, in a family of gates, or corrected by a calibration of the judge.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import fsum, inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias

from rag_harness.core.errors import DataError
from rag_harness.runs.gates.grammar import Gate, Reference
from rag_harness.runs.gates.verdict import Interval, Verdict, VerdictState, bounds, equal, meets_threshold, told_apart

if TYPE_CHECKING:
    from rag_harness.evaluation.judges.calibration.corrections import ExperimentScores
    from rag_harness.records.scores import Author, ScoreLine
    from rag_harness.stats.means import ValueRange
    from rag_harness.stats.paired_tests import DifferenceBounds


# Cases that are alike: how their clusters are named, and how many there are, in words.
#
# Two questions about one page tell less than two about different pages, and so do two turns of a conversation. They are
# one cluster: a bound of a mean counts clusters, not cases.

CONVERSATION_OF, PAGE_OF, QUESTION_OF = "conversation ", "page ", "question "
"""How the name of a cluster begins: of turns, of questions about one page, of one question asked several times."""
STANDS_ALONE = "\0"
"""How the cluster of a case begins that has none: it is independent of all others."""
_PLACES = ((CONVERSATION_OF, "in", "conversation"), (PAGE_OF, "on", "page"))


def describe_clusters(clusters: Collection[str], key: str = "") -> str:
    """Return in how many conversations, pages or other clusters cases are: "on 9 pages"; empty where each is alone.

    Args:
        clusters: cluster of each case.
        key: label whose values are the clusters, where these are neither conversations nor pages.
    """
    distinct = set(clusters)
    if len(distinct) == len(clusters):
        return ""
    said, others = [], {each for each in distinct if not each.startswith((STANDS_ALONE, QUESTION_OF))}
    for begin, where, what in _PLACES:
        found = {each for each in others if each.startswith(begin)}
        said += [f"{where} {_counted(len(found), what)}"] if found else []
        others -= found
    said += [f"in {_counted(len(others), 'cluster')}{f' by {key}' if key else ''}"] if others else []
    alone = sum(each.startswith((STANDS_ALONE, QUESTION_OF)) for each in distinct)
    said += [f"{alone:,} alone" if said else f"of {_counted(alone, 'question')}"] if alone else []
    return " and ".join(said)


def describe_one_cluster(clusters: Collection[str], key: str = "") -> str:
    """Say that all cases are of one cluster, which bounds nothing, and what to do; empty where they are not."""
    if len(clusters) < 2 or len(set(clusters)) > 1:
        return ""
    return f"all are {describe_clusters(clusters, key)}, which bounds nothing: --rag-cluster=none counts each by itself"


def kind_of_cluster(clusters: Collection[str]) -> str:
    """Return what more cases would have to be of: conversations, pages or clusters."""
    found = {what for begin, _, what in _PLACES if any(each.startswith(begin) for each in clusters)}
    return f"{found.pop()}s" if len(found) == 1 else "clusters"


def describe_missed(units: int, what: str) -> str:
    """Say what a paired test of so many units assumes: that no large difference is too rare for them.

    Args:
        units: number of cases, or of clusters.
        what: what one of them is: "case", "page", "conversation", "cluster".
    """
    from rag_harness.stats.paired_tests import rarest_seen

    share = f"1 {what} in {rarest_seen(units):,}"
    return f"if no large difference is rarer than {share}: {units:,} {what}s could miss it"


def unit_of(clusters: Collection[str] | None) -> str:
    """Return what a bound counts: a case, a page, a conversation or a cluster."""
    is_alone = clusters is None or len(set(clusters)) == len(clusters)
    return "case" if is_alone or clusters is None else kind_of_cluster(clusters).removesuffix("s")


def _counted(n: int, what: str) -> str:
    return f"{n:,} {what}{'s' * (n != 1)}"


# Confidence bounds of a gate's value, and the confidence interval printed beside the value, by one method.
#
# The interval consists of the two bounds at a confidence at which both hold together. So the bound of a verdict at 95 %
# never lies outside of the interval.

Population = Literal["like", "finite"]
"""The population of a verdict: all cases like these, or only the cases of the suite."""
Clusters = Callable[[str], Mapping[str, str] | None]
"""Returns the cluster of each case of a suite, and None where each case stands alone. A case with "" does, too."""
_INTERVAL = 0.975
"""Confidence of each end of a 95 % interval. A gate with a higher confidence uses that for its interval."""


class Grouping(Protocol):
    """The population of the cases, and their clusters, as the run's options say."""

    @property
    def population(self) -> Population:
        """The population of a verdict."""
        ...

    @property
    def clusters(self) -> Clusters | None:
        """Returns the cluster of each case; None where there are none."""
        ...


class ValuesAndTarget(NamedTuple):
    """The data of a verdict: the value or difference of each case, and the ``target`` of their mean."""

    values: Mapping[str, float]
    target: float
    population: int
    lost: bool


class Bounds(NamedTuple):
    """A lower and an upper bound. ``how`` names the test of a comparison, where it is not the assumption-free bound."""

    low: float
    high: float
    how: str = ""


def is_paired(gate: Gate) -> bool:
    """Whether a gate asks which of two experiments is better. A paired test then replaces the assumption-free bounds.

    Such gates have ``>`` or ``<`` against another experiment, or ``@95% paired``, or compare by the value alone; none
    has ``@95% robust``. The interval of those by the value alone is that of ``rag-harness compare``.
    """
    if not isinstance(gate.right, Reference):
        return False
    if gate.test:
        return gate.test == "paired"
    return gate.confidence is None or "=" not in gate.op


def interval_of(gate: Gate, found: ValuesAndTarget, grouping: Grouping, unit: str) -> Interval | None:
    """Return the confidence interval beside a value: 95 %, or the gate's own confidence where that is higher.

    None where the cases allow no bounds, or where all cases of a finite population have a value.
    """
    from rag_harness.stats.inputs import UndefinedError

    if isinstance(gate.right, Reference) and gate.quantile is not None:
        return None
    if grouping.population == "finite" and found.population == len(found.values):
        return None
    try:
        low, high, _ = bounds_of(gate, found, grouping, unit, max(_INTERVAL, (gate.confidence or 0) / 100))
    except UndefinedError:
        return None
    return low, high


def bounds_of(gate: Gate, found: ValuesAndTarget, grouping: Grouping, unit: str, confidence: float) -> Bounds:
    """Return a lower and an upper bound. Each of them holds by itself with ``confidence``.

    Raises:
        UndefinedError: the cases allow no bounds; says why.
    """
    values = list(found.values.values())
    population = found.population if grouping.population == "finite" else None
    clusters = clusters_of(gate.suite, found.values, grouping)
    if gate.quantile is not None:
        return Bounds(*_of_quantile(values, gate.quantile / 100, confidence, population, clusters))
    span = span_of(values, unit, is_difference=isinstance(gate.right, Reference))
    if is_paired(gate):
        from rag_harness.stats import difference_bounds

        compared = difference_bounds(values, span, confidence, clusters, population)
        return Bounds(*compared.interval, _how(compared, span, clusters))
    from rag_harness.stats import mean_bounds
    from rag_harness.stats.inputs import UndefinedError

    if gate.test == "robust" and span is None and population != len(values):
        raise UndefinedError(f"{gate.measure} has no range, so nothing is bounded without assumptions")
    low, high = mean_bounds(values, span, confidence, clusters, population)
    how = "without assumptions" if gate.test == "robust" else ""
    return Bounds(low if isinstance(gate.right, Reference) else _possible(low, values, unit), high, how)


def interval_of_mean(values: Sequence[float], unit: str, clusters: Sequence[Hashable] | None = None) -> Interval | None:
    """Return the 95 % interval of a measure's mean, by the method of the gates; None where the values allow no bounds.

    ``clusters`` has the cluster of each value; None where there are none.
    """
    from rag_harness.stats import mean_interval
    from rag_harness.stats.inputs import UndefinedError

    try:
        low, high = mean_interval(values, span_of(values, unit), clusters=clusters)
    except UndefinedError:
        return None
    return _possible(low, values, unit), high


def span_of(values: Sequence[float], unit: str, is_difference: bool = False) -> ValueRange | None:
    """Return the range of a share, or of a difference of shares; None for another unit, or a value out of range."""
    span = (-1.0, 1.0) if is_difference else (0.0, 1.0)
    return span if unit == "share" and span[0] <= min(values) <= max(values) <= span[1] else None


def clusters_of(suite: str, cases: Mapping[str, float], grouping: Grouping) -> list[str] | None:
    """Return the cluster of each case; None without clusters."""
    known = grouping.clusters(suite) if grouping.clusters is not None else None
    if known is None:
        return None
    return [known.get(case) or f"{STANDS_ALONE}{case}" for case in cases]


def _of_quantile(
    values: Sequence[float],
    share: float,
    confidence: float,
    population: int | None,
    clusters: Sequence[Hashable] | None,
) -> Interval:
    from rag_harness.stats import quantile, quantile_interval
    from rag_harness.stats.means import clustered_quantile_bounds

    if population == len(values):
        exact = quantile(sorted(values), share)
        return exact, exact
    if clusters is not None and len(set(clusters)) < len(values):
        return clustered_quantile_bounds(values, share, clusters, confidence)
    return quantile_interval(values, share, 2 * confidence - 1)


def _how(compared: DifferenceBounds, span: ValueRange | None, clusters: Sequence[str] | None) -> str:
    if compared.units:
        return f"by the paired t test, {describe_missed(compared.units, unit_of(clusters))}"
    if not compared.guarded:
        return ""
    return f"{compared.guarded}, so {'without assumptions' if span else 'with little certainty'}"


def _possible(low: float, values: Sequence[float], unit: str) -> float:
    """Return a possible lower bound: times, costs and counts are not below 0, but scores may be."""
    return low if unit == "score" or min(values) < 0 else max(low, 0.0)


# Verdicts by evidence: a confidence bound of the value must clear the threshold, not the value alone.
#
# A gate passes where both bounds are on the right side of the threshold, and fails where both are on the wrong side.
# Else it is undecided, and the verdict says what would settle it. Each bound holds by itself with the gate's
# confidence. NumPy is imported when such a gate is judged.

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
    from rag_harness.stats.paired_tests import BoundReach

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


# What decides a gate, for people: the bound beside its value, so that figure and verdict never contradict each other.
#
# A gate with ``@`` is decided by a one-sided bound. The two-sided 95 % interval of its value is wider: its end may lie
# beyond the threshold of a gate that has passed.

_DECIDED = ("passed", "failed")


def how_sure(said: Mapping[str, Any], gate: Gate | None, digits: int = 2) -> str:
    """Return the bounds of a gate's value as text: ``at least 0.502``; empty without bounds.

    For a gate with ``@`` the text has the bound that decides, or both bounds where they leave it open. For any other
    gate it has the 95 % interval, with ``digits`` decimals of a share.

    Args:
        said: the verdict, as ``summary.json`` has it.
        gate: the gate; None where its text cannot be read.
    """
    unit, found = said.get("unit", "share"), ends(said.get("bounds"))
    is_difference = gate is not None and isinstance(gate.right, Reference)
    if found is not None and gate is not None and said.get("threshold") is not None:
        target = _target(gate, said)
        return bound_said(found, gate, target, unit, decided(found, gate.op, target), "between {} and {}")
    between = ends(said.get("interval"))
    # Without bounds something else has decided, such as an early stop: its reason says what.
    if between is None or ("confidence" in said and said["state"] in _DECIDED):
        return ""
    difference = "difference " if is_difference else ""
    return difference + bounds(*between, unit, signed=is_difference, digits=digits)


def beside_bounds(said: Mapping[str, Any], gate: Gate | None) -> str:
    """Return the reason of a verdict without the bounds that ``how_sure`` says, and without which cases these are for.

    Args:
        said: the verdict, as ``summary.json`` has it.
        gate: the gate; None where its text cannot be read.
    """
    reason, found = str(said.get("reason") or ""), ends(said.get("bounds"))
    if found is None or gate is None or said.get("threshold") is None:
        return reason
    target = _target(gate, said)
    stated = bound_said(found, gate, target, said.get("unit", "share"), decided(found, gate.op, target))
    before, is_there, after = reason.partition(f"{stated} for ")
    if not is_there:
        return reason
    after = after.removeprefix(f"{gate.counts} like these").lstrip(",; ")
    return "; ".join(filter(None, [before.rstrip(",; "), after]))


def decisive_ends(said: Mapping[str, Any]) -> Interval | None:
    """Return the ends of what ``how_sure`` says: the bounds of a gate with ``@``, else the interval; None for none."""
    return ends(said.get("bounds")) or ends(said.get("interval"))


def ends(interval: Sequence[float | None] | None) -> Interval | None:
    """Return the ends of an interval in ``summary.json``; an open one, null there, is infinite."""
    if not interval:
        return None
    low, high = interval
    return -inf if low is None else low, inf if high is None else high


def _target(gate: Gate, said: Mapping[str, Any]) -> float:
    """Return what the bounds are compared with: the threshold, or the offset where they bound a difference."""
    return gate.right.offset if isinstance(gate.right, Reference) else float(said["threshold"])


# Gates that are judged as a family: the probability that any verdict is wrong is at most 5 % (family-wise error rate).
#
# Take 20 gates exactly at their thresholds, each wrong in at most 5 % of runs: in more than half of the runs one of
# them is wrong. Holm's procedure (1979) prevents that. With m undecided gates, each is judged at confidence 1 - α / m.
# Decided gates leave the family, so that m shrinks; the steps end when no gate is decided any more. Pure.


def judged_together(gates: Sequence[Gate], confidence: float, judged: Callable[[Gate], Verdict]) -> list[Verdict]:
    """Return a verdict for each gate. The gates that ask for evidence are judged as one family.

    Args:
        gates: gates of a run.
        confidence: confidence with which all verdicts of the family hold at once, in [0, 1]. It replaces each gate's
            own.
        judged: judges a gate at the gate's own confidence.
    """
    found = [judged(gate) for gate in gates]
    # A gate without bounds was not tested: it is not in the run, or fails for another reason.
    still = [place for place, verdict in enumerate(found) if gates[place].confidence is not None and verdict.bounds]
    family = len(still)
    while still:
        each = 1 - (1 - confidence) / len(still)
        for place in still:
            found[place] = _of_family(
                judged(replace(gates[place], confidence=100 * each)), gates[place], family, confidence
            )
        left = [place for place in still if not _is_decided(found[place])]
        if len(left) == len(still):
            break
        still = left
    return found


def _is_decided(verdict: Verdict) -> bool:
    right = verdict.gate.right
    target = right.offset if isinstance(right, Reference) else right
    return verdict.bounds is not None and decided(verdict.bounds, verdict.gate.op, target) != "undecided"


def _of_family(verdict: Verdict, gate: Gate, family: int, confidence: float) -> Verdict:
    said = f"together with {family - 1} other gate{'s' * (family != 2)}" if family > 1 else ""
    # The text shows the confidence of the family, not the one that Holm's procedure judged this gate at.
    own = replace(gate, confidence=100 * confidence)
    return replace(verdict, gate=own, family=family, reason=", ".join(part for part in (verdict.reason, said) if part))


class PeoplesMean(NamedTuple):
    """The estimated mean of people's labels, its interval, and how it was estimated.

    It is the 95 % interval. For a gate that asks for evidence, each end holds by itself with the gate's confidence.
    """

    value: float
    interval: Interval
    said: str


Correct: TypeAlias = Callable[[Gate, Mapping[str, float]], PeoplesMean]
"""Corrects the mean of the cases' values. A DataError says why that is not possible."""


def not_at_hand(gate: Gate, values: Mapping[str, float]) -> PeoplesMean:  # noqa: ARG001 - what a Correct takes
    """Refuse to correct: the caller has no calibrations.

    Raises:
        DataError: always.
    """
    raise DataError("no calibration is at hand here")


def corrections(judges: Path, output: Path) -> Correct:
    """Return a function that corrects scores of the run in ``output`` by the calibrations in ``judges``."""

    def correct(gate: Gate, values: Mapping[str, float]) -> PeoplesMean:
        from rag_harness.evaluation.judges.calibration.agreement import read_calibrations
        from rag_harness.evaluation.judges.calibration.corrections import corrected_mean, corrected_panel_mean
        from rag_harness.records.manifest import read_manifest

        # Each bound of a gate that asks for evidence holds by itself; both together hold with a lower confidence.
        confidence = 0.95 if gate.confidence is None else 2 * gate.confidence / 100 - 1
        if rule := read_manifest(output).suites[gate.suite].panel:
            each = _panel_scores(gate, values, output)
            judged = set.intersection(*(set(scores.values) for scores in each))
            others = [value for case, value in values.items() if case not in judged]
            found = corrected_panel_mean(rule, each, read_calibrations(judges), others, confidence)
        else:
            scores = _scores(gate, values, output)
            others = [value for case, value in values.items() if case not in scores.values]
            found = corrected_mean(scores, read_calibrations(judges), others, confidence)
        return PeoplesMean(found.value, found.interval, found.said)

    return correct


def corrected_verdict(
    gate: Gate, values: Mapping[str, float], threshold: float, correct: Correct, remarks: tuple[bool, str], unit: str
) -> Verdict:
    """Judge the corrected mean. Where it cannot be corrected, the gate fails with the reason."""
    lost, reason = remarks
    try:
        found = correct(replace(gate, confidence=None), values)
        bounds = correct(gate, values).interval if gate.confidence is not None else None
    except DataError as why:
        return Verdict(gate, "failed", reason=f"cannot be calibrated: {why}", n=len(values))
    state: VerdictState = "passed" if meets_threshold(found.value, gate.op, threshold) and not lost else "failed"
    said = ", ".join(part for part in (found.said, reason) if part)
    point = Verdict(gate, state, found.value, threshold, len(values), found.interval, said)
    return point if bounds is None else by_bounds(point, bounds, lost, unit, "more labels would settle it")


def _scores(gate: Gate, values: Mapping[str, float], output: Path) -> ExperimentScores:
    """Return the judge's scores behind ``values``: those of this run, which has one judge."""
    lines = {line.query_id: line for line in _lines_of_run(gate, output) if line.value == values.get(line.query_id)}
    judges = {(line.author, line.version) for line in lines.values()}
    if not judges:
        raise DataError(_nobody(gate))
    if len(judges) > 1:
        raise DataError(f"{len(judges)} judges have scored {gate.measure} of {gate.suite} in this run; use one")
    ((author, version),) = judges
    return _of(gate, version, author, lines)


def _panel_scores(gate: Gate, values: Mapping[str, float], output: Path) -> list[ExperimentScores]:
    """Return each judge's scores of the answers in ``values``, in the order of the panel."""
    from rag_harness.records.manifest import read_manifest
    from rag_harness.records.scores import Author

    by_judge: dict[Author, dict[str, ScoreLine]] = {
        Author(*author): {} for author in read_manifest(output).suites[gate.suite].authors
    }
    for line in _lines_of_run(gate, output):
        if line.query_id in values:
            by_judge[line.author][line.query_id] = line
    if not all(by_judge.values()):
        raise DataError(_nobody(gate))
    return [_of(gate, next(iter(lines.values())).version, author, lines) for author, lines in by_judge.items()]


def _nobody(gate: Gate) -> str:
    return f"no judge has scored {gate.measure} of {gate.suite} in this run; only judged measures have one"


def _lines_of_run(gate: Gate, output: Path) -> list[ScoreLine]:
    """Return the lines of the gate's measure that this run's judges have written of this run's rows."""
    from rag_harness.records.manifest import read_manifest
    from rag_harness.records.row import rows_in
    from rag_harness.records.scores import SCORES, Author, read_scores, row_digest

    suite = read_manifest(output).suites[gate.suite]
    ours = {Author(*author) for author in suite.authors}
    there = {row.query_id: row_digest(row) for row in rows_in(output / suite.file)}
    version = suite.rubrics.get(gate.measure)
    return [
        line
        for line in read_scores(output / SCORES / suite.file)
        if (line.measure, line.repeat, line.row) == (gate.measure, 0, there.get(line.query_id))
        and line.author in ours
        and version in (None, line.version)
    ]


def _of(gate: Gate, version: int, author: Author, lines: Mapping[str, ScoreLine]) -> ExperimentScores:
    from rag_harness.evaluation.judges.calibration.corrections import ExperimentScores

    found = {case: line.value for case, line in lines.items() if line.value is not None}
    rows = {case: line.row for case, line in lines.items()}
    return ExperimentScores(gate.suite, gate.measure, version, author, found, rows)
