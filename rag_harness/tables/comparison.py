"""The comparison of two runs case by case.

Changes, tests, conversations that got worse, and differences of the runs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from rag_harness.core.errors import DataError, PrerequisiteError
from rag_harness.core.types import GOLDEN
from rag_harness.evaluation.measures import measure_named
from rag_harness.records.manifest import QUERIES, seconds_of
from rag_harness.runs.gates.evidence import describe_clusters, span_of, unit_of
from rag_harness.runs.gates.grammar import CONVERSATION
from rag_harness.stats import Interval, difference_interval, holm, holm_counts, permutation_test
from rag_harness.stats import mean_or_none as stats_mean_or_none
from rag_harness.stats.inputs import differences, in_both
from rag_harness.stats.means import mean_or_none
from rag_harness.stats.paired_tests import Paired, paired
from rag_harness.tables.answer_warnings import time_said
from rag_harness.tables.pairwise import ALPHA, CasesNeeded, excludes_0
from rag_harness.tables.reader import SavedRun, SavedSuite
from rag_harness.tables.suite_table import TURN
from rag_harness.tables.wording import Side, better_named, listed

# Which measures of two runs are tested: those that gates are on, else one of what is found and one of answers.
#
# Each further test makes p of all others larger, so measures that nobody asked for are shown and not tested.

RETRIEVAL = ("recall@5", "evidence_recall", "recall@10", "recall@3", "recall@1", "context_precision", "mrr@10")
ANSWERS = (
    "correct", "answer_correctness", "nugget_recall", "expectations", "g_mean", "factuality", "faithfulness",
    "token_f1", "answer_relevancy",
)  # fmt: skip
"""Measures of what is found and of what is answered, the most telling first."""


def tested_measures(known: Sequence[str], asked: Collection[str], gated: Collection[str]) -> set[str]:
    """Return which of the measures that both runs have are tested.

    Args:
        known: the measures that both runs have values of.
        asked: those that somebody has named for this comparison.
        gated: those that the gates of the later run are on.
    """
    for wanted in (asked, gated):
        if found := set(known) & set(wanted):
            return found
    usual = [next((name for name in order if name in known), "") for order in (RETRIEVAL, ANSWERS)]
    return set(filter(None, usual)) or set(known)


_ABSENT = "nothing"
_SHOWN = 36
_COMMIT = 12


def run_named(run: SavedRun) -> str:
    """Return date and commit of a run."""
    when = time_said(run.date)
    return f"{when} at commit {run.commit[:_COMMIT]}" if run.commit else when


def data_differences(before: SavedRun, now: SavedRun) -> Iterator[str]:
    """Yield the data that differ, each as "data.name: before -> now"."""
    return _differences(before.fingerprint.get("data", {}), now.fingerprint.get("data", {}), "data")


def to_compare(before: SavedRun, now: SavedRun) -> str:
    """Say how two runs of edited questions become comparable, and how many they share by their ids; "" for others.

    A run keeps the digest of all questions together, so which of the shared ones were edited is not known.
    """
    asked = {name: [_asked(run.suites[name]) for run in (before, now)] for name in _shared(before, now)}
    shared = [f"{len(old & new)} of {len(old | new)} in {name}" for name, (old, new) in asked.items()]
    documents = [run.fingerprint.get("data", {}).get("documents") for run in (before, now)]
    if not shared or documents[0] != documents[1]:
        return ""
    checkout = f"git checkout {before.commit[:_COMMIT]}" if before.commit else "check out the commit of before"
    return (
        f"\nQuestions with the same id in both runs: {listed(shared)}. Which of them were edited is not kept.\n"
        "To compare both runs on the same questions, ask this pipeline the questions of before: pytest "
        f"--rag-queries=FILE --rag-output=DIR. Or ask the pipeline of before ({checkout}) the present questions in the "
        "same way. Then compare the two folders."
    )


def other_differences(before: SavedRun, now: SavedRun) -> Iterator[str]:
    """Yield the models, settings, packages, documents and code that differ, each as "name: before -> now"."""
    parts = [{k: v for k, v in run.fingerprint.items() if k != "data"} for run in (before, now)]
    found = [
        *_differences(parts[0], parts[1], ""),
        *_differences(before.packages, now.packages, "packages"),
        *_differences(before.commit[:_COMMIT], now.commit[:_COMMIT], "commit"),
    ]
    documents = sorted({f"documents: {old} -> {new}" for old, new in _in_both(before.pages, now.pages).values()})
    yield from (*found, *documents)
    made = _in_both(before.code, now.code)
    if made and not found and not documents:
        # Their code or settings differ, and nothing above tells in what.
        yield from (f"code or other settings of {name}: {old} -> {new}" for name, (old, new) in made.items())


def warnings(before: SavedRun, now: SavedRun) -> Iterator[str]:
    """Yield in sentences what makes two runs hard to compare."""
    then, later = time_said(before.date), time_said(now.date)
    if then != later and seconds_of(before.date) > seconds_of(now.date):
        dates = f"before is of {then}, now is of {later}"
        yield f"The run that is called before is the later one: {dates}. Name the earlier run first."
    for name in _asked_in_each(before, now):
        yield f"{name} was asked in both runs: whether its code, or the service, is the same is not known."
    for name in _shared(before, now):
        old, new = (_asked(run.suites[name]) for run in (before, now))
        if old != new:
            yield (
                f"The cases differ: {name} was asked {len(old)} before and {len(new)} now. "
                f"Only the {len(old & new)} that were asked both times are compared."
            )
    for name in _shared(before, now):
        measures = set(before.suites[name].measures()) & set(now.suites[name].measures())
        reasons = {why: None for each in sorted(measures) if (why := now.judged_otherwise(before, name, each))}
        said = (why.replace("this run by", "now by") for why in reasons)
        yield from (f"Judged measures of {name} are not compared: before was {why}." for why in said)
        if others := [each for each in sorted(measures) if now.owed_otherwise(before, name, each)]:
            yield f"What answers of {name} owe has changed: {', '.join(others)} cannot be compared."


def notes(before: SavedRun, now: SavedRun) -> Iterator[str]:
    """Yield what was not compared, and why."""
    for whose, here, there in (("before", before, now), ("now", now, before)):
        alone = sorted(set(here.suites) - set(there.suites))
        if alone:
            yield f"only {whose}: {', '.join(alone)}"
    for name, whose, others in measured_alone(before, now):
        yield f"{name}: only {whose} was measured on {', '.join(others)}"
    for name in _shared(before, now):
        for whose, run in (("before", before), ("now", now)):
            yield from _incomplete(f"{name}: {whose}", run.suites[name])


def measured_alone(before: SavedRun, now: SavedRun) -> Iterator[tuple[str, str, list[str]]]:
    """Yield a suite, ``before`` or ``now``, and the measures that only this one has values of."""
    for name in _shared(before, now):
        then, later = (set(run.suites[name].measures()) for run in (before, now))
        for whose, others in (("before", then - later), ("now", later - then)):
            if others:
                yield name, whose, sorted(others)


def are_of_other_rows(before: SavedRun, now: SavedRun) -> bool:
    """Whether code or documents of two runs are known to differ: such runs of one second are two."""
    return bool(_in_both(before.pages, now.pages) or _in_both(before.code, now.code))


def _asked_in_each(before: SavedRun, now: SavedRun) -> list[str]:
    """Return the suites where it is not known whether the same model has answered in both runs."""
    return [name for name in _shared(before, now) if name in before.asked and name in now.asked]


def _shared(before: SavedRun, now: SavedRun) -> list[str]:
    return sorted(set(before.suites) & set(now.suites))


def _asked(suite: SavedSuite) -> set[str]:
    return {case_id for case_id, case in suite.cases.items() if case.state != "left out"}


def _in_both(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Return what both know and what differs, by name."""
    known = [name for name in sorted(before) if before[name] and now.get(name) and before[name] != now[name]]
    return {name: (_shown(before[name]), _shown(now[name])) for name in known}


