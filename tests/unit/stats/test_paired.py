"""Paired tests equal scipy's, hold their level, and say nothing where there is nothing to say."""

from __future__ import annotations

from collections.abc import Callable
from math import nan

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.stats import difference_interval
from rag_harness.stats.inputs import UndefinedError
from rag_harness.stats.paired_tests import ALL_EQUAL, ONE_PAIR, paired, quantile_difference, spread_of

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
