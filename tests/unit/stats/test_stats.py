"""Intervals, tests and distributions agree with scipy, also for very many cases."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from math import asin, inf, log, nextafter, pi, sqrt
from math import nan as math_nan

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from rag_harness import stats
from rag_harness.stats import (
    Values,
    difference_bounds,
    difference_interval,
    mean_bounds,
    means,
    paired_tests,
    permutation_test,
)
from rag_harness.stats.distributions import beta_below, beta_quantile, binomial_at_most, t_outside, t_quantile
from rag_harness.stats.inputs import CaseValues, Floats, differences, in_both
from rag_harness.stats.means import (
    MANY_CASES,
    ValueRange,
    _quantiles,
    bounded_bounds,
    clustered_quantile_bounds,
    drawn_differences,
    mean_of,
    mean_or_none,
)
from rag_harness.stats.paired_tests import BoundReach, quantile_difference, rarest_seen

# Intervals and tests agree with scipy, and refuse what would poison a mean.

# Intervals and tests agree with scipy, and refuse what would poison a mean.

shares = st.floats(0, 1)


def scipy_p(a: object, b: object, resamples: float) -> float:
    def difference(x: object, y: object, axis: int = -1) -> object:
        return np.mean(x - y, axis=axis)  # type: ignore[operator]

    test = scipy.stats.permutation_test(
        (a, b), difference, permutation_type="samples", vectorized=True, n_resamples=resamples, rng=4, batch=200
    )
    return float(test.pvalue)


@pytest.mark.parametrize("n", [2, 5, 9, 12])
@pytest.mark.parametrize("decimals", [1, 6])
def test_permutation_is_exact_on_few_queries(n: int, decimals: int) -> None:
    rng = np.random.default_rng(n)
    a, b = rng.random(n).round(decimals), rng.random(n).round(decimals)
    assert stats.permutation_test(a, b) == pytest.approx(scipy_p(a, b, np.inf))


@pytest.mark.parametrize("shift", [0.0, 0.03, 0.06])
def test_permutation_equals_scipy_on_many_queries(shift: float) -> None:
    rng = np.random.default_rng(8)
    a, b = rng.random(150) + shift, rng.random(150)
    # Six standard errors of a share of 10,000 draws.
    assert stats.permutation_test(a, b, seed=1) == pytest.approx(scipy_p(a, b, 10_000), abs=6 * (0.25 / 10_000) ** 0.5)


def test_permutation_counts_only_queries_that_differ() -> None:
    same = [0.5] * 500
    assert stats.permutation_test([1, 1, 1, *same], [0, 0, 0, *same]) == 2 / 2**3


def test_permutation_of_equal_runs_is_1() -> None:
    assert stats.permutation_test([0.1, 0.2], [0.1, 0.2]) == 1


def test_permutation_counts_equal_sums_as_equal() -> None:
    a = [0.1, 0.2, 0.3, 0.1 + 0.2]
    expected = sum(abs(sum(s)) >= 7 for s in itertools.product(*((-v, v) for v in (1, 2, 3, 3)))) / 16
    assert expected < 1
    assert stats.permutation_test([0.1, 0.2, 0.3 + 0.1], [0, 0, 0.1]) == 2 / 8
    assert stats.permutation_test([*a[:2], -0.3], [0, 0, 0]) == 1


def test_permutation_is_never_0() -> None:
    p = stats.permutation_test([1.0] * 1000, [0.0] * 1000, resamples=999)
    assert p == 1 / 1000


@given(st.lists(st.tuples(shares, shares), min_size=1, max_size=40))
def test_permutation_has_two_sides(pairs: list[tuple[float, float]]) -> None:
    a, b = [x for x, _ in pairs], [y for _, y in pairs]
    p = stats.permutation_test(a, b, resamples=200)
    assert p == stats.permutation_test(b, a, resamples=200)
    assert 0 < p <= 1


def test_permutation_is_level_under_the_null() -> None:
    rng = np.random.default_rng(2)
    p = [stats.permutation_test(rng.normal(size=30), rng.normal(size=30), resamples=500) for _ in range(400)]
    assert scipy.stats.kstest(p, "uniform").pvalue > 0.001


def test_seeds_repeat() -> None:
    a, b = np.random.default_rng(0).random((2, 60))
    assert stats.permutation_test(a, b, seed=1) == stats.permutation_test(a, b, seed=1)
    assert bounded_bounds(a, seed=1) == bounded_bounds(a, seed=1) != bounded_bounds(a, seed=2)


def test_holm_of_a_worked_example() -> None:
    assert stats.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


@given(st.lists(shares, min_size=1, max_size=12), st.floats(0.001, 0.5))
def test_holm_rejects_what_stepping_down_rejects(p: list[float], alpha: float) -> None:
    rejected: set[int] = set()
    for place, index in enumerate(sorted(range(len(p)), key=p.__getitem__)):
        if p[index] * (len(p) - place) > alpha:
            break
        rejected.add(index)
    assert {i for i, value in enumerate(stats.holm(p)) if value <= alpha} == rejected


@given(st.lists(shares | st.sampled_from([0.01, 0.02, 0.04]), min_size=1, max_size=12), st.floats(0.001, 0.5))
def test_holm_counts_are_of_the_step_that_decides(p: list[float], alpha: float) -> None:
    counts = stats.holm_counts(p, alpha)
    assert [value <= alpha for value in stats.holm(p)] == [
        value * count <= alpha for value, count in zip(p, counts, strict=True)
    ]
    assert all(1 <= count <= len(p) for count in counts)
    assert len(set(zip(p, counts, strict=True))) == len(set(p)), "equal p-values have equal intervals"


def test_holm_counts_of_a_worked_example() -> None:
    assert stats.holm_counts([0.01, 0.04, 0.03, 0.005]) == [3, 2, 2, 4], "0.03 > 0.05 / 2 ends the steps"
    assert stats.holm_counts([0.2]) == [1]


@pytest.mark.parametrize("p", [[-0.1], [0.5, 1.1]])
def test_holm_wants_p_values(p: list[float]) -> None:
    with pytest.raises(ValueError, match="from 0 to 1"):
        stats.holm(p)
    with pytest.raises(ValueError, match="from 0 to 1"):
        stats.holm_counts(p)


def test_mean_or_none() -> None:
    assert stats.mean_or_none([0.25, None, 0.75]) == 0.5
    assert stats.mean_or_none([]) is None
    assert stats.mean_or_none([None]) is None


@given(st.lists(shares, min_size=1))
def test_mean_does_not_depend_on_the_order(values: list[float]) -> None:
    assert stats.mean_or_none(values) == stats.mean_or_none(reversed(values))


nan = float("nan")
refused: dict[str, tuple[Callable[[], object], str]] = {
    "confidence in percent": (lambda: stats.clopper_pearson(1, 2, 95), "between 0 and 1"),
    "no values": (lambda: stats.mean_interval([]), "at least one"),
    "NaN": (lambda: stats.mean_interval([1, nan]), "1 NaN or infinite of 2"),
    "a table": (lambda: stats.mean_interval(np.zeros((2, 2))), "flat"),
    "unequal pairs": (lambda: stats.permutation_test([1, 2], [1]), "got 2 and 1"),
    "NaN in b": (lambda: stats.permutation_test([1], [nan]), "NaN"),
    "no pairs": (lambda: stats.permutation_test([], []), "at least one"),
    "no permutations": (lambda: stats.permutation_test([1], [0], resamples=0), "1 or more"),
    "no p-values": (lambda: stats.holm([]), "at least one"),
    "NaN among p-values": (lambda: stats.holm([nan]), "NaN"),
    "NaN in a mean": (lambda: stats.mean_or_none([nan]), "None"),
}


@pytest.mark.parametrize(("call", "message"), refused.values(), ids=refused)
def test_refuses(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


@given(n=st.integers(1, 400), share=st.sampled_from([0.5, 0.95, 0.99]), confidence=st.sampled_from([0.8, 0.95]))
def test_quantile_interval_covers_what_it_says_and_no_more_than_it_must(
    n: int, share: float, confidence: float
) -> None:
    # Of the values 1 … n the i-th is i, and it lies at or below the quantile unless fewer than i values do.
    low, high = stats.quantile_interval([float(i) for i in range(1, n + 1)], share, confidence)
    below = scipy.stats.binom(n, share)
    tail = (1 - confidence) / 2
    if np.isfinite(low):
        assert below.cdf(low - 1) <= tail + 1e-12
    nearer_low = low + 1 if np.isfinite(low) else 1
    assert below.cdf(nearer_low - 1) > tail - 1e-12
    if np.isfinite(high):
        assert below.sf(high - 1) <= tail + 1e-12
    nearer_high = high - 1 if np.isfinite(high) else n
    assert below.sf(nearer_high - 1) > tail - 1e-12


def test_quantile_interval_covers_the_quantile_of_what_was_drawn() -> None:
    rng, true = np.random.default_rng(0), scipy.stats.lognorm(1).ppf(0.95)
    drawn = [stats.quantile_interval(rng.lognormal(size=200), 0.95) for _ in range(400)]
    assert 0.94 <= np.mean([low <= true <= high for low, high in drawn]) <= 1.0


def test_quantile_bounds_of_clusters_whose_cases_are_equal_are_those_of_one_case_of_each() -> None:
    once, clusters = np.random.default_rng(0).permutation(np.arange(200.0)), np.arange(200)
    alone = clustered_quantile_bounds(once, 0.8, clusters.tolist())
    alike = clustered_quantile_bounds(np.repeat(once, 5), 0.8, np.repeat(clusters, 5).tolist())
    assert alike == pytest.approx(alone, abs=1)
    assert alone == pytest.approx(stats.quantile_interval(once, 0.8, 0.9), abs=2)


def test_quantile_bounds_by_cluster_hold_as_often_as_they_say() -> None:
    rng, clusters, true = np.random.default_rng(0), np.repeat(np.arange(40), 5).tolist(), scipy.stats.norm.ppf(0.7)
    drawn = [
        clustered_quantile_bounds(np.sqrt(0.6) * rng.normal(size=40).repeat(5) + np.sqrt(0.4) * each, 0.7, clusters)
        for each in rng.normal(size=(80, 200))
    ]
    low, high = np.array(drawn).T
    assert 0.9 <= np.mean(low <= true) < 1
    assert 0.9 <= np.mean(true <= high) < 1


@pytest.mark.parametrize(("values", "share"), [([], 0.5), ([float("nan")], 0.5), ([1.0], 0.0), ([1.0], 1.0)])
def test_quantile_interval_refuses(values: list[float], share: float) -> None:
    with pytest.raises(ValueError, match="quantile_interval"):
        stats.quantile_interval(values, share)


# Which is better: the paired test where it can be believed, and bounds without assumptions where it cannot.

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


# The stated number of cases settles a gate as often as stated, with the bounds of the gate itself.

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


# For very many cases, no case is drawn one by one, and the results equal those of draws.

tenths = st.integers(0, 10).map(lambda number: number / 10)


@pytest.mark.parametrize(("standard", "most"), [(0.2, 4e-3), (2.0, 6e-4), (3.5, 1e-4)])
def test_p_of_many_differences_of_one_size_is_that_of_the_binomial(standard: float, most: float) -> None:
    n = paired_tests.MANY_PAIRS
    more = round(n / 2 + standard * n**0.5 / 2)
    a = np.repeat([1.0, -1.0], [more, n - more])
    exact = 2 * scipy.stats.binom.sf(more - 1, n, 0.5)
    assert permutation_test(a, np.zeros(n)) == pytest.approx(exact, abs=most)


def test_p_of_many_differences_is_that_of_draws() -> None:
    rng = np.random.default_rng(5)
    differences = rng.exponential(size=paired_tests.MANY_PAIRS) * np.where(
        rng.random(paired_tests.MANY_PAIRS) < 0.494, 1, -1
    )
    drawn = paired_tests._drawn_signed_sums(differences, 4000, rng)
    share = float((np.abs(drawn) >= abs(differences.sum())).mean())
    assert 0.02 < share < 0.5
    assert permutation_test(differences, 0 * differences) == pytest.approx(share, abs=4 * (share / 4000) ** 0.5)


def test_p_of_many_is_no_less_than_that_of_draws_can_be() -> None:
    assert permutation_test(np.ones(paired_tests.MANY_PAIRS), np.zeros(paired_tests.MANY_PAIRS), resamples=99) == 0.01


def test_where_one_difference_dominates_signs_are_drawn() -> None:
    differences = np.full(paired_tests.MANY_PAIRS, 1e-6)
    differences[0] = 1.0
    # As far out is only what has nearly all signs the same; a normal would say 0.29.
    assert permutation_test(differences, 0 * differences, resamples=99) == 0.01


def test_the_square_of_a_difference_tells_whether_it_dominates() -> None:
    differences = np.tile([0.02, -0.02], paired_tests.MANY_PAIRS // 2)
    differences[0] = 0.9
    p = permutation_test(differences, 0 * differences, resamples=99)
    assert p * 100 == pytest.approx(round(p * 100))  # drawn: 99 signs and what was observed


@given(st.lists(st.tuples(tenths, tenths, st.integers(0, 3)), min_size=1, max_size=30), st.data())
def test_a_quantile_of_values_with_counts_is_that_of_the_values(
    cases: list[tuple[float, float, int]], data: st.DataObject
) -> None:
    values, times = np.array([case[0] for case in cases]), np.array([case[2] for case in cases])
    if times.sum():
        place = data.draw(st.integers(0, int(times.sum()) - 1))
        assert _quantiles(values, times[None], place) == np.sort(np.repeat(values, times))[place]


@pytest.mark.parametrize("decimals", [9, 2])
def test_quantiles_of_many_cases_vary_as_those_that_are_all_drawn(decimals: int) -> None:
    rng = np.random.default_rng(3)
    a, b = (np.round(rng.random(MANY_CASES) * rng.random(MANY_CASES), decimals) for _ in range(2))
    b, place = (a + b) / 2, int(0.95 * MANY_CASES)
    chosen = rng.integers(0, MANY_CASES, (150, MANY_CASES))
    plain = [np.partition(values[chosen], place, axis=1)[:, place] for values in (a, b)]
    found = drawn_differences(a, b, place, 2000, rng)
    assert scipy.stats.ks_2samp(found, plain[0] - plain[1]).pvalue > 0.01


def test_the_tail_of_many_cases_is_not_drawn_case_by_case(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("rag_harness.stats.paired_tests._drawn")
    rng = np.random.default_rng(4)
    a, b = rng.random(200_000), 0.9 * rng.random(200_000)
    found, bounds = quantile_difference(a, b, 0.95, resamples=500)
    assert bounds.low < found < bounds.high
    assert found == pytest.approx(0.095, abs=0.003)
    assert bounds.high - bounds.low < 0.01


# The distributions equal scipy's, far tails included.

shapes = st.floats(0.5, 400)


# Closer to 1, scipy's own answer is wrong in the ninth digit; the test below asks there.
@given(st.floats(0, 1 - 1e-12) | st.just(1.0), shapes, shapes)
def test_beta_equals_scipy(x: float, a: float, b: float) -> None:
    assert beta_below(x, a, b) == pytest.approx(scipy.stats.beta.cdf(x, a, b), rel=1e-9, abs=1e-13)


def test_beta_next_to_1_is_that_of_the_arcsine_law() -> None:
    last = nextafter(1, 0)
    assert beta_below(last, 0.5, 0.5) == pytest.approx(1 - 2 / pi * asin(sqrt(1 - last)), rel=1e-14)


@given(st.floats(0.001, 0.999), st.floats(1, 400), st.floats(1, 400))
def test_beta_quantile_equals_scipy(share: float, a: float, b: float) -> None:
    assert beta_quantile(share, a, b) == pytest.approx(scipy.stats.beta.ppf(share, a, b), rel=1e-8)


@given(st.integers(0, 500), st.integers(0, 500), st.floats(0, 1))
def test_binomial_equals_scipy(count: int, n: int, share: float) -> None:
    assert binomial_at_most(count, n, share) == pytest.approx(scipy.stats.binom.cdf(count, n, share), abs=1e-10)


@given(st.floats(-60, 60), st.integers(1, 5000))
def test_student_equals_scipy(t: float, freedom: int) -> None:
    assert t_outside(t, freedom) == pytest.approx(2 * scipy.stats.t.sf(abs(t), freedom), rel=1e-8)


@pytest.mark.parametrize("freedom", [1, 2, 3, 4.5, 19, 198, 5000, 100_000])
@pytest.mark.parametrize("share", [0.001, 0.025, 0.5, 0.5001, 0.7, 0.8, 0.95, 0.975, 0.9995])
def test_t_quantile_equals_scipy(share: float, freedom: float) -> None:
    assert t_quantile(share, freedom) == pytest.approx(scipy.stats.t.ppf(share, freedom), rel=1e-8, abs=1e-12)


def test_the_ends() -> None:
    assert (beta_below(-1, 2, 3), beta_below(0, 2, 3), beta_below(1, 2, 3), beta_below(inf, 2, 3)) == (0, 0, 1, 1)
    assert (beta_quantile(0, 2, 3), beta_quantile(1, 2, 3)) == (0, 1)
    assert t_outside(inf, 3) == 0
    assert t_outside(1e200, 3) == 0  # its square is infinite


@pytest.mark.parametrize(
    "call",
    [
        lambda: beta_below(math_nan, 1, 1),
        lambda: beta_below(0.5, 0, 1),
        lambda: beta_quantile(1.1, 1, 1),
        lambda: binomial_at_most(1, -1, 0.5),
        lambda: binomial_at_most(1, 2, math_nan),
        lambda: t_outside(math_nan, 3),
        lambda: t_outside(1, 0),
        lambda: t_quantile(1, 3),
        lambda: t_quantile(0.9, 0),
        lambda: t_quantile(0.5, 0),
    ],
)
def test_distributions_refuse_what_they_are_not_defined_for(call: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match="needs"):
        call()


# Values by case: a mapping like any other, made of arrays.

IDS = ["a", "b", "c", "d"]


def values(*places: int, of: list[str] = IDS) -> CaseValues:
    return CaseValues(of, np.array(places, np.intp), np.array(places, np.float64) / 4)


def test_it_is_the_mapping_that_it_stands_for() -> None:
    found, same = values(0, 2), {"a": 0.0, "c": 0.5}
    assert found == same
    assert (list(found), list(found.values()), list(found.items())) == (["a", "c"], [0.0, 0.5], [*same.items()])
    assert (len(found), found["c"], found.get("b"), "c" in found, "b" in found) == (2, 0.5, None, True, False)
    assert not values()
    assert repr(found) == repr(same)


@pytest.mark.parametrize("other", [values(2, 3), dict(values(2, 3)), values(2, 3, of=[*IDS])])
def test_pairs_are_the_same_however_the_values_are_kept(other: CaseValues) -> None:
    first, second = in_both(values(0, 2, 1 + 2), other)
    assert first == second == {"c": 0.5, "d": 0.75}
    assert differences(first, second) == {"c": 0.0, "d": 0.0}
    assert differences(values(2), {"c": 0.25}) == {"c": 0.25}


@pytest.mark.parametrize("found", [[], [0.0, 1.0, 1.0], [0.1] * 10, [1e16, 1.0, -1e16], [0.0], [1.0, 0.5]])
def test_the_mean_of_an_array_is_that_of_its_values(found: list[float]) -> None:
    assert mean_of(np.array(found)) == mean_or_none(found)


def test_what_is_no_number_has_no_mean() -> None:
    with pytest.raises(ValueError, match="left out"):
        mean_of(np.array([1.0, np.nan]))
