"""The distributions equal scipy's, far tails included."""

from __future__ import annotations

from collections.abc import Callable
from math import asin, inf, nan, nextafter, pi, sqrt

import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.stats.distributions import beta_below, beta_quantile, binomial_at_most, t_outside, t_quantile

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
        lambda: beta_below(nan, 1, 1),
        lambda: beta_below(0.5, 0, 1),
        lambda: beta_quantile(1.1, 1, 1),
        lambda: binomial_at_most(1, -1, 0.5),
        lambda: binomial_at_most(1, 2, nan),
        lambda: t_outside(nan, 3),
        lambda: t_outside(1, 0),
        lambda: t_quantile(1, 3),
        lambda: t_quantile(0.9, 0),
        lambda: t_quantile(0.5, 0),
    ],
)
def test_refuses(call: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match="needs"):
        call()
