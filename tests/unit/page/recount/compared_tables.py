"""Tables of differences: between experiments, and between runs of one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from statistics import fmean, stdev

import numpy as np
import scipy.stats

from tests.unit.page.recount import chance
from tests.unit.page.recount.fits import Ends, problem
from tests.unit.page.recount.formulas import LOWER, is_measured, values_of
from tests.unit.page.recount.page_tables import Shown, ShownTable
from tests.unit.page.recount.plain_tables import NONE, measure_of, span_of
from tests.unit.page.recount.rows import RunFiles, Suite

TESTED = ("recall@5", "correct")
"""What is tested between two runs where no gate is set."""
NEITHER = {"abstention_rate", "confidence"}
"""Measures where higher is better on some queries and worse on others."""
_SHORT = {
    "CP": "context_precision",
    "F": "faithfulness",
    "AR": "answer_relevancy",
    "G_mean": "g_mean",
    "HRI": "hri",
    "HRI_gold": "hri_gold",
}
Key = tuple[str, str]
"""A pair of experiments, or a suite, and a measure."""


@dataclass(frozen=True)
class Pair:
    """Values of two experiments, of the cases that both have one of."""

    first: Sequence[float]
    second: Sequence[float]
    are_broken: bool = False

    @property
    def differences(self) -> list[float]:
        """First minus second."""
        return [a - b for a, b in zip(self.first, self.second, strict=True)]

    @property
    def is_flat(self) -> bool:
        """Whether all differences are equal but for rounding."""
        size = max(map(abs, [*self.first, *self.second]), default=0.0)
        return bool(len(self.first) < 2 or np.ptp(self.differences) <= 1e-12 * size)

    def interval(self, measure: str, among: int = 1) -> chance.Interval | None:
        """Return the interval of the mean difference, as one of so many of 95 %; None where nothing bounds it."""
        span = span_of(measure, self.differences, -1.0)
        if len(self.first) < 2 or (self.is_flat and not span):
            return None
        return chance.difference_bounds(self.differences, span, 0.025 / among)


def pair_of(files: RunFiles, first: str, second: str, measure: str) -> Pair:
    """Return the values of both."""
    return between(files.suites[first], files.suites[second], measure)


def between(first: Suite, second: Suite, measure: str) -> Pair:
    """Return the values of both, of the cases that both have one of."""
    a, b = (values_of(side, measure) if is_measured(side, measure) else {} for side in (first, second))
    common = [case for case in a if case in b]
    are_broken = any(len(each.errors) >= 3 and len(each.errors) > 0.05 * len(each.rows) for each in (first, second))
    return Pair([a[case] for case in common], [b[case] for case in common], are_broken)


class Family:
    """Tests that are corrected together, each by its pair and measure."""

    def __init__(self, pairs: Mapping[Key, Pair]) -> None:
        tested = {key: pair for key, pair in pairs.items() if pair.first and not pair.is_flat}
        raw = [float(scipy.stats.ttest_rel(pair.first, pair.second).pvalue) for pair in tested.values()]
        chances = [chance.permutation(pair.differences) for pair in tested.values()]
        # Holm's steps rise with every p, so that the lower ends give the lower end and the upper ends the upper one.
        lows, highs = (chance.holm([ends[side] for ends in chances]) for side in (0, 1))
        self.pairs = tested
        self.by_t = dict(zip(tested, chance.holm(raw), strict=True))
        self.by_chance = dict(zip(tested, zip(lows, highs, strict=True), strict=True))
        by_draws = chance.among(*([ends[side] for ends in chances] for side in (0, 1)))
        self._among = dict(zip(tested, zip(chance.among(raw), by_draws, strict=True), strict=True))

    def among(self, key: Key) -> range:
        """Return among how many tests a pair may be judged: of both tests, the one that has more left."""
        if key not in self._among:
            return range(1, 2)
        by_t, by_chance = self._among[key]
        return range(max(by_t[0], by_chance[0]), max(by_t[-1], by_chance[-1]) + 1)

    def p_problems(self, key: Key, by_t: str, by_chance: str) -> Iterator[str]:
        """Recount both p-values of a pair."""
        if key not in self.by_t:
            yield "" if by_t == by_chance == "-" else f"p of {key}: {by_t}, {by_chance}, where there is no test"
            return
        yield _p(by_t, (self.by_t[key],) * 2, key)
        yield _p(by_chance, self.by_chance[key], key)

    def is_significant(self, key: Key) -> bool | None:
        """Return whether both are at most 5 % and the interval does not hold 0; None where that hangs on the draws."""
        if key not in self.by_t or self.pairs[key].are_broken or self.by_t[key] > 0.05 or self.by_chance[key][0] > 0.05:
            return False
        measure = key[1].split()[-1] if "=" in key[1] else named(key[1])
        found = [self._excludes_0(key, measure, count) for count in self.among(key)]
        if not any(each is not False for each in found):
            return False
        return True if self.by_chance[key][1] <= 0.05 and all(found) else None

    def _excludes_0(self, key: Key, measure: str, count: int) -> bool | None:
        """Return whether the interval as one of so many tests does not hold 0; None where that hangs on the draws."""
        (low_0, low_1), (high_0, high_1) = map(chance.pair, self.pairs[key].interval(measure, count) or (1.0, 1.0))
        return False if low_1 <= 0 <= high_0 else True if low_0 > 0 or high_1 < 0 else None


def _p(text: str, ends: Ends, key: Key) -> str:
    if text == "<0.001":
        return "" if ends[0] < 0.001 else f"p of {key}: {text}, where it is {ends[0]:.4f} to {ends[1]:.4f}"
    found = problem(text, "{}", ends)
    return f"p of {key}: {found}" if found else ""


def study(files: RunFiles, table: ShownTable) -> Iterator[str]:
    """Recount the study's tests."""
    keys = [(row[0].text, row[1].text) for row in table.rows]
    pairs = {key: pair_of(files, *_sides(key[0]), named(key[1])) for key in keys}
    family = Family({key: pair for key, pair in pairs.items() if ", p95" not in key[1]})
    for key, row in zip(keys, table.rows, strict=True):
        pair, (n, difference, between, effect, by_t, by_chance, said) = pairs[key], [cell.text for cell in row[2:]]
        yield problem(n, "{}", len(pair.first))
        if ", p95" in key[1]:
            yield problem(difference, "{}", chance.quantile(pair.first, 0.95) - chance.quantile(pair.second, 0.95))
            yield problem(between, "[{}, {}]", *chance.quantile_difference(pair.first, pair.second, 0.95))
            yield "" if by_t == by_chance == effect == "-" else f"{key}: a quantile has no test"
            continue
        yield problem(difference, "{}", fmean(pair.differences))
        yield interval_problem("[{}, {}]", between, pair, named(key[1]), family.among(key))
        yield problem(effect, *(("-",) if pair.is_flat else ("{}", fmean(pair.differences) / stdev(pair.differences))))
        yield from family.p_problems(key, by_t, by_chance)
        yield _sentence(said, pair, family.is_significant(key), key)


