"""Lets configurations race: all on the same questions, in one random order. Who is shown to be worse leaves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from rag_harness.derived.tuning.asking import Rows
from rag_harness.derived.tuning.candidates import Candidate
from rag_harness.derived.tuning.space import Space
from rag_harness.derived.tuning.values import Values, of_group
from rag_harness.measures import measure_named
from rag_harness.stats.racing import Race
from rag_harness.types import Case

Groups = Sequence[tuple[Case, ...]]
Ask = Callable[[Sequence[Candidate], Sequence[Case]], Mapping[str, Rows]]
"""Returns the rows of each configuration, by its name."""
Ended = Literal["one is left", "good enough", "all questions were asked", "the budget is spent"]
TOGETHER = 8
"""Groups of questions that are asked before a look is taken: a look costs nothing, but calls in flight are fast."""
SOONEST = 20
"""Questions before a constraint that is surely broken takes a configuration out."""


@dataclass(frozen=True)
class Left:
    """Why a configuration left: after how many questions, and the better one, or the constraint that it broke."""

    after: int
    better: str = ""
    why: str = ""


@dataclass
class Raced:
    """What came of a race.

    Attributes:
        ended: why it ended.
        asked: number of questions that those who stayed were asked.
        values: by name of the configuration.
        left: who left, by name.
        looks: after each look, the number of questions and of configurations still in.
        good_enough: those shown to be at most the margin below the best.
    """

    ended: Ended = "all questions were asked"
    asked: int = 0
    values: dict[str, Values] = field(default_factory=dict)
    left: dict[str, Left] = field(default_factory=dict)
    looks: list[tuple[int, int]] = field(default_factory=list)
    good_enough: tuple[str, ...] = ()

    def stayed(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Return the configurations that are not told from the best."""
        return [each for each in candidates if each.name not in self.left]


@dataclass(frozen=True)
class Course:
    """What a race goes over.

    Attributes:
        groups: questions in their random order.
        measures: what each row is measured by: objective and constraints.
        margin: differences up to this do not matter; 0 where all questions are to be asked.
        together: groups that are asked at once; a look is taken after each group, whatever it is.
    """

    groups: Groups
    measures: Sequence[str]
    margin: float = 0.0
    together: int = TOGETHER


def race(
    space: Space,
    candidates: Sequence[Candidate],
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
    longest = max(map(len, groups))
    mean_size = sum(map(len, groups)) / len(groups)
    arms = [each.name for each in candidates]
    # A margin between means of questions is a smaller one between groups, which count by their questions.
    running = Race(arms, margin=course.margin * mean_size / longest, confidence=space.confidence)
    for start in range(0, len(groups), course.together):
        batch = groups[start : start + course.together]
        still = came.stayed(candidates)
        cases = [case for group in batch for case in group]
        rows = ask(still, cases)
        if is_spent():
            # A row that was not asked for want of money says nothing about its configuration.
            came.ended = "the budget is spent"
            break
        for each in still:
            came.values[each.name].take(rows[each.name], cases, course.measures)
        for group in batch:
            came.asked += len(group)
            _add(running, came, group, longest, first.better == "lower", first.name)
            _leave(running, came, space)
            came.looks.append((came.asked, len(came.stayed(candidates))))
        say(f"{came.asked} questions, {came.looks[-1][1]} of {len(candidates)} configurations are left")
        came.good_enough = running.good_enough if course.margin else ()
        if len(came.stayed(candidates)) == 1:
            came.ended = "one is left"
            break
        if came.good_enough:
            came.ended = "good enough"
            break
    return came


def _add(running: Race, came: Raced, group: Sequence[Case], longest: int, lower: bool, measure: str) -> None:
    still = running.left
    running.add({name: of_group(came.values[name].of.get(measure, {}), group, longest, lower) for name in still})


def _leave(running: Race, came: Raced, space: Space) -> None:
    for name, gone in running.gone.items():
        if name not in came.left:
            came.left[name] = Left(came.asked, gone.better)
    if came.asked < SOONEST:
        return
    for name in running.left:
        broken = next((each for each in space.constraints if came.values[name].breaks(each)), None)
        if broken is not None and len(running.left) > 1:
            value = came.values[name].kept(broken)[1]
            came.left[name] = Left(came.asked, why=f"{broken.what} is {value:.4g}, not {broken.op} {broken.right:g}")
            for back in running.withdraw(name):
                came.left.pop(back, None)
