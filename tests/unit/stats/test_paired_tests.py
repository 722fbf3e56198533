"""Paired tests, slopes and PPI++ are what others reckon."""

from __future__ import annotations

import math
from collections.abc import Callable
from math import nan

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.stats import difference_interval
from rag_harness.stats.inputs import UndefinedError, slope_parts, slope_values
from rag_harness.stats.means import t_bounds
from rag_harness.stats.paired_tests import ALL_EQUAL, ONE_PAIR, paired, quantile_difference, spread_of
from rag_harness.stats.prediction import Corrected, ppi_mean

# Paired tests equal scipy's, hold their level, and say nothing where there is nothing to say.

shares = st.integers(0, 100).map(lambda hundredths: hundredths / 100)
values = st.lists(st.tuples(shares, shares), min_size=2, max_size=60)


def zero_inflated(n: int, seed: int) -> np.ndarray:
    """Return scores as ours are: many 0, many 1, some between."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random(n) < 0.3, 0.0, np.where(rng.random(n) < 0.4, 1.0, rng.random(n)))


@pytest.mark.parametrize(("n", "seed"), [(2, 3), (5, 4), (20, 1), (200, 2)])
def test_paired_t_equals_scipy(n: int, seed: int) -> None:
    a, b = zero_inflated(n, seed), zero_inflated(n, seed + 100)
    found, oracle = paired(a, b), scipy.stats.ttest_rel(a, b)
    assert found.interval is not None
    assert found.p_t == pytest.approx(oracle.pvalue)
    plain = oracle.confidence_interval(0.95)
    assert found.interval == difference_interval(a - b)
    assert found.interval.low <= plain.low + 1e-12
    assert found.interval.high >= plain.high - 1e-12
    assert found.effect == pytest.approx(oracle.statistic / np.sqrt(n))
    assert found.difference == pytest.approx((a - b).mean())


@given(values)
def test_swapping_the_sides_turns_the_sign_and_nothing_else(pairs: list[tuple[float, float]]) -> None:
    a, b = np.array(pairs).T
    there, back = paired(a, b, resamples=500), paired(b, a, resamples=500)
    assert there.difference == -back.difference
    assert there.reason == back.reason
    if there.p_t is not None:
        assert there.p_t == pytest.approx(back.p_t)
        assert there.p_permutation == pytest.approx(back.p_permutation, abs=0.15)


@given(values, st.floats(0.1, 100))
def test_p_does_not_depend_on_the_unit(pairs: list[tuple[float, float]], scale: float) -> None:
    a, b = np.array(pairs).T
    one, other = paired(a, b, resamples=1), paired(a * scale, b * scale, resamples=1)
    assert one.reason == other.reason
    if one.p_t is not None:
        assert one.p_t == pytest.approx(other.p_t, rel=1e-6)


@pytest.mark.parametrize(
    ("a", "b", "difference"),
    [([0.3, 0.4, 0.5], [0.3, 0.4, 0.5], 0.0), ([0.4, 0.7, 0.9], [0.3, 0.6, 0.8], 0.1), ([1.0] * 9, [0.0] * 9, 1.0)],
)
def test_equal_differences_have_no_p_value(a: list[float], b: list[float], difference: float) -> None:
    found = paired(a, b)
    assert found.reason == ALL_EQUAL
    assert (found.p_t, found.p_permutation, found.interval, found.effect) == (None, None, None, None)
    assert found.difference == pytest.approx(difference)


def test_clusters_with_equal_differences_have_no_p_value() -> None:
    found = paired([1, 0.9] * 4, [1, 1] * 4, clusters=[n // 2 for n in range(8)])
    assert (found.reason, found.p_t, found.p_permutation, found.clusters) == (ALL_EQUAL, None, None, 4)
    assert found.difference == pytest.approx(-0.05)


@pytest.mark.parametrize("size", [1e-200, 1e-310, 1e100])
def test_sizes_far_from_1_raise_nothing(size: float) -> None:
    assert paired([size, 2 * size, 0.0], [0.0, size, size]).n == 3


def test_one_pair_has_a_difference_and_no_p_value() -> None:
    found = paired([0.9], [0.4])
    assert (found.n, found.difference, found.p_t, found.reason) == (1, 0.5, None, ONE_PAIR)


@pytest.mark.parametrize("n", [20, pytest.param(40, marks=pytest.mark.long)])
def test_the_paired_t_keeps_its_level_and_its_interval_its_word(n: int) -> None:
    rng = np.random.default_rng(n)
    wrong = outside = 0
    for run in range(1000):
        a, b = zero_inflated(n, 2 * run), zero_inflated(n, 2 * run + 1)
        swapped = rng.random(n) < 0.5  # neither side is better
        found = paired(np.where(swapped, a, b), np.where(swapped, b, a), resamples=1)
        assert found.p_t is not None
        assert found.interval is not None
        wrong += found.p_t <= 0.05
        outside += not found.interval.low <= 0 <= found.interval.high
    assert 30 <= wrong <= 70
    assert 30 <= outside <= 70


def test_the_p95_difference_is_that_of_two_nearest_ranks_within_its_bounds() -> None:
    a, b = zero_inflated(200, 1), 0.8 * zero_inflated(200, 2)
    found, bounds = quantile_difference(a, b, 0.95)
    assert found == np.sort(a)[189] - np.sort(b)[189]
    assert bounds.low <= found <= bounds.high
    oracle = scipy.stats.bootstrap(
        (a, b), lambda a, b, axis: np.partition(a, 189, axis)[..., 189] - np.partition(b, 189, axis)[..., 189],
        paired=True, vectorized=True, method="percentile", n_resamples=5000, random_state=np.random.default_rng(1),
    )  # fmt: skip
    assert tuple(bounds) == pytest.approx(tuple(oracle.confidence_interval), abs=0.02)


def test_the_p95_of_few_cases_is_their_largest_and_has_no_interval() -> None:
    with pytest.raises(UndefinedError, match="95% quantile of 19 cases is their largest value"):
        quantile_difference([0.1] * 19, [0.2] * 19, 0.95)
    quantile_difference(zero_inflated(20, 1), zero_inflated(20, 2), 0.95)


def test_the_p95_of_equal_differences_has_no_interval() -> None:
    a = zero_inflated(40, 1)
    with pytest.raises(UndefinedError, match=ALL_EQUAL):
        quantile_difference(a, a, 0.95)


def test_spread_is_that_of_the_values_or_of_their_differences() -> None:
    assert spread_of([0.0, 1.0, 1.0]) == pytest.approx(np.std([0, 1, 1], ddof=1))
    assert spread_of([0.0, 1.0, 1.0], [0.5, 0.5, 0.0]) == pytest.approx(np.std([-0.5, 0.5, 1], ddof=1))


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda: spread_of([0.3]), ONE_PAIR),
        (lambda: spread_of([0.3, 0.3]), "all values are equal"),
        (lambda: spread_of([0.3, 0.4], [0.2, 0.3]), ALL_EQUAL),
        (lambda: spread_of([0.0, 0.0]), "all values are equal"),
    ],
)
def test_spread_of_nothing_is_undefined(call: Callable[[], object], why: str) -> None:
    with pytest.raises(UndefinedError, match=why):
        call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: paired([], []), "at least one value"),
        (lambda: paired([0.1, nan], [0.1, 0.2]), "NaN or infinite"),
        (lambda: paired([0.1, 0.2], [0.1]), "pairs"),
        (lambda: paired([0.1, 0.2], [0.2, 0.5], confidence=1), "confidence"),
        (lambda: quantile_difference([0.1] * 40, [0.2] * 40, 1.0), "share between 0 and 1"),
        (lambda: quantile_difference([], [], 0.95), "at least one value"),
        (lambda: quantile_difference([nan] * 40, [0.2] * 40, 0.95), "NaN"),
    ],
)
def test_refuses(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


# The slope within conversations, against least squares with a column for each conversation.

Conversations = list[list[float]]


def found_of(conversations: Conversations) -> dict[str, float]:
    parts = {
        str(n): each
        for n, values in enumerate(conversations)
        if (each := slope_parts(np.arange(1.0, len(values) + 1), np.array(values))) is not None
    }
    return slope_values(parts)


def least_squares(conversations: Conversations) -> tuple[float, float]:
    """Return slope and standard error clustered by conversation, from the sandwich of a whole design matrix."""
    rows = [(n, turn, value) for n, values in enumerate(conversations) for turn, value in enumerate(values, 1)]
    design = np.array([[turn, *(float(n == each) for each in range(len(conversations)))] for n, turn, _ in rows])
    y = np.array([value for *_, value in rows])
    bread = np.linalg.inv(design.T @ design)
    beta = bread @ design.T @ y
    residuals = y - design @ beta
    meat = np.zeros_like(bread)
    for n in range(len(conversations)):
        own = [place for place, row in enumerate(rows) if row[0] == n]
        score = design[own].T @ residuals[own]
        meat += np.outer(score, score)
    variance = (bread @ meat @ bread)[0, 0] * len(conversations) / (len(conversations) - 1)
    return float(beta[0]), float(np.sqrt(max(variance, 0)))


@given(st.lists(st.lists(st.floats(0, 1), min_size=2, max_size=6), min_size=3, max_size=8))
def test_mean_and_spread_of_the_values_are_slope_and_clustered_standard_error(conversations: Conversations) -> None:
    values = np.array(list(found_of(conversations).values()))
    slope, error = least_squares(conversations)
    assert values.mean() == pytest.approx(slope, abs=1e-9)
    assert values.std(ddof=1) / np.sqrt(len(values)) == pytest.approx(error, abs=1e-7)


def test_a_conversation_with_one_turn_says_nothing_of_drift() -> None:
    assert slope_parts(np.array([3.0]), np.array([0.5])) is None
    assert found_of([[0.3], [0.5, 0.4]]) == pytest.approx({"1": -0.1})


def test_the_interval_holds_the_slope() -> None:
    rng, held, runs = np.random.default_rng(0), 0, 400
    for _ in range(runs):
        levels, slopes = rng.normal(0.6, 0.2, 30), rng.normal(-0.03, 0.05, 30)
        conversations = [
            [level + slope * turn + rng.normal(0, 0.2) for turn in range(1, 6)]
            for level, slope in zip(levels, slopes, strict=True)
        ]
        low, high = t_bounds([*found_of(conversations).values()], 0.975)
        held += low <= -0.03 <= high
    assert held / runs >= 0.925


# PPI++ is what its paper says, a useless judge costs nothing, and its interval holds what it should.

ppi_shares = st.floats(0, 1)
PPI_PYTHON = 0.5839575812274369


def made(n: int, rest: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return ratings of people, a judge that follows them, and what it says of the others."""
    rng = np.random.default_rng(seed)
    human = rng.beta(4, 1.5, n + rest)
    judge = np.clip(0.6 * human + 0.4 * rng.random(n + rest), 0, 1)
    return human[:n], judge[:n], judge[n:]