def _sentence(said: str, pair: Pair, is_sure: bool | None, key: Key) -> str:
    """Check the words beside the numbers."""
    if pair.is_flat or is_sure is None:
        return ""
    if pair.are_broken:
        return "" if said.startswith("neither is better: ") else f"{key}: {said!r}, where errors are too many"
    first, second = _sides(key[0])
    better = first if (fmean(pair.differences) > 0) != (named(key[1]) in LOWER) else second
    wanted = f"{better} is better" if is_sure else "not sure, it may be chance: "
    return "" if said.startswith(wanted) else f"{key}: {said!r}, where {wanted!r} is right"


def interval_problem(form: str, text: str, pair: Pair, measure: str, among: range) -> str:
    """Return what is wrong with an interval that is of one of so many tests; empty where it is right for one count."""
    found = [problem(text, form, *ends) if ends else problem(text, "-") for ends in _intervals(pair, measure, among)]
    return "" if "" in found else found[0]


def _intervals(pair: Pair, measure: str, among: range) -> list[chance.Interval | None]:
    return [pair.interval(measure, count) for count in among]


def matrix(files: RunFiles, table: ShownTable) -> Iterator[str]:
    """Recount a matrix whose tests are one family."""
    yield from _matrix(files, _cells(table))


def matrix_by_measure(files: RunFiles, table: ShownTable) -> Iterator[str]:
    """Recount a matrix in which each measure is a family."""
    cells = _cells(table)
    for measure in table.head[1:]:
        yield from _matrix(files, {key: cell for key, cell in cells.items() if key[1] == measure})


def _cells(table: ShownTable) -> dict[Key, Shown]:
    return {
        (row[0].text, measure): cell
        for row in table.rows
        for measure, cell in zip(table.head[1:], row[1:], strict=True)
        if cell.text != NONE
    }


def _matrix(files: RunFiles, cells: Mapping[Key, Shown]) -> Iterator[str]:
    pairs = {key: pair_of(files, *_sides(key[0]), named(key[1])) for key in cells}
    family = Family(pairs)
    for key, cell in cells.items():
        yield from _difference(key, cell, pairs[key], family)


def _difference(key: Key, cell: Shown, pair: Pair, family: Family) -> Iterator[str]:
    difference = fmean(pair.differences)
    if pair.is_flat:
        yield problem(cell.text, "{} (n={})", difference, len(pair.first))
        return
    right = ">" if (difference > 0) != (named(key[1]) in LOWER) else "<"
    sign = right if right in cell.text else ""
    yield "" if family.is_significant(key) in (bool(sign), None) else f"{key}: the sign of {cell.text!r}"
    form = "n = {}; interval [{}, {}]; p (t) {p}, p (perm) {p}".format("{}", "{}", "{}", p="{}")
    by_t, by_chance = re.findall(r"p \([a-z]+\) ([<\d.]+)", cell.hint) or ("", "")
    found = [
        problem(cell.text, f"{{}}{sign} ±{{}}", difference, _half(low, high))
        or problem(cell.hint, form, len(pair.first), low, high, by_t, by_chance)
        for low, high in (ends or (inf, inf) for ends in _intervals(pair, named(key[1]), family.among(key)))
    ]
    yield "" if "" in found else found[0]
    yield from family.p_problems(key, by_t, by_chance)


