"""Risk and coverage by definition, and a promise that is kept."""

from __future__ import annotations

from collections.abc import Callable
from math import nan

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.stats.inputs import UndefinedError
from rag_harness.stats.prediction import answers_at_rate, answers_needed, promise, risk_coverage


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
