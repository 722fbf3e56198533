"""The figure of a panel, what its judges are worth, and its mean corrected by people's labels."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.stats.agreement import independent_votes, panel_values
from rag_harness.stats.inputs import UndefinedError
from rag_harness.stats.ppi import ppi_mean

shares = st.floats(0, 1)


@given(st.lists(st.lists(st.sampled_from([0.0, 1.0]), min_size=3, max_size=3), min_size=1, max_size=5))
def test_a_majority_of_verdicts_is_what_most_judges_say_and_a_tie_is_a_half(said: list[list[float]]) -> None:
    for number, items in enumerate(panel_values("majority", said)):
        most = [sum(judge) for judge in zip(*said, strict=True)][number] - len(said) / 2
        assert items == (0.5 if not most else float(most > 0)), said


@given(st.lists(shares, min_size=1, max_size=6))
def test_the_rules_are_median_and_mean(said: list[float]) -> None:
    column = [[value] for value in said]
    assert panel_values("median", column)[0] == pytest.approx(np.median(said))
    assert panel_values("mean", column)[0] == pytest.approx(np.mean(said))


@given(st.lists(shares, min_size=1, max_size=6))
def test_a_majority_of_shares_is_that_of_their_verdicts_at_a_half(said: list[float]) -> None:
    more, less = sum(value > 0.5 for value in said), sum(value < 0.5 for value in said)
    assert panel_values("majority", [[value] for value in said])[0] == (0.5 if more == less else float(more > less))


@pytest.mark.parametrize("rule", ["majority", "mean", "median"])
def test_a_panel_without_one_of_its_judges_has_no_value(rule: str) -> None:
    assert np.isnan(panel_values(rule, [[1.0, 0.5], [1.0, np.nan], [1.0, 0.5]])).tolist() == [False, True]


def test_judges_with_errors_in_common_are_few_votes() -> None:
    rng = np.random.default_rng(0)
    common, own = rng.standard_normal(4000), rng.standard_normal((9, 4000))
    errors = np.sqrt(0.4) * common + np.sqrt(0.6) * own
    rho = np.mean([scipy.stats.pearsonr(errors[a], errors[b])[0] for a in range(9) for b in range(a)])
    found = independent_votes(errors)
    assert found.rho == pytest.approx(rho)
    assert found.n_eff == pytest.approx(9 / (1 + 8 * rho)) == pytest.approx(2.14, abs=0.1)


def test_the_same_judge_twice_is_one_vote_and_opposite_judges_are_not_more_than_two() -> None:
    errors = np.array([0.1, -0.3, 0.2, 0.0])
    assert independent_votes([errors, errors]).n_eff == pytest.approx(1)
    assert independent_votes([errors, -errors]) == pytest.approx((-1, 2))


@pytest.mark.parametrize("errors", [[[0.1, 0.2]], [[0.1], [0.2]], [[0.1, 0.2], [0.3, 0.3]]])
def test_votes_that_cannot_be_counted_are_undefined(errors: list[list[float]]) -> None:
    with pytest.raises(UndefinedError):
        independent_votes(errors)


@pytest.mark.parametrize(("share", "shared"), [pytest.param(0.5, 0.0, marks=pytest.mark.long), (0.8, 0.9), (0.9, 0.5)])
def test_its_interval_holds_the_mean_as_often_as_it_says(share: float, shared: float) -> None:
    """Skewed verdicts, three judges, 50 labels. 200 draws: 92 to 98 % is within two standard errors."""
    rng = np.random.default_rng(7)
    cut, held = scipy.stats.norm.ppf(1 - share), 0
    for _ in range(200):
        truth, common = rng.standard_normal((2, 500))
        errors = np.sqrt(shared) * common[:, None] + np.sqrt(1 - shared) * rng.standard_normal((500, 3))
        f = (0.7 * truth[:, None] + 0.7 * errors > cut).astype(float)
        said = panel_values("mean", f.T)
        found = ppi_mean((truth[:50] > cut).astype(float), said[:50], said[50:])
        assert found.interval is not None
        held += found.interval.low <= share <= found.interval.high
    assert 0.92 <= held / 200 <= 0.98