def _differences(before: Any, now: Any, path: str) -> Iterator[str]:
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for key in sorted({*before, *now}):
            yield from _differences(before.get(key), now.get(key), f"{path}.{key}".lstrip("."))
    elif before != now:
        yield f"{path}: {_shown(before)} -> {_shown(now)}"


def _shown(value: Any) -> str:
    text = _ABSENT if value in (None, "") else ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN // 2]}…{text[-_SHOWN // 2 :]}"


def _incomplete(whose: str, suite: SavedSuite) -> Iterator[str]:
    total, selected, lost = suite.total_of({}), suite.selected_of({}), suite.lost_of({})
    if selected < total:
        yield f"{whose} looked at {selected} of {total} cases"
    if lost:
        yield f"{whose} lost {lost} of {total} cases to a crash; they count as the worst"


_SAME = 1e-12


@dataclass(frozen=True, slots=True)
class WorseConversation:
    """A conversation that got worse.

    Attributes:
        conversation: its id.
        turn: number of its first turn that got worse.
        case: id of the case of that turn.
        by: how much the mean over its turns got worse, above 0.
    """

    conversation: str
    turn: int
    case: str
    by: float


@dataclass(frozen=True, slots=True)
class ConversationChanges:
    """The change of conversations from one run to another.

    Attributes:
        total: conversations with a turn that has a value in both runs.
        worse: those whose mean over such turns got worse, the largest change first.
        better: number of those whose mean got better.
    """

    total: int
    worse: tuple[WorseConversation, ...]
    better: int


