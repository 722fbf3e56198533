"""For very many cases, no case is drawn one by one, and the results equal those of draws."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.stats import paired_tests, permutation_test
from rag_harness.stats.means import MANY_CASES, _quantiles, drawn_differences
from rag_harness.stats.paired_tests import quantile_difference

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
