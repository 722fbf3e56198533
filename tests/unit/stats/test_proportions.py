"""Bounds of shares, tries of each case, and risk and coverage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from math import nan

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.stats import mean_bounds, mean_interval, means
from rag_harness.stats.distributions import (
    all_right,
    clopper_pearson,
    finite_share_bounds,
    flips,
    share_bounds,
    worst_of,
)
from rag_harness.stats.inputs import Floats, UndefinedError
from rag_harness.stats.means import bounded_bounds, cluster_sums, skewed_t_bounds, standard_error, t_bounds
from rag_harness.stats.paired_tests import clustered_spread_of
from rag_harness.stats.prediction import answers_at_rate, answers_needed, promise, risk_coverage

# Bounds hold as often as they say, agree with scipy where it has them, and refuse what bounds nothing.

SHARE = (0.0, 1.0)
Draw = Callable[[np.random.Generator, int], Floats]
SCORES: dict[str, Draw] = {
    "zero-inflated": lambda rng, n: np.where(rng.random(n) < 0.3, 0, rng.beta(5, 2, n)),
    "mostly right": lambda rng, n: np.where(rng.random(n) < 0.9, 1, rng.random(n)),
    "two-point": lambda rng, n: (rng.random(n) < 0.95).astype(float),
    "skewed": lambda rng, n: rng.beta(8, 1.2, n),
}


@given(n=st.integers(1, 400), part=st.floats(0, 1), confidence=st.sampled_from([0.6, 0.9, 0.95, 0.99]))
def test_clopper_pearson_equals_scipy(n: int, part: float, confidence: float) -> None:
    successes = round(part * n)
    expected = scipy.stats.binomtest(successes, n).proportion_ci(confidence, method="exact")
    assert clopper_pearson(successes, n, confidence) == pytest.approx((expected.low, expected.high), abs=1e-9)


@given(data=st.data(), population=st.integers(1, 60))
def test_finite_bounds_are_the_shares_that_are_not_ruled_out(data: st.DataObject, population: int) -> None:
    n = data.draw(st.integers(1, population))
    found = data.draw(st.integers(0, n))
    possible = range(found, population - n + found + 1)
    least = [k for k in possible if scipy.stats.hypergeom.sf(found - 1, population, k, n) > 0.05 + 1e-9]
    most = [k for k in possible if scipy.stats.hypergeom.cdf(found, population, k, n) > 0.05 + 1e-9]
    expected = (min(least) / population, max(most) / population)
    assert finite_share_bounds(found, n, population) == pytest.approx(expected)


def test_students_t_equals_scipy() -> None:
    values = np.random.default_rng(0).gamma(2, 1, 30)
    expected = scipy.stats.t.interval(0.95, 29, values.mean(), scipy.stats.sem(values))
    assert t_bounds(values, 0.975) == pytest.approx(expected)


def test_the_skewed_bound_is_wider_where_the_values_have_their_tail_and_nowhere_narrower() -> None:
    values = np.random.default_rng(0).lognormal(0, 1, 40)
    plain, found, mirrored = t_bounds(values), skewed_t_bounds(values), skewed_t_bounds(-values)
    assert found.low == plain.low
    t, skewness = scipy.stats.t.ppf(0.95, 39), scipy.stats.skew(values)
    assert found.high - plain.high == pytest.approx(scipy.stats.sem(values) * skewness * (t**2 + 2) / 3 / np.sqrt(40))
    assert (-mirrored.high, -mirrored.low) == pytest.approx(found)


@pytest.mark.parametrize("count", [13, 30, 100])
def test_of_a_rare_event_the_skewed_bound_is_nearly_the_exact_one(count: int) -> None:
    n = 100_000
    found = skewed_t_bounds([1.0] * count + [0.0] * (n - count))
    assert found.high * n == pytest.approx(scipy.stats.chi2.ppf(0.95, 2 * count + 2) / 2, abs=0.3)


def test_the_error_of_clusters_is_the_published_formula() -> None:
    rng = np.random.default_rng(1)
    clusters = rng.integers(0, 12, 60)
    values = rng.normal(size=12)[clusters] + rng.normal(size=60)
    residuals = values - values.mean()
    sums = [residuals[clusters == each].sum() for each in np.unique(clusters)]
    expected = np.sqrt(12 / 11 * np.sum(np.square(sums))) / 60
    assert standard_error(cluster_sums(values, list(clusters))) == pytest.approx(expected)
    assert standard_error(cluster_sums(values)) == pytest.approx(scipy.stats.sem(values))
    low, high = t_bounds(values, 0.95, list(clusters))
    assert (high - low) / 2 == pytest.approx(scipy.stats.t.ppf(0.95, 11) * expected)


@pytest.mark.parametrize("span", [None, SHARE])
def test_asking_the_same_again_inside_its_cluster_narrows_nothing(span: tuple[float, float] | None) -> None:
    rng = np.random.default_rng(2)
    values, clusters = rng.beta(2, 1, 40), [n // 4 for n in range(40)]
    once = mean_bounds(values, span, clusters=clusters)
    thrice = mean_bounds(np.repeat(values, 3), span, clusters=list(np.repeat(clusters, 3)))
    assert thrice == pytest.approx(once)
    alone = mean_bounds(np.repeat(values, 3), span)
    assert alone.low > once.low
    assert alone.high < once.high


def test_cases_that_are_alike_in_their_cluster_count_as_one() -> None:
    """Clusters of equal values are what their means are, and the naive bounds are too narrow for them."""
    rng = np.random.default_rng(3)
    outside = {"clusters": 0, "alone": 0}
    for _ in range(200):
        values = np.repeat(rng.beta(2, 1, 20), 5)
        clusters = list(np.repeat(np.arange(20), 5))
        outside["clusters"] += t_bounds(values, 0.95, clusters).low > 2 / 3
        outside["alone"] += t_bounds(values, 0.95).low > 2 / 3
    assert outside["clusters"] <= 20
    assert outside["alone"] >= 40


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("n", [20, 40])
def test_neither_bound_is_wrong_more_often_than_it_says(name: str, n: int) -> None:
    rng = np.random.default_rng(4)
    truth = SCORES[name](rng, 1_000_000).mean()
    drawn = [bounded_bounds(SCORES[name](rng, n), resamples=400) for _ in range(150)]
    assert np.mean([low > truth for low, _ in drawn]) <= 0.08
    assert np.mean([high < truth for _, high in drawn]) <= 0.08


def test_students_t_alone_would_pass_what_is_bad_too_often() -> None:
    """Why it is not used: a sample that missed the rare bad cases says that there are none."""
    rng = np.random.default_rng(5)
    truth = SCORES["mostly right"](rng, 1_000_000).mean()
    wrong = 0
    for _ in range(300):
        values = SCORES["mostly right"](rng, 20)
        wrong += values.min() == 1 or t_bounds(values).low > truth
    assert wrong / 300 > 0.15


def test_of_verdicts_it_is_clopper_pearson() -> None:
    values = [1.0] * 37 + [0.0] * 3
    exact = share_bounds(37, 40)
    assert mean_bounds(values, SHARE) == exact
    assert bounded_bounds(values, SHARE) == pytest.approx(exact, abs=0.006)


def test_what_was_not_seen_can_be_as_bad_as_the_span_says() -> None:
    low, high = mean_bounds([0.9] * 30, SHARE)
    assert low < 0.9 < high
    assert mean_bounds([1.0] * 30, SHARE) == pytest.approx((0.05 ** (1 / 30), 1))
    assert mean_bounds([0.9] * 30, (0, 10)).high > high


@pytest.mark.parametrize("n", [20, 99, 100, 200, 999, 1000])
@pytest.mark.parametrize("name", SCORES)
def test_the_interval_contains_the_bounds_that_decide(name: str, n: int) -> None:
    values = SCORES[name](np.random.default_rng(6), n)
    interval, bounds = mean_interval(values, SHARE), mean_bounds(values, SHARE)
    assert interval.low <= bounds.low < bounds.high <= interval.high
    assert interval == mean_bounds(values, SHARE, 0.975)


@pytest.mark.parametrize("n", [100, 200])
def test_the_interval_of_rare_values_holds_their_mean(n: int) -> None:
    """Of 1 % of gains the percentile bootstrap's held it in 60 and 88 % of the runs."""
    rng = np.random.default_rng(12)
    drawn = [np.where(rng.random(n) < 0.01, 0.5, 0.0) for _ in range(150)]
    assert np.mean([low <= 0.005 <= high for low, high in (mean_interval(each, SHARE) for each in drawn)]) >= 0.93