def width(found: Corrected) -> float:
    assert found.interval is not None
    return found.interval.high - found.interval.low


@pytest.mark.parametrize(("n", "rest"), [(2, 5), (40, 200), (150, 30)])
def test_the_estimate_is_the_formula_of_the_paper(n: int, rest: int) -> None:
    y, f, others = made(n, rest, n)
    spread = np.var(np.concatenate([f, others]), ddof=1)
    lam = np.clip(np.cov(y, f, ddof=0)[0, 1] / ((1 + n / rest) * spread), 0, 1)
    found = ppi_mean(y, f, others)
    assert found.lam == pytest.approx(lam)
    assert found.value == pytest.approx(lam * others.mean() + (y - lam * f).mean())
    assert (found.labels, found.clusters, found.unlabelled) == (n, n, rest)


def test_the_estimate_is_that_of_ppi_python() -> None:
    # Of ppi-python 0.2.3, which is not installed for this: it brings numba, pandas and statsmodels.
    y, f, others = [0.2, 0.9, 1.0, 0.4], [0.3, 0.7, 0.9, 0.6], [0.1, 0.5, 0.9, 0.8, 0.4]
    found = ppi_mean(y, f, others)
    assert found.value == pytest.approx(PPI_PYTHON)


def test_above_a_hundred_labels_the_interval_is_student_s_t() -> None:
    y, f, others = made(150, 300)
    found = ppi_mean(y, f, others)
    residual = y - found.lam * f
    error = np.hypot(residual.std(ddof=1) / np.sqrt(150), found.lam * others.std(ddof=1) / np.sqrt(300))
    half = scipy.stats.t.ppf(0.975, 149) * error
    assert found.interval == pytest.approx((found.value - half, found.value + half))
    assert found.method == "Student's t"


