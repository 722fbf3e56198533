"""Which is better: the paired test where it can be believed, and bounds without assumptions where it cannot."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import scipy.stats

from rag_harness.stats import difference_bounds, difference_interval, mean_bounds, means
from rag_harness.stats.inputs import Floats
from rag_harness.stats.paired_tests import rarest_seen

SPAN = (-1.0, 1.0)
Draw = Callable[[np.random.Generator, int], Floats]
RARE: dict[str, tuple[Draw, float]] = {
    "gains, 1 %": (lambda rng, n: (rng.random(n) < 0.01).astype(float), 0.01),
    "losses, 2 %": (lambda rng, n: -(rng.random(n) < 0.02).astype(float), -0.02),
    "uneven gains, 5 %": (lambda rng, n: (rng.random(n) < 0.05) * rng.random(n), 0.025),
    "rare large losses": (lambda rng, n: (rng.random(n) < 0.3) * 0.2 - (rng.random(n) < 0.06) * 1.0, 0.0),
}


@pytest.mark.parametrize(("mean", "sd", "n", "least"), [(0.05, 0.1, 40, 0.75), (0.02, 0.05, 100, 0.95)])
def test_small_differences_are_seen_nearly_as_often_as_a_paired_t_test_sees_them(
    mean: float, sd: float, n: int, least: float
) -> None:
    """At 40 the guard acts in one run of ten; bounds without assumptions see 5 and 2 % of these differences."""
    rng = np.random.default_rng(0)
    drawn = [rng.normal(mean, sd, n) for _ in range(200)]
    ours = np.mean([difference_bounds(each, SPAN).interval.low > 0 for each in drawn])
    by_t = np.mean([scipy.stats.ttest_1samp(each, 0, alternative="greater").pvalue < 0.05 for each in drawn])
    assert ours >= max(least, by_t - 0.1)


def broken(rng: np.random.Generator, n: int, share: float, depth: float, deviation: float) -> Floats:
    """Return differences of which most are a little up and a few are far down, so that their true mean is 0."""
    up = share * depth / (1 - share)
    return np.where(rng.random(n) < share, -depth, rng.normal(up, deviation, n)).clip(-1, 1)


@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize(
    ("n", "share", "depth", "deviation"),
    [(40, 0.1, 1.0, 0.05), (40, 0.1, 0.3, 0.1), (80, 0.05, 0.6, 0.05), (200, 0.02, 1.0, 0.05), (400, 0.01, 1.0, 0.03)],
)
def test_breaks_that_hardly_a_sample_misses_keep_the_promise(
    monkeypatch: pytest.MonkeyPatch, n: int, share: float, depth: float, deviation: float, clustered: bool
) -> None:
    monkeypatch.setattr(means, "DRAWS", 300)
    rng, runs = np.random.default_rng(6), 80
    assert rarest_seen(n) == pytest.approx(1 / share)
    values = [np.repeat(broken(rng, n, share, depth, deviation), 1 + clustered) for _ in range(runs)]
    pages = list(np.repeat(np.arange(n), 2)) if clustered else None
    better = sum(difference_bounds(each, SPAN, 0.95, pages).interval.low > 0 for each in values)
    ends = [difference_interval(each, SPAN, 0.95, pages) for each in values]
    held = sum(low <= 0 <= high for low, high in ends)
    assert scipy.stats.binomtest(better, runs, 0.05, "greater").pvalue > 0.01
    assert scipy.stats.binomtest(held, runs, 0.94, "less").pvalue > 0.01


@pytest.mark.parametrize("n", [20, 40, 100])
def test_a_sample_that_misses_a_rarer_break_is_better_by_the_test_and_open_without_assumptions(n: int) -> None:
    """No test can be right of it: cases of which none breaks look the same."""
    missed: list[Floats] = []
    rng = np.random.default_rng(7)
    while len(missed) < 20:
        values = broken(rng, n, 1 / (2 * n), 1.0, 0.03)
        missed += [values] if values.min() > -0.5 else []
    by_test = [difference_bounds(each, SPAN) for each in missed]
    assert np.mean([found.interval.low > 0 for found in by_test]) > 0.3
    assert all(found.units == n for found in by_test if not found.guarded)
    assert not any(mean_bounds(each, SPAN).low > 0 for each in missed)


@pytest.mark.parametrize(("n", "seen"), [(20, 0.226), (40, 0.817), (100, 1.0)])
def test_a_difference_is_seen_as_often_as_is_published(n: int, seen: float) -> None:
    """docs/dev/results/verdicts.md, of N(0.05, 0.1)."""
    rng, runs = np.random.default_rng(8), 200
    found = sum(difference_bounds(rng.normal(0.05, 0.1, n).clip(-1, 1), SPAN).interval.low > 0 for _ in range(runs))
    assert scipy.stats.binomtest(found, runs, seen, "less").pvalue > 0.01


@pytest.mark.parametrize("name", RARE)
@pytest.mark.parametrize("n", [40, pytest.param(200, marks=pytest.mark.long), 1000])
def test_rare_differences_decide_wrongly_no_more_often_than_is_said(name: str, n: int) -> None:
    draw, truth = RARE[name]
    rng = np.random.default_rng(1)
    found = [difference_bounds(draw(rng, n), SPAN).interval for _ in range(100)]
    # 5 % and two standard errors of 100 runs.
    assert np.mean([low > truth + 1e-12 for low, _ in found]) <= 0.1
    assert np.mean([high < truth - 1e-12 for _, high in found]) <= 0.1


@pytest.mark.parametrize(
    ("differences", "why"),
    [
        ([0.0] * 40, "nothing differs"),
        ([0.0] * 39 + [0.2], "only one case differs"),
        ([0.1] * 9 + [0.0] * 91, "only 9 cases differ"),
        ([0.1] * 20 + [-1.0], "one case makes up 83% of the squares"),
        ([0.1] * 40, "all values are equal, so nothing is known of their spread"),
    ],
)
def test_the_guard_takes_bounds_without_assumptions_and_says_why(differences: list[float], why: str) -> None:
    found = difference_bounds(differences, SPAN)
    assert found == (mean_bounds(differences, SPAN), why, 0)


def test_ten_cases_that_differ_and_a_fifth_of_the_squares_are_enough() -> None:
    assert not difference_bounds([0.1] * 10 + [0.0] * 90, SPAN).guarded
    # 25 squares of 1 and one of 6.25: a fifth of them all.
    assert not difference_bounds([0.2, -0.2] * 12 + [0.2, 0.5], SPAN).guarded
    assert difference_bounds([0.2, -0.2] * 12 + [0.2, 0.51], SPAN).guarded


def test_clusters_of_equal_differences_are_as_many_as_there_are_clusters() -> None:
    rng = np.random.default_rng(2)
    once = rng.normal(0.05, 0.1, 30)
    thrice, clusters = np.repeat(once, 3), list(np.repeat(np.arange(30), 3))
    assert difference_bounds(thrice, SPAN, 0.95, clusters).interval == pytest.approx(
        difference_bounds(once, SPAN).interval
    )
    few = [0.1] * 12 + [0.0] * 48
    assert difference_bounds(few, SPAN, 0.95, [n // 6 for n in range(60)]).guarded == "only 2 clusters differ"


def test_of_a_population_it_narrows_and_is_exact_at_the_end() -> None:
    values = np.random.default_rng(3).normal(0.05, 0.1, 40)
    like, part = difference_bounds(values, SPAN).interval, difference_bounds(values, SPAN, population=50).interval
    assert like.low < part.low < values.mean() < part.high < like.high
    assert difference_bounds(values, SPAN, population=40).interval == pytest.approx((values.mean(), values.mean()))


def test_the_interval_contains_the_bounds() -> None:
    values = np.random.default_rng(4).normal(0.05, 0.1, 40)
    low, high = difference_interval(values, SPAN)
    bounds = difference_bounds(values, SPAN).interval
    assert low < bounds.low < bounds.high < high


def test_a_bound_is_not_beyond_what_can_be() -> None:
    values = [1.0] * 20 + [0.8] * 12
    assert difference_bounds(values, SPAN).interval.high <= 1