def test_a_population_that_was_all_looked_at_leaves_nothing_open() -> None:
    values = [0.2, 0.4, 0.9]
    assert mean_bounds(values, SHARE, population=3) == pytest.approx((0.5, 0.5))
    assert mean_bounds([0.2], population=1) == (0.2, 0.2)


@pytest.mark.parametrize("name", ["zero-inflated", "skewed", "two-point"])
def test_of_a_population_the_rest_decides(name: str) -> None:
    """Drawn without replacement from 60 cases, 40 of them bound the mean of the 60."""
    rng = np.random.default_rng(7)
    wrong = np.zeros(2)
    for _ in range(50):
        everything = SCORES[name](rng, 60)
        bounds = mean_bounds(everything[:40], SHARE, population=60)
        like = mean_bounds(everything[:40], SHARE)
        assert like.low <= bounds.low + 1e-9
        assert bounds.high - 1e-9 <= like.high
        wrong += bounds.low > everything.mean() + 1e-9, bounds.high < everything.mean() - 1e-9
    assert (wrong / 50 <= 0.1).all()


def test_a_population_narrows_by_what_was_seen_of_it() -> None:
    values = SCORES["skewed"](np.random.default_rng(8), 40)
    like, these = mean_bounds(values, SHARE), mean_bounds(values, SHARE, population=60)
    mean, kept = values.mean(), np.sqrt(1 - 40 / 60)
    assert these == pytest.approx((mean - kept * (mean - like.low), mean + kept * (like.high - mean)))
    times = values * 3000
    assert mean_bounds(times, population=60).high < mean_bounds(times).high


