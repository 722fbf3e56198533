"""The figure of the winner on questions that it was not chosen by: the one that may be believed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rag_harness.derived.tuning.contenders import Contender
from rag_harness.derived.tuning.outcome import HeldOut, RaceFigure
from rag_harness.derived.tuning.racing import Ask, Groups
from rag_harness.derived.tuning.space import Space
from rag_harness.derived.tuning.values import Values
from rag_harness.measures import measure_named
from rag_harness.stats import difference_interval, mean_interval
from rag_harness.stats.inputs import UndefinedError


def held_out(
    space: Space, ask: Ask, is_spent: Callable[[], bool], winner: Contender, today: Contender, groups: Groups
) -> HeldOut | None:
    """Ask winner and today's configuration what the race never asked, and return both figures.

    None where the budget does not reach all questions: those that were asked first are no sample of all.
    Questions of one group are not independent, and the intervals know that.
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
