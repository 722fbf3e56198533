"""The race of configurations on the same questions, and the figure of the winner on held-out questions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Literal

from rag_harness.core.errors import DataError
from rag_harness.core.types import Case
from rag_harness.diagnosis.tuning.outcome import HeldOut, RaceFigure
from rag_harness.diagnosis.tuning.space import Space, constraint_text
from rag_harness.diagnosis.tuning.trials import Contender, RowsByQuery, Values, broken, not_kept, of_group
from rag_harness.evaluation.measures import measure_named
from rag_harness.runs.gates.grammar import CONVERSATION
from rag_harness.stats import difference_interval, mean_interval
from rag_harness.stats.inputs import UndefinedError
from rag_harness.stats.sequential import Race, shown_worse
from rag_harness.tables.suite_table import NO_CLUSTERS, SOURCE_PAGE, check_cluster, clusters_of_cases

# Lets configurations race: all on the same questions, in one random order. Who is shown to be worse leaves.

Groups = Sequence[tuple[Case, ...]]
Ask = Callable[[Sequence[Contender], Sequence[Case]], Mapping[str, RowsByQuery]]
"""Returns the rows of each configuration, by its name."""
Ended = Literal["one is left", "good enough", "all questions were asked", "the budget is spent"]
TOGETHER = 8
"""Groups of questions that are asked before a look is taken: a look costs nothing, but calls in flight are fast."""
HALVED_AFTER = (1 / 8, 1 / 4, 1 / 2)
"""Parts of the groups after which the better half goes on. The others are set aside: that saves two of three calls, and
the configuration that is found is nearly as good (``benchmarks/racing.py``). Nothing is claimed of them."""
_AS_MUCH_TEXT = 1.1
"""Up to a tenth more is as much: chunks are of different lengths."""
SOONEST = 20
"""Questions before a constraint that is surely broken takes a configuration out."""


@dataclass(frozen=True)
class Elimination:
    """Why a configuration left: after how many questions, and the better one by a measure, or the broken constraint."""

    after: int
    better: str = ""
    measure: str = ""
    why: str = ""


@dataclass
class RaceResult:
    """The result of a race.

    Attributes:
        ended: why it ended.
        asked: number of questions that the remaining configurations were asked.
        values: values by the name of the configuration.
        answered: number of questions that were asked of all configurations together.
        left: configurations that left, by name.
        aside: the number of questions after which a configuration was set aside, by name.
        looks: after each look, the number of questions and of remaining configurations.
        good_enough: configurations that are shown to be at most the margin below the best.
    """

    ended: Ended = "all questions were asked"
    asked: int = 0
    values: dict[str, Values] = field(default_factory=dict)
    answered: int = 0
    left: dict[str, Elimination] = field(default_factory=dict)
    aside: dict[str, int] = field(default_factory=dict)
    looks: list[tuple[int, int]] = field(default_factory=list)
    good_enough: tuple[str, ...] = ()

    def take(
        self,
        candidates: Sequence[Contender],
        rows: Mapping[str, RowsByQuery],
        cases: Sequence[Case],
        measures: Sequence[str],
    ) -> None:
        """Take what configurations came to on some questions."""
        for each in candidates:
            self.values[each.name].take(rows[each.name], cases, measures)
        self.answered += len(candidates) * len(cases)

    def stayed(self, candidates: Sequence[Contender]) -> list[Contender]:
        """Return the configurations that are still asked: neither shown to be worse nor set aside."""
        return [each for each in candidates if each.name not in self.left and each.name not in self.aside]


@dataclass(frozen=True)
class Course:
    """What a race goes over.

    Attributes:
        groups: questions in their random order.
        measures: what each row is measured by: objective and constraints.
        margin: differences up to this do not matter; 0 where all questions are to be asked.
    """

    groups: Groups
    measures: Sequence[str]
    margin: float = 0.0


def race(
    space: Space,
    candidates: Sequence[Contender],
    course: Course,
    ask: Ask,
    is_spent: Callable[[], bool],
    say: Callable[[str], None],
) -> RaceResult:
    """Race the candidates on groups of questions by the first measure of the objective.

    Args:
        space: objective, constraints, confidence.
        candidates: the configurations that race.
        course: the questions and measures of the race.
        ask: asks questions.
        is_spent: whether the budget is gone.
        say: takes the progress as text.
    """
    groups = course.groups
    came, first = RaceResult(values={each.name: Values() for each in candidates}), measure_named(space.objective[0])
    # Half of the chance of a wrong claim is for looks under way, half for the one look when all were asked.
    running = Race([each.name for each in candidates], margin=course.margin, confidence=(1 + space.confidence) / 2)
    lower = first.better == "lower"
    halves = [len(groups) * share for share in HALVED_AFTER]
    for start in range(0, len(groups), TOGETHER):
        batch = groups[start : start + TOGETHER]
        still = came.stayed(candidates)
        cases = [case for group in batch for case in group]
        rows = ask(still, cases)
        if is_spent():
            # A row that was not asked for want of money says nothing about its configuration.
            came.ended = "the budget is spent"
            break
        came.take(still, rows, cases, course.measures)
        _check_measured(space, came, cases)
        for group in batch:
            came.asked += len(group)
            running.add(_values(came, running.left, group, first.name, lower))
            _leave(running, came, space)
            came.looks.append((came.asked, len(came.stayed(candidates))))
        # Not between groups of a batch: who comes back because a better one breaks a constraint was not asked these.
        _leave_by_constraint(running, came, space)
        came.looks[-1] = came.asked, len(came.stayed(candidates))
        say(f"{came.asked} questions, {came.looks[-1][1]} of {len(candidates)} configurations are left")
        came.good_enough = running.good_enough if course.margin else ()
        while halves and start + len(batch) >= halves[0]:
            halves.pop(0)
            _set_aside(running, came, first.name, lower)
        if len(came.stayed(candidates)) == 1:
            came.ended = "one is left"
            break
        if came.good_enough:
            came.ended = "good enough"
            break
    _withdraw_broken(running, came, space)
    if came.ended == "all questions were asked":
        _catch_up(came, came.stayed(candidates), course, ask)
        if is_spent():
            came.ended = "the budget is spent"
            return came
        look_once(space, came, came.stayed(candidates), groups, (1 + space.confidence) / 2)
    return came


def _catch_up(came: RaceResult, still: Sequence[Contender], course: Course, ask: Ask) -> None:
    """Ask those that had left and came back what they have missed: the last look compares all on all questions."""
    asked = {each.name: {*came.values[each.name].context, *came.values[each.name].failed} for each in still}
    for each in still:
        missed = [case for group in course.groups for case in group if case.query.query_id not in asked[each.name]]
        if missed:
            came.take([each], ask([each], missed), missed, course.measures)


def race_of_found(
    space: Space,
    candidates: Sequence[Contender],
    course: Course,
    ask: Ask,
    say: Callable[[str], None],
    *,
    in_no_more_text: bool = False,
) -> RaceResult:
    """Compare the candidates by what they find. All questions are asked, and one look is taken.

    Stopping early would save no call, and one look has more power than many.

    Args:
        space: objective, constraints, confidence.
        candidates: the configurations that race.
        course: the questions and measures of the race.
        ask: asks questions.
        say: takes the progress as text.
        in_no_more_text: whether a configuration leaves only where a better one gives a model at most as much text. More
            text finds more, but may lead to worse answers, and costs more.
    """
    came = RaceResult(values={each.name: Values() for each in candidates})
    cases = [case for group in course.groups for case in group]
    came.take(candidates, ask(candidates, cases), cases, course.measures)
    came.asked = len(cases)
    look_once(space, came, candidates, course.groups, space.confidence, in_no_more_text)
    say(f"{came.asked} questions, {came.looks[-1][1]} of {len(candidates)} configurations are left")
    return came


def look_once(
    space: Space,
    came: RaceResult,
    candidates: Sequence[Contender],
    groups: Groups,
    confidence: float,
    in_no_more_text: bool = False,
) -> None:
    """Take out those that are shown to be worse than another by all their values together.

    Who breaks a constraint takes nobody out: those that keep to it would be gone, too, and nothing would be left.
    """
    import numpy as np

    first = measure_named(space.objective[0])
    names = [each.name for each in candidates if not broken(space.constraints, came.values[each.name])]
    if not names:
        came.looks.append((came.asked, len(came.stayed(candidates))))
        return
    rows = [_values(came, names, group, first.name, first.better == "lower") for group in groups]
    array = np.array([[row[name] for name in names] for row in rows])
    shown, means = shown_worse(array, confidence, seed=space.seed), array.mean(axis=0)
    if in_no_more_text:
        text = np.array([came.values[name].mean_context for name in names])
        shown &= text[:, None] <= _AS_MUCH_TEXT * text
    for place in np.flatnonzero(shown.any(axis=0)):
        better = int(np.where(shown[:, place], means, -np.inf).argmax())
        came.left[names[place]] = Elimination(came.asked, names[better], first.name)
    came.looks.append((came.asked, len(came.stayed(candidates))))


def _check_measured(space: Space, came: RaceResult, cases: Sequence[Case]) -> None:
    """Stop at once where a constraint can be checked for no configuration, such as the cost of a model without a price.

    Raises:
        DataError: a measure of a constraint has no value for any question of any configuration.
    """
    for each in space.constraints:
        measure = measure_named(each.measure)
        about = {case.query.query_id for case in cases if not measure.applies(case)}
        answered = any(about & values.context.keys() for values in came.values.values())
        if answered and not any(values.of.get(each.measure) for values in came.values.values()):
            raise DataError(
                f"{space.where}: constraint {constraint_text(each)}: no answer so far has a value of "
                f"{each.measure}, so nobody could keep to it. Leave it out, or give what it needs: --rag-prices."
            )


def _withdraw_broken(running: Race, came: RaceResult, space: Space) -> None:
    """Let nobody be gone because of one that breaks a constraint: those come back as if they had been set aside."""
    gone = {name for name, left in came.left.items() if left.why}
    waiting = list(running.left + running.aside)
    while waiting:
        name = waiting.pop()
        if name in gone or len(gone) + 1 == len(came.values) or not broken(space.constraints, came.values[name]):
            continue
        gone.add(name)
        for back in running.withdraw(name):
            waiting.append(back)
            left = came.left.pop(back, None)
            if left is not None:
                came.aside[back] = left.after


def _values(
    came: RaceResult, names: Sequence[str], group: Sequence[Case], measure: str, lower: bool
) -> dict[str, float]:
    return {name: of_group(came.values[name].of.get(measure, {}), group, lower) for name in names}


def _set_aside(running: Race, came: RaceResult, measure: str, lower: bool) -> None:
    """Ask the worse half no further. Two always stay: which of them is better is what the last look is for."""
    still = [name for name in running.left if name not in came.left]

    def behind(name: str) -> float:
        mean = came.values[name].mean(measure)
        worst = 1.0 if lower else 0.0
        value = worst if mean is None else mean
        return value if lower else -value

    for name in sorted(still, key=behind)[max(2, (len(still) + 1) // 2) :]:
        running.set_aside(name)
        came.aside[name] = came.asked


def _leave(running: Race, came: RaceResult, space: Space) -> None:
    for name, gone in running.gone.items():
        if name not in came.left:
            came.left[name] = Elimination(came.asked, gone.better, space.objective[0])
            came.aside.pop(name, None)


def _leave_by_constraint(running: Race, came: RaceResult, space: Space) -> None:
    if came.asked < SOONEST:
        return
    for name in running.left:
        surely = next((each for each in space.constraints if came.values[name].breaks(each)), None)
        others = [each for each in came.values if each != name and not (each in came.left and came.left[each].why)]
        if surely is not None and others:
            value = came.values[name].kept(surely)[1]
            came.left[name] = Elimination(came.asked, why=not_kept(surely, value))
            for back in running.withdraw(name):
                came.left.pop(back, None)
                came.aside.pop(back, None)


# Divides questions: those that the race sees, and those that it never sees. Questions of one page stay together.

FEWEST_GROUPS = 4
"""The fewest groups on either side: below that neither a race nor an interval says anything."""


@dataclass(frozen=True)
class Split:
    """Questions, divided.

    Attributes:
        by: what stays together: ``source_page``, ``conversation``, another label; empty where each is by itself.
        race: groups of questions in the order in which they are asked.
        held_out: groups that the race never sees.
    """

    by: str
    race: tuple[tuple[Case, ...], ...]
    held_out: tuple[tuple[Case, ...], ...]

    @property
    def asked(self) -> list[Case]:
        """All questions of the race."""
        return [case for group in self.race for case in group]

    @property
    def kept(self) -> list[Case]:
        """All questions that are held out."""
        return [case for group in self.held_out for case in group]


def split(cases: Sequence[Case], share: float, seed: int, named: str = "") -> Split:
    """Return the cases divided at random: the same cases and seed give the same division and order.

    Args:
        cases: those that the objective is about.
        share: part of the questions that is held out.
        seed: of division and order.
        named: the value of ``--rag-cluster``; by default turns of a conversation stay together, else questions whose
            first relevant page is the same.

    Raises:
        DataError: there are too few groups.
        SettingsError: no question has what is ``named``.
    """
    labelled = [(case, case.labels) for case in cases]
    if named not in ("", NO_CLUSTERS):
        check_cluster("the race", labelled, named)
    alike = clusters_of_cases(labelled, named)
    key = alike.key if alike else ""
    groups: dict[str, list[Case]] = {}
    for case, name in zip(cases, alike.of if alike else [""] * len(cases), strict=True):
        groups.setdefault(name or f"\0{case.query.query_id}", []).append(case)
    shuffled = sorted(groups)
    Random(f"split {seed}").shuffle(shuffled)
    wanted, held, kept = share * len(cases), 0, 0
    while held < wanted and kept < len(shuffled):
        held += len(groups[shuffled[kept]])
        kept += 1
    parts = [tuple(tuple(groups[name]) for name in part) for part in (shuffled[kept:], shuffled[:kept])]
    if min(map(len, parts)) < FEWEST_GROUPS:
        what = {SOURCE_PAGE: "page", CONVERSATION: "conversation"}.get(key, key or "question")
        raise DataError(
            f"{len(cases)} questions of {len(groups)} {what}s are too few to divide: {len(parts[0])} for the race and "
            f"{len(parts[1])} held out, and each needs {FEWEST_GROUPS}. Write more: rag-harness kb queries."
        )
    return Split(key, parts[0], parts[1])


def held_out(
    space: Space, ask: Ask, is_spent: Callable[[], bool], winner: Contender, today: Contender, groups: Groups
) -> HeldOut | None:
    """Ask winner and today's configuration the questions outside of the race, and return both figures.

    None where the budget does not suffice for all questions: the first ones are not a sample of all. Questions of one
    group are not independent, and the intervals allow for this.
    """
    cases = [case for group in groups for case in group]
    rows = ask([winner, today], cases)
    if is_spent():
        return None
    cluster = clusters_of(groups)
    measures = space.measures
    found = {each.name: Values() for each in (winner, today)}
    for name, values in found.items():
        values.take(rows[name], cases, measures)
    first = space.objective[0]
    ours, theirs = found[winner.name].of, found[today.name].of
    others = {
        name: (figure_of(name, ours[name], cluster), figure_of(name, theirs[name], cluster))
        for name in measures
        if name != first and ours.get(name) and theirs.get(name)
    }
    return HeldOut(
        figure_of(first, ours[first], cluster),
        figure_of(first, theirs[first], cluster),
        _difference(ours[first], theirs[first], cluster),
        others,
    )


def clusters_of(groups: Groups) -> dict[str, int]:
    """Return the number of the group of each question, by its id."""
    return {case.query.query_id: number for number, group in enumerate(groups) for case in group}


def figure_of(name: str, values: Mapping[str, float], cluster: Mapping[str, int] | None = None) -> RaceFigure:
    """Return a mean with its interval. ``cluster`` says which questions belong together."""
    listed = list(values.values())
    span = (0.0, 1.0) if measure_named(name).unit == "share" else None
    try:
        low, high = mean_interval(listed, span, clusters=_clusters(values, cluster))
    except UndefinedError:
        low, high = (0.0, 1.0) if span else (min(listed), max(listed))
    return RaceFigure(sum(listed) / len(listed), low, high, len(listed))


def _difference(ours: Mapping[str, float], theirs: Mapping[str, float], cluster: Mapping[str, int]) -> RaceFigure:
    pairs = {name: ours[name] - theirs[name] for name in ours if name in theirs}
    listed = list(pairs.values())
    try:
        low, high = difference_interval(listed, (-1, 1), clusters=_clusters(pairs, cluster))
    except UndefinedError:
        low, high = -1.0, 1.0
    return RaceFigure(sum(listed) / len(listed), low, high, len(listed))


def _clusters(values: Mapping[str, float], cluster: Mapping[str, int] | None) -> Sequence[int] | None:
    if cluster is None:
        return None
    found = [cluster[name] for name in values]
    return found if len(set(found)) < len(found) else None