def test_clusters_of_one_change_nothing_and_large_ones_widen() -> None:
    y, f, others = made(60, 200)
    apart = ppi_mean(y, f, others)
    assert ppi_mean(y, f, others, clusters=list(range(60))) == apart
    alike = np.sort(y)
    together = ppi_mean(alike, alike, others, clusters=[place // 6 for place in range(60)])
    assert together.clusters == 10
    assert width(together) > 1.3 * width(ppi_mean(alike, alike, others))


def test_cluster_error_is_that_of_sums_of_residuals() -> None:
    rng = np.random.default_rng(3)
    y, clusters = rng.random(120), rng.integers(0, 15, 120)
    found = ppi_mean(y, np.zeros(120), [], clusters=list(clusters))
    sums = [(y[clusters == number] - y.mean()).sum() for number in range(15)]
    error = math.sqrt(15 / 14 * sum(total**2 for total in sums)) / 120
    assert width(found) / 2 == pytest.approx(scipy.stats.t.ppf(0.975, 14) * error)


def test_a_shuffled_judge_leaves_the_people_s_own_interval() -> None:
    y, f, others = made(80, 400)
    rng = np.random.default_rng(1)
    people = ppi_mean(y, np.zeros_like(y), [])
    lams, widths = [], []
    for _ in range(20):
        dealt = rng.permutation(np.concatenate([f, others]))
        found = ppi_mean(y, dealt[:80], dealt[80:], resamples=2000)
        lams.append(found.lam)
        widths.append(width(found) / width(people))
    assert np.mean(lams) < 0.12
    assert 0.95 < np.mean(widths) < 1.05
    assert width(ppi_mean(y, f, others)) < 0.8 * width(people)


@pytest.mark.parametrize("verdicts", [True, False])
def test_the_interval_holds_the_truth_as_often_as_it_says(verdicts: bool) -> None:
    rng = np.random.default_rng(5)
    held = 0
    for seed in range(150):
        human = rng.random(250) < 0.9 if verdicts else rng.beta(4, 1, 250)
        judge = np.clip(0.5 * human + 0.5 * rng.random(250), 0, 1)
        found = ppi_mean(human[:50].astype(float), judge[:50], judge[50:], resamples=400, seed=seed)
        assert found.interval is not None
        held += found.interval.low <= (0.9 if verdicts else 0.8) <= found.interval.high
    assert 0.92 <= held / 150 <= 0.985


def test_labels_of_one_class_still_have_an_interval() -> None:
    found = ppi_mean([1.0] * 50, [0.9] * 50, [0.8] * 100)
    assert (found.value, found.lam) == (1, 0)
    assert found.interval is not None
    # Of 50 without a failure no more than about 6 % may fail (the rule of three).
    assert found.interval.low == pytest.approx(0.94, abs=0.01)
    assert found.interval.high == 1
    assert "two labels added" in found.method


def test_ratings_without_spread_have_one_too() -> None:
    found = ppi_mean([0.75] * 20, [0.75] * 20, [0.7] * 5)
    assert found.value == 0.75
    assert "two labels added" in found.method
    assert found.interval is not None
    assert found.interval.low < 0.75 < found.interval.high


def test_a_constant_judge_counts_nothing() -> None:
    y, _, _ = made(40, 0)
    found = ppi_mean(y, np.full(40, 0.5), np.full(100, 0.5))
    assert found.lam == 0
    assert found.value == pytest.approx(y.mean()) == found.people


@pytest.mark.parametrize(("labels", "clusters"), [([1.0], None), ([1.0, 0.4], ["a", "a"])])
def test_one_item_or_cluster_has_no_interval_and_says_so(labels: list[float], clusters: list[str] | None) -> None:
    found = ppi_mean(labels, labels, [0.2, 0.3, 0.4], clusters)
    assert found.interval is None
    assert "one item or cluster" in found.reason


def test_a_judge_that_people_contradict_counts_nothing() -> None:
    y, f, others = made(50, 100)
    assert ppi_mean(y, 1 - f, 1 - others).lam == 0


@given(
    st.lists(st.tuples(ppi_shares, ppi_shares, st.integers(0, 3)), min_size=1, max_size=12),
    st.lists(ppi_shares, max_size=8),
    st.booleans(),
)
def test_it_is_never_nan_and_stays_within_0_and_1(
    labelled: list[tuple[float, float, int]], others: list[float], clustered: bool
) -> None:
    y, f, clusters = ([column[place] for column in labelled] for place in range(3))
    found = ppi_mean(y, f, others, clusters if clustered else None, resamples=50)
    assert 0 <= found.value <= 1
    assert 0 <= found.lam <= 1
    assert found.interval is not None or found.reason
    if found.interval is not None:
        assert 0 <= found.interval.low <= found.interval.high <= 1


@pytest.mark.parametrize(
    ("labels", "message"), [([1.0, 5.0], "Scale the ratings"), ([], "at least one"), ([float("nan"), 0], "NaN")]
)
def test_ppi_refuses(labels: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ppi_mean(labels, [0.5] * len(labels), [0.5])