def conversation_changes(
    now: SavedSuite, new: Mapping[str, float], old: Mapping[str, float], better: Side
) -> ConversationChanges | None:
    """Return the change of a suite's conversations; None without turns, or where neither side of the measure is better.

    Args:
        now: the suite in the later run.
        new: value of each case in the later run.
        old: value of each case in the earlier run.
        better: the better side of the measure.
    """
    worse_by: dict[str, dict[int, tuple[str, float]]] = {}
    for case_id, value in new.items():
        labels = now.cases[case_id].slices
        if better and case_id in old and CONVERSATION in labels and labels.get(TURN, "").isdecimal():
            by = (old[case_id] - value) * (1 if better == "higher" else -1)
            worse_by.setdefault(labels[CONVERSATION], {})[int(labels[TURN])] = case_id, by
    if not worse_by:
        return None
    means = {name: mean_or_none(by for _, by in turns.values()) or 0.0 for name, turns in worse_by.items()}
    worse = sorted((name for name, by in means.items() if by > _SAME), key=lambda name: -means[name])
    found = tuple(_worse(name, worse_by[name], means[name]) for name in worse)
    return ConversationChanges(len(means), found, sum(by < -_SAME for by in means.values()))


def _worse(name: str, turns: Mapping[int, tuple[str, float]], by: float) -> WorseConversation:
    turn = min(turn for turn, (_, each) in turns.items() if each > _SAME)
    return WorseConversation(name, turn, turns[turn][0], by)