def _half(low: float | Ends, high: float | Ends) -> float | Ends:
    """Return half the width of an interval whose ends may each lie between two."""
    (low_0, low_1), (high_0, high_1) = chance.pair(low), chance.pair(high)
    return ((high_0 - low_1) / 2, (high_1 - low_0) / 2)


def moved(files: RunFiles, table: ShownTable) -> Iterator[str]:
    """Recount which queries moved how far between two experiments, and their order."""
    _, before, after, _ = table.head
    yield from _moves(files.suites[before], files.suites[after], table)


def moved_between_runs(files: RunFiles, table: ShownTable) -> Iterator[str]:
    """Recount the same between two runs of an experiment."""
    number, rest = parts(r"table-moved-(\d+)-(.+)", table.name)
    suite = next(name for name in files.suites if rest.startswith(f"{name}-"))
    yield from _moves(files.others[int(number) - 1].suites[suite], files.suites[suite], table)


def _moves(before: Suite, after: Suite, table: ShownTable) -> Iterator[str]:
    count, which, title = parts(r"([\d,]+) quer(?:y|ies) went (up|down): (.+)", table.caption)
    measure, sign = measure_of(title), 1 if which == "up" else -1
    new, old = values_of(after, measure), values_of(before, measure)
    moves = {case: sign * (new[case] - old[case]) for case in new if case in old}
    moves = {case: by for case, by in moves.items() if by > 1e-12}
    yield problem(count, "{}", len(moves))
    yield "" if len(table.rows) == min(20, len(moves)) else f"{len(table.rows)} rows of {len(moves)}"
    sizes = [moves.get(row[0].text, -inf) for row in table.rows]
    most = sorted(moves.values(), reverse=True)[: len(sizes)]
    yield "" if np.allclose(sizes, most) else f"{table.caption}: not the largest moves, or not in their order"
    for row in table.rows:
        yield problem(row[1].text, "{}", old[row[0].text])
        yield problem(row[2].text, "{}", new[row[0].text])


def changes(files: RunFiles, table: ShownTable) -> Iterator[str]:
    """Recount what changed between two runs of an experiment."""
    number, suite = parts(r"table-diff-(\d+)-(.+)", table.name)
    sides = files.suites[suite], files.others[int(number) - 1].suites[suite]
    names = [measure_of(row[0].text) for row in table.rows]
    pairs = {(suite, name): between(*sides, name) for name in names}
    tested = [key for key in pairs if key[1] in TESTED]
    chances = [chance.permutation(pairs[key].differences) for key in tested]
    lows, highs = (chance.holm([ends[side] for ends in chances]) for side in (0, 1))
    counts = chance.among(*([ends[side] for ends in chances] for side in (0, 1)))
    adjusted = dict(zip(tested, zip(lows, highs, counts, strict=True), strict=True))
    for place, (key, pair) in enumerate(pairs.items()):
        n, before, now, difference, interval, p, gained, lost = (cell.text for cell in table.rows[place][1:])
        up, down = sum(by > 1e-12 for by in pair.differences), sum(by < -1e-12 for by in pair.differences)
        yield problem(n, "{}", len(pair.first))
        yield problem(f"{before} {now}", "{} {}", fmean(pair.second), fmean(pair.first))
        yield problem(difference, "{}", fmean(pair.differences))
        *ends, among = adjusted.get(key, (1.0, 1.0, range(1, 2)))
        yield interval_problem("[{}, {}]", interval, pair, key[1], among)
        if key in adjusted:
            yield _p(p, (ends[0], ends[1]), key)
        else:
            yield "" if p == "not tested" else f"{key} is tested: {p}"
        if key[1] in NEITHER:
            yield (
                ""
                if gained == lost == NONE
                else f"{key}: {gained} gained and {lost} lost, where neither side is better"
            )
        else:
            yield problem(f"{gained} {lost}", "{} {}", *((down, up) if key[1] in LOWER else (up, down)))


def _sides(pair: str) -> tuple[str, str]:
    first, _, second = pair.partition(" - ")
    return first, second


def named(short: str) -> str:
    """Return the measure of a short name."""
    name = measure_of(short)
    return _SHORT.get(name, name)


def parts(pattern: str, text: str) -> Sequence[str]:
    """Return the groups of a text that must be of this form."""
    found = re.fullmatch(pattern, text)
    assert found, f"{text!r} is not {pattern}"
    return found.groups()