def test_arithmetic_bounds_the_mean_of_a_population_too() -> None:
    assert mean_bounds([0.9], SHARE, population=2) == pytest.approx((0.45, 0.95))


def test_a_chance_that_is_exactly_the_rest_is_ruled_out() -> None:
    """Of 40 cases 38 right, one looked at and wrong: a chance of 2 in 40, which is 5 %."""
    assert finite_share_bounds(0, 1, 40) == pytest.approx((0, 37 / 40))


@pytest.mark.parametrize("n", [40, 200])
def test_without_a_range_it_is_students_t_with_skewness(n: int) -> None:
    values = np.random.default_rng(9).lognormal(0, 1, n)
    assert mean_bounds(values) == skewed_t_bounds(values)
    assert mean_bounds(values).high > t_bounds(values).high


def test_with_clusters_the_wider_of_two_bounds_holds() -> None:
    values = np.repeat([1.0] * 18 + [0.2, 0.6], 2)
    clusters = list(np.repeat(np.arange(20), 2))
    by_t, drawn = t_bounds(values, 0.95, clusters), bounded_bounds(values, SHARE, 0.95, clusters)
    assert drawn.low < by_t.low
    assert drawn.high < by_t.high
    assert mean_bounds(values, SHARE, clusters=clusters) == (drawn.low, min(by_t.high, 1))


def test_the_interval_of_many_cases_stays_within_their_range_and_says_that_one_may_be_bad() -> None:
    assert mean_interval([*[1.0] * 999, 0.99], (0, 1)).high == pytest.approx(1.0, abs=1e-5)
    low, high = mean_interval([1.0] * 1000, (0, 1))
    assert high == 1.0
    assert 0.99 < low < 1.0


