"""What n cases can detect equals what simulation and an exact power calculation say."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan, sqrt

import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.stats.power import cases_needed, detectable_difference


@pytest.mark.parametrize("n", [5, 10, 20, 40, 200, 5000])
def test_the_power_is_what_was_asked(n: int) -> None:
    # Exactly: by the noncentral t distribution, which the formula approximates.
    centre, edge = detectable_difference(1, n) * sqrt(n), scipy.stats.t.ppf(0.975, n - 1)
    power = scipy.stats.nct.sf(edge, n - 1, centre) + scipy.stats.nct.cdf(-edge, n - 1, centre)
    assert power == pytest.approx(0.8, abs=0.01)


@pytest.mark.parametrize(
    ("effect", "n"),
    # statsmodels 0.15, TTestPower().solve_power(effect_size=effect, alpha=0.05, power=0.8)
    [(0.1, 786.809), (0.2, 198.151), (0.5, 33.367), (1.0, 9.938)],
)
def test_cases_equal_those_of_statsmodels(effect: float, n: float) -> None:
    assert cases_needed(1, effect) == pytest.approx(n, abs=1.1)


def test_the_figures_of_the_textbook() -> None:
    assert detectable_difference(0.3, 10_000) == pytest.approx(2.80 * 0.3 / 100, rel=1e-3)
    assert cases_needed(0.3, 0.05) == 285


@given(st.floats(0.01, 10), st.floats(0.01, 5), st.floats(0.5, 0.99))
def test_one_case_fewer_would_not_do(sd: float, difference: float, power: float) -> None:
    n = cases_needed(sd, difference, power)
    assert detectable_difference(sd, n, power) <= difference
    assert n == 2 or detectable_difference(sd, n - 1, power) > difference


@pytest.mark.parametrize(
    "call",
    [
        lambda: detectable_difference(0.3, 1),
        lambda: detectable_difference(0, 20),
        lambda: detectable_difference(nan, 20),
        lambda: detectable_difference(0.3, 20, power=1),
        lambda: detectable_difference(0.3, 20, alpha=0),
        lambda: cases_needed(0.3, 0),
        lambda: cases_needed(0.3, inf),
        lambda: cases_needed(0.3, 1e-9),
    ],
)
def test_refuses(call: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match="needs"):
        call()
