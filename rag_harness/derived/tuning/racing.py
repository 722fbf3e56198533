"""Lets configurations race: all on the same questions, in one random order. Who is shown to be worse leaves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from rag_harness.derived.tuning.asking import RowsByQuery
from rag_harness.derived.tuning.contenders import Contender
from rag_harness.derived.tuning.space import Space
from rag_harness.derived.tuning.values import Values, of_group
from rag_harness.measures import measure_named
from rag_harness.stats.best_set import shown_worse
from rag_harness.stats.racing import Race
from rag_harness.types import Case

Groups = Sequence[tuple[Case, ...]]
Ask = Callable[[Sequence[Contender], Sequence[Case]], Mapping[str, RowsByQuery]]
"""Returns the rows of each configuration, by its name."""
Ended = Literal["one is left", "good enough", "all questions were asked", "the budget is spent"]
TOGETHER = 8
"""Groups of questions that are asked before a look is taken: a look costs nothing, but calls in flight are fast."""
HALVED_AFTER = (1 / 8, 1 / 4, 1 / 2)
"""Parts of the groups after which the better half goes on. The others are set aside: that saves two of three calls, and
the configuration that is found is nearly as good (``benchmarks/racing.py``). Nothing is claimed of them."""
SOONEST = 20
"""Questions before a constraint that is surely broken takes a configuration out."""


@dataclass(frozen=True)
class Left:
    """Why a configuration left: after how many questions, and the better one by a measure, or the broken constraint."""

    after: int
    better: str = ""
    measure: str = ""
    why: str = ""


@dataclass
class Raced:
    """What came of a race.

    Attributes:
        ended: why it ended.
        asked: number of questions that those who stayed were asked.
        values: by name of the configuration.
        left: who left, by name.
        aside: who was set aside, by name: after how many questions.
        looks: after each look, the number of questions and of configurations still in.
        good_enough: those shown to be at most the margin below the best.
    """

    ended: Ended = "all questions were asked"
    asked: int = 0
    values: dict[str, Values] = field(default_factory=dict)
    left: dict[str, Left] = field(default_factory=dict)
    aside: dict[str, int] = field(default_factory=dict)
    looks: list[tuple[int, int]] = field(default_factory=list)
    good_enough: tuple[str, ...] = ()

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
) -> Raced:
    """Race the candidates on groups of questions by the first measure of the objective.

    Args:
        space: objective, constraints, confidence.
        candidates: those that race.
        course: what the race goes over.
        ask: asks questions.
        is_spent: whether the budget is gone.
        say: hears how far it is.
    """
    groups = course.groups
    came, first = Raced(values={each.name: Values() for each in candidates}), measure_named(space.objective[0])
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
            return came
        for each in still:
            came.values[each.name].take(rows[each.name], cases, course.measures)
        for group in batch:
            came.asked += len(group)
            running.add(_values(came, running.left, group, first.name, lower))
            _leave(running, came, space)
            came.looks.append((came.asked, len(came.stayed(candidates))))
        say(f"{came.asked} questions, {came.looks[-1][1]} of {len(candidates)} configurations are left")
        came.good_enough = running.good_enough if course.margin else ()
        while halves and start + len(batch) >= halves[0]:
            halves.pop(0)
            _set_aside(running, came, first.name, lower)
        if len(came.stayed(candidates)) == 1:
            came.ended = "one is left"
            return came
        if came.good_enough:
            came.ended = "good enough"
            return came
    look_once(space, came, came.stayed(candidates), groups, (1 + space.confidence) / 2)
    return came


def race_of_found(
    space: Space, candidates: Sequence[Contender], course: Course, ask: Ask, say: Callable[[str], None]
) -> Raced:
    """Hold the candidates against each other by what they find. All questions are asked, and one look is taken.

    No call is saved by stopping early, and one look shows more than many.
    """
    came = Raced(values={each.name: Values() for each in candidates})
    cases = [case for group in course.groups for case in group]
    rows = ask(candidates, cases)
    for each in candidates:
        came.values[each.name].take(rows[each.name], cases, course.measures)
    came.asked = len(cases)
    look_once(space, came, candidates, course.groups, space.confidence)
    say(f"{came.asked} questions, {came.looks[-1][1]} of {len(candidates)} configurations are left")
    return came


def look_once(space: Space, came: Raced, candidates: Sequence[Contender], groups: Groups, confidence: float) -> None:
    """Take out those that are shown to be worse than another by all their values together."""
    import numpy as np

    first, names = measure_named(space.objective[0]), [each.name for each in candidates]
    rows = [_values(came, names, group, first.name, first.better == "lower") for group in groups]
    array = np.array([[row[name] for name in names] for row in rows])
    shown, means = shown_worse(array, confidence, seed=space.seed), array.mean(axis=0)
    for place in np.flatnonzero(shown.any(axis=0)):
        better = int(np.where(shown[:, place], means, -np.inf).argmax())
        came.left[names[place]] = Left(came.asked, names[better], first.name)
    came.looks.append((came.asked, len(names) - len(came.left)))


def _values(came: Raced, names: Sequence[str], group: Sequence[Case], measure: str, lower: bool) -> dict[str, float]:
    return {name: of_group(came.values[name].of.get(measure, {}), group, lower) for name in names}


def _set_aside(running: Race, came: Raced, measure: str, lower: bool) -> None:
    """Ask the worse half no further."""
    still = [name for name in running.left if name not in came.left]

    def behind(name: str) -> float:
        mean = came.values[name].mean(measure)
        worst = 1.0 if lower else 0.0
        value = worst if mean is None else mean
        return value if lower else -value

    for name in sorted(still, key=behind)[(len(still) + 1) // 2 :]:
        running.set_aside(name)
        came.aside[name] = came.asked


def _leave(running: Race, came: Raced, space: Space) -> None:
    for name, gone in running.gone.items():
        if name not in came.left:
            came.left[name] = Left(came.asked, gone.better, space.objective[0])
            came.aside.pop(name, None)
    if came.asked < SOONEST:
        return
    for name in running.left:
        broken = next((each for each in space.constraints if came.values[name].breaks(each)), None)
        if broken is not None and len(running.left) > 1:
            value = came.values[name].kept(broken)[1]
            came.left[name] = Left(came.asked, why=f"{broken.what} is {value:.4g}, not {broken.op} {broken.right:g}")
            for back in running.withdraw(name):
                came.left.pop(back, None)
                came.aside.pop(back, None)
