"""Intervals and tests agree with scipy, and refuse what would poison a mean."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from time import perf_counter

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from rag_harness import stats
from rag_harness.stats.means import bounded_bounds
from rag_harness.stats.quantiles import clustered_quantile_bounds

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


def test_permutation_is_fast() -> None:
    rng = np.random.default_rng(0)
    start = perf_counter()
    for _ in range(4):
        stats.permutation_test(rng.random(10_000), rng.random(10_000))
    assert perf_counter() - start < 5, "0.2 s when the machine is idle"


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
