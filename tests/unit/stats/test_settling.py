"""The stated number of cases settles a gate as often as stated, with the bounds of the gate itself."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from math import log

import numpy as np
import pytest

from rag_harness.stats import Values, difference_bounds, mean_bounds
from rag_harness.stats.means import ValueRange, bounded_bounds
from rag_harness.stats.sample_size import BoundReach

SHARE: ValueRange = (0.0, 1.0)
RUNS = 200


def chance(values: Values, span: ValueRange | None, gap: float, n: int, is_difference: bool) -> float:
    """Return how many runs of n cases like these have a lower bound that clears the threshold."""

    @cache  # of values of few kinds, many runs draw the same
    def low_of(drawn: tuple[float, ...]) -> float:
        if is_difference:
            return difference_bounds(drawn, span).interval.low
        if span and not np.isin(drawn, span).all():
            return bounded_bounds(drawn, span, resamples=400).low
        return mean_bounds(drawn, span).low

    rng, threshold = np.random.default_rng(9), float(np.mean(values)) - gap
    drawn = (tuple(sorted(rng.choice(values, n))) for _ in range(RUNS))
    return sum(low_of(each) >= threshold - 1e-12 for each in drawn) / RUNS


def test_moments_are_of_the_cases_and_the_worst_one() -> None:
    cases = [0.2, 0.5, 1.0, 1.0]
    every = np.array([*cases, 0.0])
    reach, counts = BoundReach(cases, SHARE), np.array([[1.0, 1.0, 2.0]])
    assert reach._central(counts, every.mean(keepdims=True), 2) == pytest.approx(every.var())


_RNG = np.random.default_rng(0)
CASES: dict[str, tuple[Values, ValueRange | None, float, bool]] = {
    "36 of 40 right": ([1.0] * 36 + [0.0] * 4, SHARE, 0.05, False),
    "skewed": (_RNG.beta(8, 1.2, 100), SHARE, 0.03, False),
    "a third zero": (np.where(_RNG.random(60) < 0.3, 0, _RNG.beta(5, 2, 60)), SHARE, 0.08, False),
    "times": (_RNG.lognormal(0, 0.5, 60), None, 0.1, False),
    "small differences": (_RNG.normal(0.05, 0.1, 40), (-1.0, 1.0), 0.05, True),
    "small differences without assumptions": (_RNG.normal(0.02, 0.05, 40), (-1.0, 1.0), 0.03, False),
    "few differ": ([0.4] * 6 + [-0.4] * 2 + [0.0] * 92, (-1.0, 1.0), 0.02, True),
}


@pytest.mark.parametrize("name", CASES)
def test_the_cases_needed_decide_in_eight_of_ten_runs(name: str) -> None:
    values, span, gap, is_difference = CASES[name]
    n = BoundReach(values, span, is_difference=is_difference).cases(gap)
    assert n is not None
    # 75 to 85 %, and one and a half standard errors of 200 runs.
    assert 0.71 <= chance(values, span, gap, n, is_difference) <= 0.89


def test_where_none_has_failed_it_is_how_often_that_would_have_to_go_on() -> None:
    assert BoundReach([1.0] * 20, SHARE).cases(0.05) == pytest.approx(log(0.05) / log(0.95), abs=1.5)


def test_more_is_needed_for_less_and_none_is_enough_for_nothing() -> None:
    reach = BoundReach([1.0, 0.0, 0.5, 0.75] * 10, SHARE)
    found = [reach.cases(gap) for gap in (0.2, 0.1, 0.05, 0.02)]
    assert all(a and b and 3 < b / a < 7 for a, b in pairwise(found))
    assert reach.cases(0) is None
    assert reach.cases(1e-7) is None


def test_more_confidence_and_clusters_need_more() -> None:
    values = np.random.default_rng(1).beta(2, 1, 20)
    once, sure = BoundReach(values, SHARE).cases(0.1), BoundReach(values, SHARE, 0.99).cases(0.1)
    assert once
    assert sure
    assert sure > 1.4 * once
    thrice = BoundReach(np.repeat(values, 3), SHARE, clusters=list(np.repeat(np.arange(20), 3))).cases(0.1)
    assert thrice == pytest.approx(3 * once, rel=0.15)


def test_the_reach_of_so_many_is_the_gap_that_needs_them() -> None:
    reach = BoundReach(np.random.default_rng(2).beta(2, 1, 60), SHARE)
    n = reach.cases(0.05)
    assert n
    assert reach.of(n) <= 0.05 < reach.of(round(n * 0.95))


def test_runs_that_have_no_bound_separate_nothing() -> None:
    reach = BoundReach(np.random.default_rng(0).normal(5, 10, 200), is_difference=True)
    assert reach.of(2) == np.inf
    assert (reach.cases(5.0) or 0) > 20