@dataclass(frozen=True, slots=True)
class MeasureChange:
    """A measure of a suite in two runs, over the cases that have a value in both.

    ``difference`` is the mean of now - before, with its interval by the gates' method; None where the cases allow none.
    ``p`` is from the paired permutation test, with Holm's adjustment over the suite's tested measures that differ; None
    where every case has the same value in both, or where it is not tested. ``among`` is the number of measures that
    Holm's procedure judges p among, and the interval has the ``confidence`` of that; ``alone`` is the 95 % interval, as
    of the only measure. ``assumed`` is the number of cases or clusters, each a ``unit``, whose paired t test it is of;
    0 where it is of none. ``rose`` and ``fell`` are the cases with a higher and a lower value. ``better`` is the better
    side; "" where the measure has none. ``conversations`` are None where no case is a turn. ``clusters`` is the number
    of clusters that the cases are in, and 0 where they are in none; ``alike`` says it in words, as "on 9 pages".
    ``needed`` says how many cases a difference needs to be sure; None in a change that no run was read for. ``errors``
    says that too many trials of one run ended with an error: then neither is better, except in its errors.
    ``is_tested`` is False for measures that are only shown (``report.tested``): no change of theirs is sure.
    """

    suite: str
    measure: str
    n: int
    before: float
    now: float
    difference: float
    interval: Interval | None
    p: float | None
    rose: tuple[str, ...]
    fell: tuple[str, ...]
    better: Side
    conversations: ConversationChanges | None = None
    clusters: int = 0
    needed: CasesNeeded | None = field(default=None, compare=False, repr=False)
    errors: str = ""
    alike: str = ""
    alone: Interval | None = None
    among: int = 1
    assumed: int = 0
    unit: str = "case"
    is_tested: bool = True

    @property
    def confidence(self) -> float:
        """The confidence of the interval."""
        return 1 - ALPHA / self.among

    @property
    def units(self) -> int:
        """The number of differences whose signs the test flips: of clusters where there are any, else of cases."""
        return self.clusters or self.n

    @property
    def is_same(self) -> bool:
        """Whether every case has the same value in both runs."""
        return not (self.rose or self.fell)

    @property
    def is_sure(self) -> bool:
        """Whether chance hardly explains it: p is at most 5 %, the interval does not contain 0, and errors are few."""
        return not self.errors and self.p is not None and self.p <= ALPHA and excludes_0(self.interval)

    @property
    def is_moving(self) -> bool:
        """Whether p shows a change, or would the interval of the only measure, and both together do not."""
        if self.is_same or self.is_sure or self.errors or not self.is_tested:
            return False
        return (self.alone is not None and excludes_0(self.alone)) or (self.p is not None and self.p <= ALPHA)

    @property
    def is_surely_worse(self) -> bool:
        """Whether it got worse, and chance hardly explains that."""
        return self.is_sure and self.direction == "worse"

    @property
    def direction(self) -> Literal["better", "worse", "changed"]:
        """What the change means. A measure without a better side has only changed."""
        if not self.better:
            return "changed"
        return "better" if (self.difference > 0) == (self.better == "higher") else "worse"

    @property
    def gained(self) -> tuple[str, ...]:
        """The cases that got better; none where the measure has no better side."""
        return {"higher": self.rose, "lower": self.fell, "": ()}[self.better]

    @property
    def lost(self) -> tuple[str, ...]:
        """The cases that got worse; none where the measure has no better side."""
        return {"higher": self.fell, "lower": self.rose, "": ()}[self.better]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The changes between two runs.

    Attributes:
        before: date and commit of the earlier run.
        now: date and commit of the later run.
        differing: settings, models, packages and so on that differ, each as "name: before -> now".
        warnings: sentences about what makes the two runs hard to compare.
        notes: what was not compared, and why.
        changes: every measure that both have, those that do not differ included.
        is_same_run: whether both are the same run.
        alone: a suite, ``before`` or ``now``, and the measures that only this one has values of.
    """

    before: str
    now: str
    differing: tuple[str, ...]
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    changes: tuple[MeasureChange, ...]
    is_same_run: bool = False
    alone: tuple[tuple[str, str, list[str]], ...] = ()


def on_common_data(now: SavedRun, before: SavedRun) -> tuple[SavedRun, SavedRun]:
    """Leave out the data of suites that only one of the runs has: they are not compared, so they may differ.

    What a run without --rag-save and --rag-compare did not look at is unknown, not different: such are its documents as
    they were parsed. Those of both runs are then told apart by their files, which every run looks at.
    """
    shared = set(now.suites) & set(before.suites)
    both = set(now.fingerprint.get("data", {})) & set(before.fingerprint.get("data", {}))
    kept = {*({GOLDEN} & shared), *([QUERIES] if shared - {GOLDEN} else []), *(both - {GOLDEN, QUERIES})}

    def reduced(run: SavedRun) -> SavedRun:
        data = {key: value for key, value in run.fingerprint.get("data", {}).items() if key in kept}
        return run.model_copy(update={"fingerprint": {**run.fingerprint, "data": data}})

    return reduced(now), reduced(before)


def compare(now: SavedRun, before: SavedRun, measures: Sequence[str] = ()) -> Comparison:
    """Compare two runs on every suite and measure that both have, or on the given measures only.

    Raises:
        DataError: queries, gold or documents differ; shows how.
    """
    data = list(data_differences(before, now))
    if data:
        shown = "\n  ".join(data)
        raise DataError(
            f"This run and the one of {run_named(before)} are not about the same data, so their measures cannot be "
            f"compared:\n  {shown}{to_compare(before, now)}\n"
            "Save a new baseline of the present data with --rag-save NAME."
        )
    both = [name for name in sorted(now.suites) if name in before.suites]
    return Comparison(
        run_named(before),
        run_named(now),
        tuple(other_differences(before, now)),
        (*warnings(before, now), *_broken(both, now, before)),
        tuple(notes(before, now)),
        tuple(change for name in both for change in _changes(name, now, before, measures)),
        is_same_run=_said_of(now) == _said_of(before) and not are_of_other_rows(before, now),
        alone=() if measures else tuple(measured_alone(before, now)),
    )


def _broken(names: Sequence[str], now: SavedRun, before: SavedRun) -> Iterator[str]:
    for name in names:
        if said := many_errors(now.suites[name], before.suites[name]):
            yield f"{name}: {said}, so it is neither better nor worse"


def _said_of(run: SavedRun) -> tuple[object, ...]:
    """Return what two files of the same run have in common. Two runs of one second may differ in their judges alone."""
    return run.date, run.commit, run.suites, run.judges, run.panels


def _changes(name: str, now_run: SavedRun, before_run: SavedRun, wanted: Sequence[str]) -> list[MeasureChange]:
    now, before = now_run.suites[name], before_run.suites[name]
    both = set(before.measures()) & (set(wanted) or set(now.measures()))
    measures = [
        each
        for each in now.measures()
        if not now_run.judged_otherwise(before_run, name, each) and not now_run.owed_otherwise(before_run, name, each)
    ]
    clusters = now_run.clusters.get(name)
    known = [measure for measure in measures if measure in both]
    chosen = tested_measures(known, wanted, now_run.gated.get(name, ()))
    each_of = (_change(name, measure, now, before, clusters, measure in chosen) for measure in known)
    changes = [change for change in each_of if change is not None]
    # Where no case differs, no sign flip changes anything: this is not a test, and not a reason to correct the others.
    tested = [change for change in changes if change.p is not None]
    raw = [change.p for change in tested if change.p is not None]
    corrected = zip(tested, holm(raw), holm_counts(raw, ALPHA), strict=True) if raw else ()
    found = {change.measure: _corrected(change, p, among, now, before, clusters) for change, p, among in corrected}
    return [found.get(change.measure, change) for change in changes]


def _corrected(
    change: MeasureChange,
    p: float,
    among: int,
    now: SavedSuite,
    before: SavedSuite,
    clusters: Mapping[str, str] | None,
) -> MeasureChange:
    """Return a change with p and interval as one of several measures."""
    change = replace(change, p=p, among=among)
    if among == 1 or change.interval is None:
        return change
    return replace(change, interval=_interval_of(change, now, before, clusters))


def _change(
    name: str,
    measure: str,
    now: SavedSuite,
    before: SavedSuite,
    clusters: Mapping[str, str] | None,
    is_tested: bool,
) -> MeasureChange | None:
    new, old = now.values(measure, {}), before.values(measure, {})
    cases = sorted(new.keys() & old.keys())
    if not cases:
        return None
    a, b = [new[case] for case in cases], [old[case] for case in cases]
    rose = tuple(case for case in cases if new[case] - old[case] > _SAME)
    fell = tuple(case for case in cases if old[case] - new[case] > _SAME)
    means = stats_mean_or_none(b) or 0.0, stats_mean_or_none(a) or 0.0
    found = paired_of(now, before, measure, clusters)
    p = None
    if is_tested and (rose or fell):
        p = _p_by_signs(cases, new, old, clusters) if found.p_permutation is None else found.p_permutation
    better = better_named(measure)
    change = MeasureChange(
        name, measure, len(cases), *means, means[1] - means[0], found.interval, p, rose, fell, better
    )
    return replace(
        change,
        conversations=conversation_changes(now, new, old, better),
        clusters=len({clusters[case] for case in cases}) if clusters else 0,
        alike=describe_clusters([clusters[case] for case in cases]) if clusters else "",
        alone=found.interval,
        assumed=found.assumed,
        unit=unit_of([clusters[case] for case in cases] if clusters else None),
        needed=CasesNeeded(now, before, measure, unit_named(measure), clusters),
        errors="" if measure == "error_rate" else many_errors(now, before),
        is_tested=is_tested,
    )


def many_errors(now: SavedSuite, before: SavedSuite) -> str:
    """Say of which run too many trials ended with an error to call a suite better or worse; empty where few did."""
    said = {name: suite.errors_said for name, suite in (("now", now), ("before", before))}
    return "; ".join(f"{name}, {why}" for name, why in said.items() if why)


def _p_by_signs(
    cases: Sequence[str], new: Mapping[str, float], old: Mapping[str, float], clusters: Mapping[str, str] | None
) -> float:
    """Return p where the paired comparison has none, for all differences are equal; a cluster is one difference."""
    sums: dict[str, float] = {}
    for case in cases:
        of = clusters[case] if clusters else case
        sums[of] = sums.get(of, 0.0) + new[case] - old[case]
    return permutation_test([*sums.values()], [0.0] * len(sums))


def paired_of(now: SavedSuite, before: SavedSuite, measure: str, clusters: Mapping[str, str] | None = None) -> Paired:
    """Return the paired comparison over the cases that have a value in both runs; ``clusters`` are by case."""
    new, old = in_both(now.values(measure, {}), before.values(measure, {}))
    a, b = [*new.values()], [*old.values()]
    span = span_of([*differences(new, old).values()], unit_named(measure), is_difference=True)
    alike = [clusters[case] for case in new] if clusters else None
    return paired(a, b, span=span, clusters=alike)


def _interval_of(
    change: MeasureChange, now: SavedSuite, before: SavedSuite, clusters: Mapping[str, str] | None
) -> Interval:
    """Return the interval of a change that allows one, with the confidence of the change."""
    values = differences(*in_both(now.values(change.measure, {}), before.values(change.measure, {})))
    span = span_of([*values.values()], unit_named(change.measure), is_difference=True)
    alike = [clusters[case] for case in values] if clusters else None
    return difference_interval([*values.values()], span, change.confidence, alike)


def unit_named(measure: str) -> str:
    """Return the unit of a measure; empty for a measure of somebody's plug-in that is not installed here."""
    try:
        return measure_named(measure).unit
    except PrerequisiteError:
        return ""
