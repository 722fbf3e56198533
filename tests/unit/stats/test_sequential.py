"""A race's claims are right together, at any time of looking, and are those of a race reckoned by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, product
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_harness.stats.sequential import EliminatedArm, Race, against, shown_worse

ABC = ("a", "b", "c")
Unit = tuple[float, ...]


def raced(arms: Sequence[str], units: Sequence[Unit], **how: float) -> Race:
    race = Race(arms, **how)  # type: ignore[arg-type]
    for unit in units:
        race.add(dict(zip(arms, unit, strict=True)))
    return race


def claims(race: Race) -> tuple[dict[str, int], set[str], set[str]]:
    return {arm: gone.after for arm, gone in race.gone.items()}, set(race.left), set(race.good_enough)


def units_of(*means: float, n: int, seed: int = 0) -> list[Unit]:
    """Return units of right and wrong answers, with a difficulty that all arms share."""
    rng = np.random.default_rng(seed)
    same, own = rng.random((n, 1)), rng.random((n, len(means)))
    drawn = np.where(rng.random((n, len(means))) < 0.6, same, own)
    return [tuple(map(float, unit)) for unit in drawn < np.array(means)]


# Many of the drawn units favour one arm, so that claims are made.
_FAVOURED = st.sampled_from([(1.0, 0.0, 0.0), (1.0, 0.0, 1.0), (1.0, 1.0, 0.0), (0.75, 0.5, 0.0)])
_UNITS = st.lists(_FAVOURED | st.tuples(*[st.sampled_from([0.0, 0.25, 1.0])] * 3), min_size=20, max_size=60)


class ByHand:
    """The race of three arms, with each product and each intersection of hypotheses written out."""

    def __init__(self, margin: float) -> None:
        self.margin, self.bar = margin, 20.0
        self.factors: dict[tuple[str, str], list[tuple[float, float]]] = {pair: [] for pair in product(ABC, ABC)}
        self.gone: dict[str, int] = {}
        self.good: set[str] = set()
        self.aside: set[str] = set()
        self.n = 0

    def wealth(self, better: str, worse: str, which: int) -> float:
        gains = [gain[which] for gain in self.factors[better, worse]]
        return sum(prod(1 + stake * gain for gain in gains) for stake in (0.1, 0.2, 0.4, 0.8)) / 4

    def evidence(self, claim: tuple[str, str]) -> float:
        kind, arm = claim
        others = [other for other in ABC if other != arm]
        if kind == "beaten":
            return sum(self.wealth(other, arm, 0) for other in others) / 2
        return min((self.wealth(arm, other, 1) for other in others if other not in self.gone), default=float("inf"))

    def is_shown(self, claim: tuple[str, str]) -> bool:
        kinds = ("beaten", "good") if self.margin else ("beaten",)
        others = [other for other in ABC if other != claim[1]]
        sets = [
            [claim, *zip(chosen, some, strict=True)]
            for size in range(3)
            for some in combinations(others, size)
            for chosen in product(kinds, repeat=size)
        ]
        return all(sum(map(self.evidence, each)) / len(each) >= self.bar * (1 - 1e-12) for each in sets)

    def add(self, unit: Unit) -> None:
        self.n += 1
        value, left = dict(zip(ABC, unit, strict=True)), [arm for arm in ABC if arm not in self.gone]
        still_in = [arm for arm in left if arm not in self.aside]
        for first, second in product(still_in, still_in):
            gain = value[first] - value[second]
            self.factors[first, second].append((gain, gain + self.margin))
        shown = [arm for arm in left if self.is_shown(("beaten", arm))]
        self.good |= {arm for arm in left if self.margin and self.is_shown(("good", arm))}
        self.gone |= dict.fromkeys(shown, self.n)


@settings(max_examples=40, deadline=None)
@given(units=_UNITS, margin=st.sampled_from([0.0, 0.25]), aside=st.sampled_from(["", *ABC]))
def test_claims_are_those_reckoned_by_hand(units: list[Unit], margin: float, aside: str) -> None:
    by_hand, race = ByHand(margin), Race(ABC, margin=margin)
    for n, unit in enumerate(units):
        if n == 8 and aside in race.left and len(race.left) > 1:
            race.set_aside(aside)
            by_hand.aside = {aside}
        by_hand.add(unit)
        race.add(dict(zip(ABC, unit, strict=True)))
        still_open = set(ABC) - by_hand.gone.keys()
        assert claims(race) == (by_hand.gone, still_open - by_hand.aside, by_hand.good & still_open)
        assert set(race.aside) == still_open & by_hand.aside


@settings(max_examples=25, deadline=None)
@given(units=_UNITS, order=st.permutations(range(3)), margin=st.sampled_from([0.0, 0.3]))
def test_the_order_of_arms_changes_nothing(units: list[Unit], order: list[int], margin: float) -> None:
    turned = [tuple(unit[place] for place in order) for unit in units]
    other = raced([ABC[place] for place in order], turned, margin=margin)
    assert claims(raced(ABC, units, margin=margin)) == claims(other)


@settings(max_examples=25, deadline=None)
@given(units=_UNITS, low=st.floats(-5, 5), width=st.floats(0.5, 9))
def test_values_of_another_span_are_scaled(units: list[Unit], low: float, width: float) -> None:
    moved = [tuple(min(low + width * value, low + width) for value in unit) for unit in units]
    plain = raced(ABC, units, margin=0.3)
    other = Race(ABC, margin=0.3 * width, span=(low, low + width))
    for unit in moved:
        other.add(dict(zip(ABC, unit, strict=True)))
    # Rounding may move a claim by a unit; the arms are the same.
    assert set(other.left) ^ set(plain.left) <= {
        arm for arm, gone in (other.gone | plain.gone).items() if gone.after == len(units)
    }


def every_course(chances: Mapping[Unit, float], n: int) -> Iterator[tuple[list[Unit], float]]:
    """Yield each possible course of n units, with its chance."""
    for course in product(chances, repeat=n):
        yield list(course), prod(chances[unit] for unit in course)


def wealths(race: Race) -> tuple[float, float]:
    """Return the evidence that b is not the best, and that a is good enough."""
    every = np.ones(len(race.left), bool)
    return float(against(race._bets.better, every)[1]), float(race._bets.near(every)[0])


def test_the_mean_wealth_over_all_courses_of_equal_arms_is_one() -> None:
    tied: dict[Unit, float] = {(1, 0, 0): 0.2, (0, 1, 0): 0.2, (0, 0, 1): 0.2, (1, 1, 1): 0.1, (0, 0, 0): 0.3}
    mean = sum(chance * wealths(raced(ABC, course))[0] for course, chance in every_course(tied, 4))
    assert mean == pytest.approx(1)


def test_the_mean_wealth_over_all_courses_of_an_arm_at_the_margin_is_one() -> None:
    apart: dict[Unit, float] = {(0, 1): 0.5, (1, 0): 0.25, (1, 1): 0.25}  # a is 0.25 below b
    mean = sum(chance * wealths(raced("ab", course, margin=0.25))[1] for course, chance in every_course(apart, 5))
    assert mean == pytest.approx(1)


def test_the_best_of_clearly_different_arms_is_left_and_the_others_say_when_they_left() -> None:
    race = raced(ABC, units_of(0.9, 0.5, 0.2, n=150))
    assert (race.state, race.left, race.n) == ("one left", ("a",), 150)
    assert race.gone["c"].after < race.gone["b"].after < 150
    assert race.gone["b"].better == "a"


def test_equal_arms_are_equal_within_the_margin_and_open_without_one() -> None:
    units = units_of(0.7, 0.7, 0.7, n=400)
    race = raced(ABC, units, margin=0.25)
    assert (race.state, race.good_enough) == ("equal within the margin", ABC)
    without = raced(ABC, units)
    assert (without.state, without.good_enough) == ("open", ())


def test_arms_with_equal_values_everywhere_stay_open_without_a_margin() -> None:
    assert raced(ABC, [(1.0, 1.0, 1.0)] * 500).left == ABC


SIXTEEN = tuple(map(str, range(16)))


def wrong(runs: int, is_wrong: Callable[[Race], bool], *means: float, n: int, margin: float = 0.0) -> int:
    return sum(is_wrong(raced(SIXTEEN, units_of(*means, n=n, seed=seed), margin=margin)) for seed in range(runs))


def test_of_sixteen_equal_arms_one_leaves_in_few_races() -> None:
    # 5 % of 25 races. Without the correction it is 8.
    assert wrong(25, lambda race: bool(race.gone), *[0.7] * 16, n=300) <= 1


def test_arms_below_the_margin_are_called_good_enough_in_few_races() -> None:
    means = [0.8] + [0.698] * 15
    # The bound is 5 % of 25 races; without the correction it is 3.
    assert wrong(25, lambda race: bool(set(race.good_enough) - {"0"}), *means, n=400, margin=0.1) <= 1


@settings(max_examples=25, deadline=None)
@given(units=_UNITS, margin=st.sampled_from([0.0, 0.3]))
def test_an_arm_withdrawn_before_the_first_unit_might_never_have_been_there(units: list[Unit], margin: float) -> None:
    race = Race(ABC, margin=margin)
    assert race.withdraw("b") == ()
    for unit in units:
        race.add(dict(zip(ABC, unit, strict=True)))
    assert claims(race) == claims(raced("ac", [(unit[0], unit[2]) for unit in units], margin=margin))


@settings(max_examples=25, deadline=None)
@given(units=_UNITS, margin=st.sampled_from([0.0, 0.3]))
def test_withdrawing_an_arm_that_is_never_better_changes_no_other_claim(units: list[Unit], margin: float) -> None:
    race = raced((*ABC, "zero"), [(*unit, 0.0) for unit in units], margin=margin)
    gone, left, good = claims(race)
    assert race.withdraw("zero") == ()
    gone.pop("zero", None)
    assert claims(race) == (gone, left - {"zero"}, good - {"zero"})


def test_arms_that_only_a_withdrawn_one_was_better_than_come_back_and_race_on() -> None:
    race = raced(ABC, [(1.0, 0.0, 0.0), (1.0, 1.0, 1.0)] * 20)
    assert race.left == ("a",)
    assert race.withdraw("a") == ("b", "c")
    assert set(race.left) == {"b", "c"}
    assert race.gone == {}
    for _ in range(40):
        race.add({"b": 1.0, "c": 0.0})
    assert (race.left, race.state) == (("b",), "one left")
    assert race.gone["c"].better == "b"


def test_arms_that_others_were_better_than_too_stay_gone() -> None:
    race = raced(ABC, [(1.0, 1.0, 0.0)] * 30)
    assert race.gone == {"c": EliminatedArm(race.gone["c"].after, "a")}
    assert race.withdraw("a") == ()
    assert (race.left, race.state) == (("b",), "one left")


def test_an_arm_set_aside_may_still_be_the_best() -> None:
    race = raced(ABC, units_of(0.9, 0.5, 0.2, n=5))
    race.set_aside("b")
    for unit in units_of(0.9, 0.5, 0.2, n=150, seed=1):
        race.add({"a": unit[0], "c": unit[2]})
    assert (race.left, race.aside, race.state) == (("a",), ("b",), "open")
    assert set(race.gone) == {"c"}


def test_arms_set_aside_are_in_again_where_the_last_one_in_is_withdrawn() -> None:
    race = Race(ABC)
    race.set_aside("b")
    assert race.withdraw("a") == ()
    assert (race.withdraw("c"), race.left, race.state) == (("b",), ("b",), "one left")


def test_not_all_arms_leave_at_once() -> None:
    race = Race(ABC)
    race._bets._better += 1000  # more than bets can give against all arms at once
    race.add({"a": 0.5, "b": 1.0, "c": 0.0})
    assert (race.left, set(race.gone)) == (("b",), {"a", "c"})


def test_only_an_arm_still_in_is_set_aside_and_never_the_last_one() -> None:
    race = Race("ab")
    race.set_aside("a")
    for arm in "abc":
        with pytest.raises(ValueError, match=f"{arm} cannot be set aside; the arms still in are b"):
            race.set_aside(arm)


def test_values_of_arms_that_have_left_are_not_looked_at() -> None:
    race = raced(ABC, [(1.0, 1.0, 0.0)] * 30)
    race.add({"a": 1.0, "b": 0.0, "c": float("nan")})
    race.add({"a": 1.0, "b": 0.0})
    assert race.n == 32


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"a": 1.0, "b": float("nan"), "c": 0.0}, "got nan for b"),
        ({"a": 1.0, "b": float("inf"), "c": 0.0}, "got inf for b"),
        ({"a": 1.0, "b": 0.5, "c": -0.1}, "between 0 and 1; got -0.1 for c"),
        ({"a": 1.0, "c": 0.0}, "none for b"),
        ({"a": 1.0, "b": 1.0, "c": 0.0, "d": 0.0}, "d is not an arm of this race"),
    ],
)
def test_a_unit_that_cannot_be_taken_is_refused_and_changes_nothing(values: Mapping[str, float], said: str) -> None:
    race = Race(ABC)
    with pytest.raises(ValueError, match=said):
        race.add(values)
    assert race.n == 0


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"arms": []}, "arms of different names"),
        ({"arms": ["a", "a"]}, "arms of different names"),
        ({"margin": -0.1}, "a margin is from 0 to below 1"),
        ({"margin": 1.0}, "a margin is from 0 to below 1"),
        ({"margin": float("nan")}, "a margin is from 0 to below 1"),
        ({"confidence": 95}, "confidence is a share"),
        ({"span": (0.0, float("inf"))}, "two finite ends"),
        ({"span": (1.0, 1.0)}, "two finite ends"),
    ],
)
def test_a_race_that_cannot_be_run_is_refused(how: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Race(**({"arms": ABC} | how))  # type: ignore[arg-type]


def test_only_arms_of_the_race_are_withdrawn_once_and_never_the_last_one() -> None:
    race = Race("ab")
    with pytest.raises(ValueError, match="c is not an arm of this race; got a, b"):
        race.withdraw("c")
    race.withdraw("a")
    with pytest.raises(ValueError, match="a is not an arm of this race; got b"):
        race.withdraw("a")
    with pytest.raises(ValueError, match="b is the last arm"):
        race.withdraw("b")


# Which arms are shown to be worse: against all signs drawn by hand, and how often a claim is false.


def by_hand(values: list[list[float]], confidence: float) -> set[tuple[int, int]]:
    """Step down over every pattern of signs."""
    array = np.array(values)
    pairs = [(i, j) for i in range(array.shape[1]) for j in range(array.shape[1]) if i != j]
    differences = {(i, j): array[:, i] - array[:, j] for i, j in pairs}
    differences = {pair: each for pair, each in differences.items() if each.any()}
    shown: set[tuple[int, int]] = set()
    while True:
        still = {pair: each for pair, each in differences.items() if pair not in shown}
        if not still:
            return shown
        largest = [
            max(float(each @ signs) / float(np.sqrt(each @ each)) for each in still.values())
            for signs in (np.array(pattern) for pattern in product([-1.0, 1.0], repeat=len(array)))
        ]
        limit = float(np.quantile(largest, confidence))
        new = {pair for pair, each in still.items() if each.sum() / np.sqrt(each @ each) > limit + 1e-9}
        if not new:
            return shown
        shown |= new


@pytest.mark.parametrize("seed", range(6))
def test_claims_are_those_of_all_patterns_of_signs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.random((9, 3)) + np.array([0.0, 0.15, 0.5])
    shown = shown_worse(values, 0.9, draws=60_000)
    assert {(int(i), int(j)) for i, j in np.argwhere(shown)} == by_hand(values.tolist(), 0.9)


def test_false_claims_are_rare_among_many_arms() -> None:
    """Eight arms that are alike. Held against a single pair, most of these would claim something."""
    rng, false = np.random.default_rng(1), 0
    for seed in range(300):
        difficulty = rng.random((40, 1))
        values = (rng.random((40, 8)) * 0.6 + difficulty * 0.4 < 0.5).astype(float)
        false += bool(shown_worse(values, 0.95, draws=500, seed=seed).any())
    # 15 are expected of a test that is exact; more than 26 come by chance in 3 of 1,000.
    assert false <= 26


def test_what_is_clearly_worse_is_shown_and_equal_arms_are_not() -> None:
    rng = np.random.default_rng(3)
    first = rng.random(60)
    shown = shown_worse(np.column_stack([first, first, first - 0.3]), 0.95)
    assert {(int(i), int(j)) for i, j in np.argwhere(shown)} == {(0, 2), (1, 2)}


def test_few_units_or_arms_show_nothing_and_what_is_no_number_is_refused() -> None:
    assert not shown_worse(np.ones((1, 3))).any()
    assert not shown_worse(np.ones((5, 1))).any()
    with pytest.raises(ValueError, match="finite numbers"):
        shown_worse(np.array([[np.nan, 1.0], [1.0, 1.0]]))
