"""Tables of slices: who is the best of each, whom it beats, and by how much."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean

from tests.unit.page.recount import chance
from tests.unit.page.recount.compared_tables import Family, Key, Pair, interval_problem, named
from tests.unit.page.recount.fits import problem
from tests.unit.page.recount.formulas import LOWER, is_measured, values_of
from tests.unit.page.recount.page_tables import Shown, ShownTable
from tests.unit.page.recount.plain_tables import NONE, measure_of, span_of
from tests.unit.page.recount.rows import RunFiles, Suite

Place = tuple[str, str, str]
"""Data, slice, measure."""


@dataclass(frozen=True)
class _Contest:
    """The values of each experiment that has one on a slice."""

    place: Place
    cases: int
    values: Mapping[str, Mapping[str, float]]

    def pair(self, first: str, second: str) -> Pair:
        """Return both sides over the cases that both have."""
        a, b = self.values[first], self.values[second]
        common = [case for case in a if case in b]
        return Pair([a[case] for case in common], [b[case] for case in common])

    def led(self, name: str) -> tuple[int, float]:
        """Return how many more others an experiment is better than worse than, and its mean, the more the better."""
        sign = -1 if self.place[2] in LOWER else 1
        others = [self.pair(name, other) for other in self.values if other != name]
        by = [sign * fmean(pair.differences) for pair in others if pair.first]
        return sum((d > 0) - (d < 0) for d in by), sign * fmean(self.values[name].values())


class _Contests:
    """All slices of a table, and their tests, which are one family."""

    def __init__(self, files: RunFiles, table: ShownTable) -> None:
        places = dict.fromkeys(_place(files, table, row) for row in table.rows)
        self.by_place = {place: _contest(files, place) for place in places}
        every = [(each, pair) for each in self.by_place.values() for pair in combinations(sorted(each.values), 2)]
        self.family = Family({_key(each.place, *pair): each.pair(*pair) for each, pair in every})


def best(files: RunFiles, table: ShownTable) -> Iterator[str]:
    """Recount who is the best of each slice, and who is not."""
    contests = _Contests(files, table)
    for row in table.rows:
        said = dict(zip(table.head, (cell.text for cell in row), strict=True))
        contest = contests.by_place[_place(files, table, row)]
        yield problem(said["cases"], "{}", contest.cases)
        name = min(contest.values) if said["best"] == "all" else said["best"]
        most = max(map(contest.led, contest.values))
        yield "" if contest.led(name) >= (most[0], most[1] - 1e-9) else f"{said['slice']}: {name} is not the best"
        yield _mean(said["mean"], contest, name)
        yield from (f"{said['slice']}: {what}" for what in _told(said, contest, name, contests.family) if what)


def _mean(text: str, contest: _Contest, name: str) -> str:
    values = list(contest.values[name].values())
    form, wanted = ("{}", []) if len(values) == 1 else ("{} [{}, {}]", [*_between(contest, values)])
    few = f" (n={len(values)})" if len(values) < contest.cases else ""
    return problem(text, form + few, fmean(values), *wanted)


def _between(contest: _Contest, values: list[float]) -> chance.Interval:
    return chance.mean_interval(values, span_of(contest.place[2], values))


def _told(said: Mapping[str, str], contest: _Contest, name: str, family: Family) -> Iterator[str]:
    """Check who is beaten, who is the same and who is neither."""
    for other in contest.values.keys() - {name}:
        pair, sure = contest.pair(name, other), family.is_significant(_key(contest.place, *sorted((name, other))))
        if sure is None:
            continue
        same = pair.is_flat and bool(pair.first) and not any(pair.differences)
        where = "beats" if sure else "the same on every case" if same else "no sure difference from"
        yield "" if other in _names(said[where]) else f"{other} is not among {where}"
    shown = [
        each for where in ("beats", "no sure difference from", "the same on every case") for each in _names(said[where])
    ]
    yield "" if sorted(shown) == sorted(contest.values.keys() - {name}) else f"{shown} is not everybody"


def _names(text: str) -> list[str]:
    return [] if text == NONE else text.split(", ")


def pairs(files: RunFiles, table: ShownTable) -> Iterator[str]:
    """Recount the differences, their intervals and p-values."""
    contests = _Contests(files, table)
    for row in table.rows:
        contest = contests.by_place[_place(files, table, row)]
        title, n, difference, between, by_t, by_chance = (cell.text for cell in row[-6:])
        first, _, second = title.partition(" - ")
        pair = contest.pair(first, second)
        if not pair.first:
            yield "" if {n, difference, between, by_t, by_chance} == {NONE} else f"{title}: no case has it in both"
            continue
        yield problem(n, "{}", len(pair.first))
        yield problem(difference, "{}", fmean(pair.differences))
        key = _key(contest.place, *sorted((first, second)))
        yield interval_problem("[{}, {}]", between, pair, contest.place[2], contests.family.among(key))
        yield from contests.family.p_problems(key, by_t, by_chance)
    shown = len(table.rows)
    wanted = sum(len(contest.values) - 1 for contest in contests.by_place.values())
    yield "" if shown == wanted else f"{shown} differences of {wanted}"


def _place(files: RunFiles, table: ShownTable, row: list[Shown]) -> Place:
    said = dict(zip(table.head, (cell.text for cell in row), strict=True))
    known = next(iter({suite.record["data"] for suite in files.suites.values()} - {"golden"}))
    return said.get("data", known), said["slice"], named(measure_of(said["measure"]))


def _contest(files: RunFiles, place: Place) -> _Contest:
    data, (key, _, value), measure = place[0], place[1].partition("="), place[2]
    suites = {name: suite for name, suite in files.suites.items() if suite.record["data"] == data}
    inside = {name: _inside(suite, key, value) for name, suite in suites.items()}
    found = {name: values_of(suite, measure) if is_measured(suite, measure) else {} for name, suite in suites.items()}
    values = {name: {case: v for case, v in mine.items() if case in inside[name]} for name, mine in found.items()}
    return _Contest(place, max(map(len, inside.values())), {name: mine for name, mine in values.items() if mine})


def _inside(suite: Suite, key: str, value: str) -> set[str]:
    return {
        case
        for case in suite.asked
        if {"query_type": suite.cases[case]["query_type"], **suite.cases[case]["labels"]}.get(key) == value
    }


def _key(place: Place, first: str, second: str) -> Key:
    return f"{first} - {second}", " ".join(place)
