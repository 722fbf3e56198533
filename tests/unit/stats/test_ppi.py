"""PPI++ is what its paper says, a useless judge costs nothing, and its interval holds what it should."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.stats.prediction import Corrected, ppi_mean

shares = st.floats(0, 1)
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
    st.lists(st.tuples(shares, shares, st.integers(0, 3)), min_size=1, max_size=12),
    st.lists(shares, max_size=8),
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
def test_refuses(labels: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ppi_mean(labels, [0.5] * len(labels), [0.5])