@pytest.mark.parametrize("name", SCORES)
def test_values_that_are_weighed_together_bound_the_mean_as_each_for_itself(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = SCORES[name](np.random.default_rng(10), 1500)
    together = bounded_bounds(values, SHARE)
    monkeypatch.setattr(means, "MANY_VALUES", 10_000)
    alone = bounded_bounds(values, SHARE, seed=1)
    width = alone.high - alone.low
    # Two estimates from 10,000 draws each: their ends differ by some hundredths of the width.
    assert together == pytest.approx(alone, abs=0.04 * width)


@pytest.mark.parametrize("n", [999, 1000, 2000])
def test_rare_failures_pass_no_gate_where_many_cases_are(n: int) -> None:
    """0.3 % of the cases are worth a half; the gate asks for the mean that they truly have."""
    rng = np.random.default_rng(8)
    truth, wrong = 1 - 0.003 * 0.5, 0
    for _ in range(300):
        values = np.where(rng.random(n) < 0.003, 0.5, 1.0)
        wrong += bounded_bounds(values, SHARE, resamples=400).low > truth
    assert wrong / 300 <= 0.08


def test_one_half_right_case_decides_no_more_at_1_000_cases_than_at_999() -> None:
    lows = [mean_bounds([*[1.0] * (n - 1), 0.5], SHARE).low for n in (999, 1000)]
    assert lows[0] == pytest.approx(lows[1], abs=0.0005)
    assert max(lows) < 0.998


@pytest.mark.parametrize(
    ("bound", "why"),
    [
        (lambda: mean_bounds([3.0]), "one case bounds nothing"),
        (lambda: mean_bounds([3.0, 3.0, 3.0]), "all values are equal"),
        (lambda: mean_bounds([0.1, 0.9], SHARE, clusters=["a", "a"]), "one cluster"),
        (lambda: mean_bounds([1.0, 2.0], clusters=["a", "a"]), "one cluster"),
    ],
)
def test_what_bounds_nothing_is_undefined_with_the_reason(bound: Callable[[], object], why: str) -> None:
    with pytest.raises(UndefinedError, match=why):
        bound()


@pytest.mark.parametrize(
    ("bound", "why"),
    [
        (lambda: mean_bounds([], SHARE), "at least one"),
        (lambda: mean_bounds([0.5, nan], SHARE), "1 NaN or infinite of 2"),
        (lambda: mean_bounds([0.5, 1.5], SHARE), "between 0 and 1; got 0.5 to 1.5"),
        (lambda: mean_bounds([0.5], (0, np.inf)), "two finite ends"),
        (lambda: mean_bounds([0.5], SHARE, 0), "between 0 and 1"),
        (lambda: mean_bounds([0.5], SHARE, 1), "between 0 and 1"),
        (lambda: mean_bounds([0.5, 0.5], SHARE, population=1), "population of 1"),
        (lambda: mean_bounds([0.1, 0.2], SHARE, clusters=["a"]), "clusters are one a value"),
        (lambda: share_bounds(3, 2), "got 3 of 2"),
        (lambda: finite_share_bounds(1, 3, 2), "population of 2"),
        (lambda: t_bounds([1.0, 2.0], 1), "between 0 and 1"),
        (lambda: skewed_t_bounds([1.0, 2.0], 1), "between 0 and 1"),
        (lambda: bounded_bounds([0.5], SHARE, resamples=0), "1 or more"),
        (lambda: mean_interval([0.5], SHARE, 95), "between 0 and 1"),
    ],
)
def test_what_is_no_sample_is_refused(bound: Callable[[], object], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        bound()


def test_the_spread_of_clusters_is_what_a_case_counts_as() -> None:
    values = [0.0, 1.0] * 20
    assert clustered_spread_of(values) == pytest.approx(np.std(values, ddof=1))
    doubled: Sequence[float] = np.repeat(values, 2)  # type: ignore[assignment]
    assert clustered_spread_of(doubled, list(np.repeat(np.arange(40), 2))) == pytest.approx(
        np.sqrt(2) * clustered_spread_of(values)
    )
    assert clustered_spread_of([1.0]) == 0


# Several tries of each case, against every draw counted one by one.

RNG = np.random.default_rng(3)


@pytest.mark.parametrize(("n", "k"), [(1, 1), (3, 1), (3, 2), (3, 3), (5, 3), (7, 5)])
def test_each_figure_is_the_mean_over_all_draws(n: int, k: int) -> None:
    values = np.round(RNG.random((40, n)), 1)
    right = values >= 0.5
    draws = [list(each) for each in combinations(range(n), k)]
    assert all_right(right, k) == pytest.approx(np.mean([right[:, each].all(axis=1) for each in draws], axis=0))
    lowest = np.mean([values[:, each].min(axis=1) for each in draws], axis=0)
    highest = np.mean([values[:, each].max(axis=1) for each in draws], axis=0)
    assert worst_of(values, k) == pytest.approx(lowest)
    assert worst_of(values, k, low_is_worst=False) == pytest.approx(highest)


@pytest.mark.parametrize("n", [2, 3, 6])
def test_a_flip_is_a_pair_that_disagrees(n: int) -> None:
    right = RNG.random((40, n)) < 0.6
    pairs = [right[:, a] != right[:, b] for a, b in combinations(range(n), 2)]
    assert flips(right) == pytest.approx(np.mean(pairs, axis=0))


def test_what_is_certain_is_exact() -> None:
    """A share a hair above 1 would have no bounds."""
    assert set(all_right(np.ones((2, 97), np.bool_), 41)) == {1.0}
    assert set(worst_of(np.full((2, 97), 0.1), 41)) == {0.1}
    assert set(worst_of(np.ones((2, 97)), 41)) == {1.0}


def test_the_chance_of_new_tries_is_met_on_average() -> None:
    right = RNG.random((60_000, 5)) < 0.7
    assert all_right(right, 3).mean() == pytest.approx(0.7**3, abs=0.005)
    assert flips(right).mean() == pytest.approx(2 * 0.7 * 0.3, abs=0.005)


@pytest.mark.parametrize("k", [0, 4])
def test_more_than_there_are_cannot_be_drawn(k: int) -> None:
    with pytest.raises(ValueError, match=f"k is 1 to 3; got {k}"):
        all_right(np.ones((2, 3), np.bool_), k)
    with pytest.raises(ValueError, match=f"k is 1 to 3; got {k}"):
        worst_of(np.ones((2, 3)), k)
    with pytest.raises(ValueError, match="k is 1 to 1; got 2"):
        flips(np.ones((2, 1), np.bool_))


# Risk and coverage by definition, and a promise that is kept.


def answers(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return confidences, and whether each answer is wrong: with chance (1 - confidence) / 2."""
    rng = np.random.default_rng(seed)
    confidence = rng.random(n)
    return confidence, (rng.random(n) < (1 - confidence) / 2).astype(float)


def test_the_curve_of_a_worked_example() -> None:
    found = risk_coverage([0.9, 0.8, 0.4, 0.2], [0, 1, 0, 1])
    assert found.coverage.tolist() == [0.25, 0.5, 0.75, 1]
    assert found.risk.tolist() == pytest.approx([0, 1 / 2, 1 / 3, 1 / 2])
    assert found.aurc == pytest.approx((0 + 1 / 2 + 1 / 3 + 1 / 2) / 4)
    assert found.best == pytest.approx((0 + 0 + 1 / 3 + 1 / 2) / 4)
    assert found.by_chance == 0.5
    assert (found.risk_at(0.5), found.risk_at(0.51), found.risk_at(1)) == pytest.approx((1 / 2, 1 / 3, 1 / 2))


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.5, 1.0]), st.integers(0, 1)), min_size=1, max_size=20), st.randoms())
def test_the_order_of_equally_confident_answers_does_not_matter(pairs: list[tuple[float, int]], rng: st.DrawFn) -> None:
    there = risk_coverage(*map(list, zip(*pairs, strict=True)))
    rng.shuffle(pairs)  # type: ignore[attr-defined]
    back = risk_coverage(*map(list, zip(*pairs, strict=True)))
    assert there.risk == pytest.approx(back.risk)
    assert there.best <= there.aurc + 1e-9


def test_equal_confidences_are_chance() -> None:
    found = risk_coverage([0.7] * 4, [0, 1, 1, 0])
    assert found.risk.tolist() == [0.5] * 4
    assert found.aurc == found.by_chance


@pytest.mark.parametrize(("wrong", "risk", "delta", "n"), [(0, 0.05, 0.05, 59), (0, 0.1, 0.1, 22), (1, 0.05, 0.05, 93)])
def test_answers_needed(wrong: int, risk: float, delta: float, n: int) -> None:
    assert answers_needed(wrong, risk, delta) == n
    assert scipy.stats.binom.cdf(wrong, n, risk) <= delta < scipy.stats.binom.cdf(wrong, n - 1, risk)


@pytest.mark.parametrize(("rate", "risk"), [(0.0, 0.05), (0.01, 0.05), (0.02, 0.05), (0.03, 0.05), (0.1, 0.2)])
def test_answers_at_a_rate_are_the_fewest_that_the_bound_lets_through(rate: float, risk: float) -> None:
    found = answers_at_rate(rate, risk)
    assert found is not None
    enough = [n for n in range(1, found + 1) if scipy.stats.binom.cdf(int(np.ceil(rate * n - 1e-9)), n, risk) <= 0.05]
    assert enough == [found]


def test_a_rate_that_is_no_less_than_the_risk_is_never_promised() -> None:
    assert answers_at_rate(0.05, 0.05) is None
    assert answers_at_rate(0.6, 0.05) is None
    assert answers_at_rate(0.0499, 0.05) is None  # more than 10,000
    for rate in (-0.1, 1.1, nan):
        with pytest.raises(ValueError, match="a rate is a share"):
            answers_at_rate(rate, 0.05)


@pytest.mark.parametrize(("tested", "made"), [(58, False), (59, True)])
def test_with_one_answer_less_than_the_number_there_is_no_promise(tested: int, made: bool) -> None:
    n = 2 * tested
    assert (promise([0.9] * n, [0.0] * n).threshold is not None) == made


def test_a_promise_has_clopper_pearsons_bound_and_is_of_the_half_that_did_not_choose() -> None:
    confidence, wrong = answers(2000, 1)
    found = promise(confidence, wrong, 0.1)
    assert found.threshold is not None
    oracle = scipy.stats.binomtest(found.wrong, found.accepted).proportion_ci(0.9, "exact")
    assert found.bound == pytest.approx(oracle.high)
    assert found.bound <= 0.1
    assert found.accepted < (confidence >= found.threshold).sum()


def test_a_promise_is_kept() -> None:
    broken = promised = 0
    for seed in range(60):
        found = promise(*answers(1000, seed), 0.15, seed=seed)
        if found.threshold is not None:
            promised += 1
            broken += (1 - found.threshold) / 4 > 0.15  # the mean of (1 - c) / 2 for c from the threshold to 1
    assert promised > 42
    assert broken / 60 <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 200)


def test_too_few_answers_are_refused_with_the_number_that_is_missing() -> None:
    found = promise([0.9] * 60, [0.0] * 60)
    assert (found.threshold, found.accepted, found.wrong, found.missing) == (None, 30, 0, 29)
    assert (
        found.reason
        == "0 of 30 accepted answers are wrong; 29 more without an error are needed in this half, 59 in all"
    )
    enough = promise([0.9] * 118, [0.0] * 118)
    assert (enough.threshold, enough.missing) == (0.9, 0)


def test_a_rate_above_the_risk_is_refused_for_good() -> None:
    found = promise([0.9] * 100, [0.0, 1.0] * 50)
    assert found.threshold is None
    assert "at this rate no number of answers would do" in found.reason


@pytest.mark.parametrize("confidence", [0.0, 1.0])
def test_confidence_of_0_or_1_is_one_threshold(confidence: float) -> None:
    assert promise([confidence] * 200, [0.0] * 200).threshold == confidence


def test_one_answer_leaves_no_half() -> None:
    with pytest.raises(UndefinedError, match="one answer only"):
        promise([0.5], [0.0])
    assert promise([0.5, 0.5], [0.0, 0.0]).missing == 58


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: risk_coverage([], []), "at least one value"),
        (lambda: risk_coverage([nan], [0]), "NaN"),
        (lambda: risk_coverage([0.5], [0.5]), "1 for a wrong answer and 0 for a right one; got 0.5"),
        (lambda: promise([0.5, 0.4], [0, 1, 0]), "pairs"),
        (lambda: promise([0.5, 0.4], [0, 1], 0.0), "shares between 0 and 1"),
        (lambda: promise([0.5, 0.4], [0, 1], 0.05, delta=1.0), "shares between 0 and 1"),
        (lambda: answers_needed(0, 1e-9), "more than 10,000,000 answers"),
    ],
)
def test_refuses(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
