"""Variance components equal a textbook's, are unbiased, and find known variances."""

from __future__ import annotations

from math import nan
from typing import Any

import numpy as np
import pytest
import scipy.stats

from rag_harness.stats.agreement import variance_components
from rag_harness.stats.inputs import UndefinedError


def made(q: int, r: int, j: int, spreads: tuple[float, float, float], seed: int = 0) -> np.ndarray:
    """Return values whose query, pipeline and judge have these standard deviations."""
    rng = np.random.default_rng(seed)
    query, pipeline, judge = spreads
    noise = pipeline * rng.normal(size=(q, r, 1)) + judge * rng.normal(size=(q, r, j))
    return np.asarray(0.6 + query * rng.normal(size=(q, 1, 1)) + noise)


def test_a_worked_example() -> None:
    found = variance_components([[[1, 3], [5, 7]], [[2, 2], [4, 8]]])
    # By hand: squares within answers 2 + 2 + 0 + 8 = 12 over 4; answers 2, 6, 2, 6: MS 32 / 2 = 16; queries equal.
    assert (found.judge, found.pipeline, found.query) == (3, (16 - 3) / 2, -4)
    assert (found.mean, found.reasons) == (4, {})


def test_one_judgement_is_scipys_analysis_of_variance() -> None:
    values = made(30, 4, 1, (0.2, 0.1, 0))
    found, oracle = variance_components(values), scipy.stats.f_oneway(*values[:, :, 0])
    assert found.query is not None
    assert found.pipeline is not None
    assert (4 * found.query + found.pipeline) / found.pipeline == pytest.approx(oracle.statistic)
    assert found.pipeline == pytest.approx(values[:, :, 0].var(axis=1, ddof=1).mean())
    assert found.reasons == {
        "judge": "each answer was judged once (J = 1), so that pipeline holds the judge's noise too"
    }


@pytest.mark.parametrize("spreads", [(0.3, 0.2, 0.1), (0.1, 0.3, 0.2), (0.2, 0.1, 0.3)])
def test_known_variances_within_10_per_cent(spreads: tuple[float, float, float]) -> None:
    found = variance_components(made(4000, 4, 4, spreads))
    assert (found.query, found.pipeline, found.judge) == pytest.approx([spread**2 for spread in spreads], rel=0.1)


def test_the_estimators_are_unbiased_in_small_designs() -> None:
    every = [variance_components(made(5, 2, 2, (0.1, 0.2, 0.3), seed)) for seed in range(3000)]
    means = [np.mean([getattr(found, name) for found in every]) for name in ("query", "pipeline", "judge")]
    assert means == pytest.approx([0.01, 0.04, 0.09], rel=0.15)
    assert any((found.query or 0) < 0 for found in every)  # unbiased, so not cut off at 0


def test_shares_and_the_error_of_another_run() -> None:
    found = variance_components(made(4000, 4, 4, (0.3, 0.2, 0.1)))
    assert sum(found.shares().values()) == pytest.approx(1)
    assert found.shares()["query"] == pytest.approx(9 / 14, abs=0.05)
    assert found.error_of(200, 1, 1) == pytest.approx(np.sqrt(0.14 / 200), rel=0.05)
    assert found.error_of(200, 4, 2) == pytest.approx(np.sqrt(0.09 / 200 + 0.04 / 800 + 0.01 / 1600), rel=0.05)


def test_answered_once_is_a_reason() -> None:
    found = variance_components(made(20, 1, 3, (0.3, 0.2, 0.1)))
    assert (found.query, found.pipeline) == (None, None)
    assert found.judge is not None
    assert "R = 1" in found.reasons["pipeline"]
    assert "R = 1" in found.reasons["query"]
    with pytest.raises(UndefinedError, match="R = 1"):
        found.error_of(10)


def test_one_query_is_a_reason() -> None:
    found = variance_components(made(1, 3, 3, (0.3, 0.2, 0.1)))
    assert (found.query, found.reasons) == (None, {"query": "one query only"})
    assert found.pipeline is not None


def test_equal_values_have_no_variance() -> None:
    found = variance_components(np.full((3, 3, 3), 0.5))
    assert (found.query, found.pipeline, found.judge) == (0, 0, 0)
    assert set(found.shares().values()) == {0.0}
    assert found.error_of(3) == 0


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([], "by query, answer and judgement"),
        ([[0.1, 0.2]], "by query, answer and judgement"),
        ([[[0.1], [0.2]], [[0.1]]], "as many answers"),
        ([[[nan, 0.1], [0.2, 0.3]]], "1 NaN or infinite of 4"),
    ],
)
def test_refuses(values: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        variance_components(values)


def test_numbers_below_1_are_no_run() -> None:
    with pytest.raises(ValueError, match="1 or more"):
        variance_components(made(3, 3, 3, (0.3, 0.2, 0.1))).error_of(0)
