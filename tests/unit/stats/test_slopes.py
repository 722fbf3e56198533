"""The slope within conversations, against least squares with a column for each conversation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.stats.inputs import slope_parts, slope_values
from rag_harness.stats.means import t_bounds

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
