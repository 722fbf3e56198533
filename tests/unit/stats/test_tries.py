"""Several tries of each case, against every draw counted one by one."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from rag_harness.stats.distributions import all_right, flips, worst_of

RNG = np.random.default_rng(3)


@pytest.mark.parametrize(("n", "k"), [(1, 1), (3, 1), (3, 2), (3, 3), (5, 3), (7, 5)])
def test_each_figure_is_the_mean_over_all_draws(n: int, k: int) -> None:
    values = np.round(RNG.random((40, n)), 1)
    right = values >= 0.5
    draws = [list(each) for each in combinations(range(n), k)]
    assert all_right(right, k) == pytest.approx(np.mean([right[:, each].all(axis=1) for each in draws], axis=0))
    lowest = np.mean([values[:, each].min(axis=1) for each in draws], axis=0)
    highest = np.mean([values[:, each].max(axis=1) for each in draws], axis=0)
    assert worst_of(values, k) == pytest.approx(lowest)
    assert worst_of(values, k, low_is_worst=False) == pytest.approx(highest)


@pytest.mark.parametrize("n", [2, 3, 6])
def test_a_flip_is_a_pair_that_disagrees(n: int) -> None:
    right = RNG.random((40, n)) < 0.6
    pairs = [right[:, a] != right[:, b] for a, b in combinations(range(n), 2)]
    assert flips(right) == pytest.approx(np.mean(pairs, axis=0))


def test_what_is_certain_is_exact() -> None:
    """A share a hair above 1 would have no bounds."""
    assert set(all_right(np.ones((2, 97), np.bool_), 41)) == {1.0}
    assert set(worst_of(np.full((2, 97), 0.1), 41)) == {0.1}
    assert set(worst_of(np.ones((2, 97)), 41)) == {1.0}


def test_the_chance_of_new_tries_is_met_on_average() -> None:
    right = RNG.random((60_000, 5)) < 0.7
    assert all_right(right, 3).mean() == pytest.approx(0.7**3, abs=0.005)
    assert flips(right).mean() == pytest.approx(2 * 0.7 * 0.3, abs=0.005)


@pytest.mark.parametrize("k", [0, 4])
def test_more_than_there_are_cannot_be_drawn(k: int) -> None:
    with pytest.raises(ValueError, match=f"k is 1 to 3; got {k}"):
        all_right(np.ones((2, 3), np.bool_), k)
    with pytest.raises(ValueError, match=f"k is 1 to 3; got {k}"):
        worst_of(np.ones((2, 3)), k)
    with pytest.raises(ValueError, match="k is 1 to 1; got 2"):
        flips(np.ones((2, 1), np.bool_))
