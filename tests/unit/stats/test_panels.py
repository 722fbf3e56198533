"""The figure of a panel, what its judges are worth, and PPI++ with all of their scores."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.stats.inputs import UndefinedError
from rag_harness.stats.panels import independent_votes, panel_values
from rag_harness.stats.ppi import ppi_mean
from rag_harness.stats.ppi_vector import ppi_panel_mean

shares = st.floats(0, 1)


def made(n: int, rest: int, judges: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return ratings of people, and what judges that follow them differently well say of these and of the others."""
    rng = np.random.default_rng(seed)
    human = rng.beta(4, 2, n + rest)
    weights = np.linspace(0.8, 0.3, judges)
    scores = weights * human[:, None] + (1 - weights) * rng.random((n + rest, judges))
    return human[:n], scores[:n], scores[n:]


@given(st.lists(st.lists(st.sampled_from([0.0, 1.0]), min_size=3, max_size=3), min_size=1, max_size=5))
def test_a_majority_of_verdicts_is_what_most_judges_say_and_a_tie_is_a_half(said: list[list[float]]) -> None:
    for number, items in enumerate(panel_values("majority", said)):
        most = [sum(judge) for judge in zip(*said, strict=True)][number] - len(said) / 2
        assert items == (0.5 if not most else float(most > 0)), said


@given(st.lists(shares, min_size=1, max_size=6))
def test_the_rules_are_median_and_mean(said: list[float]) -> None:
    column = [[value] for value in said]
    assert panel_values("majority", column)[0] == pytest.approx(np.median(said))
    assert panel_values("mean", column)[0] == panel_values("calibrated", column)[0] == pytest.approx(np.mean(said))


@pytest.mark.parametrize("rule", ["majority", "mean"])
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


@pytest.mark.parametrize(("n", "rest"), [(20, 40), (50, 950), (150, 30)])
def test_with_one_judge_no_ridge_and_no_folds_it_is_the_correction_by_one_judge(n: int, rest: int) -> None:
    y, f, others = made(n, rest, judges=1, seed=n)
    one, panel = ppi_mean(y, f[:, 0], others[:, 0]), ppi_panel_mean(y, f, others, ridge=0, folds=1)
    assert panel.weights == pytest.approx([one.lam])
    assert panel.value == pytest.approx(one.value)
    if one.method == "Student's t":
        assert panel.interval == pytest.approx(one.interval, abs=1e-3)


@pytest.mark.parametrize("judges", [1, 3, 5])
def test_the_weights_are_least_squares_over_all_answers(judges: int) -> None:
    y, f, others = made(60, 400, judges)
    every = np.cov(np.vstack([f, others]).T).reshape(judges, judges)
    with_labels = [np.cov(f[:, judge], y, ddof=0)[0, 1] for judge in range(judges)]
    weights = np.linalg.inv(every) @ with_labels / (1 + 60 / 400)
    found = ppi_panel_mean(y, f, others, ridge=0, folds=1)
    assert found.weights == pytest.approx(weights)
    assert found.value == pytest.approx(y.mean() + weights @ (others.mean(axis=0) - f.mean(axis=0)))


def test_a_label_is_never_corrected_by_weights_that_were_fitted_on_it() -> None:
    y, f, others = made(12, 300)
    before = ppi_panel_mean(y, f, others, folds=12).weights
    alone = np.array(
        [ppi_panel_mean(np.delete(y, n), np.delete(f, n, 0), others, folds=1, ridge=3 / 12).weights for n in range(12)]
    )
    # The factor 1 + n / N is of all labels, and the single fits have one less.
    assert before == pytest.approx(alone.mean(axis=0) * (1 + 11 / 300) / (1 + 12 / 300))


def test_judges_who_say_the_same_share_one_weight_and_useless_ones_get_none() -> None:
    y, f, others = made(80, 2000, 1)
    twice = ppi_panel_mean(y, np.hstack([f, f]), np.hstack([others, others]), ridge=0, folds=1)
    once = ppi_panel_mean(y, f, others, ridge=0, folds=1)
    assert twice.value == pytest.approx(once.value)
    assert sum(twice.weights) == pytest.approx(once.weights[0])
    noise = np.random.default_rng(1).random((2080, 3))
    useless = ppi_panel_mean(y, noise[:80], noise[80:])
    assert useless.value == pytest.approx(y.mean(), abs=0.02)
    assert np.abs(useless.weights).max() < 0.2


def test_without_other_answers_or_with_one_opinion_it_is_the_mean_of_the_labels() -> None:
    y, f, _ = made(30, 5)
    for scores, others in ((f, []), (f, f[:1]), (np.ones_like(f), np.ones((50, 3)))):
        found = ppi_panel_mean(y, scores, others)
        assert found.value == pytest.approx(y.mean())
        assert found.weights == (0.0, 0.0, 0.0)


def test_answers_of_one_cluster_do_not_count_as_many() -> None:
    y, f, others = made(40, 500)
    alone = ppi_panel_mean(y, f, others).interval
    doubled = ppi_panel_mean(np.repeat(y, 2), np.repeat(f, 2, 0), others, list(np.repeat(np.arange(40), 2))).interval
    assert alone is not None
    assert doubled is not None
    assert doubled.high - doubled.low == pytest.approx(alone.high - alone.low, rel=0.1)
    assert ppi_panel_mean(y, f, others, ["one"] * 40).interval is None


@pytest.mark.parametrize(
    ("labels", "scores", "others"),
    [
        ([1, 0], [[1, 0]], [[1, 0]]),
        ([1, 2], [[1], [0]], [[1]]),
        ([1, 0], [[1], [np.nan]], [[1]]),
        ([1, 0], [[1], [0]], [[1, 0]]),
    ],
)
def test_input_that_does_not_fit_is_refused(
    labels: list[float], scores: list[list[float]], others: list[list[float]]
) -> None:
    with pytest.raises(ValueError, match="ppi_panel_mean"):
        ppi_panel_mean(labels, scores, others)


def test_a_narrower_confidence_is_a_narrower_interval() -> None:
    y, f, others = made(50, 500)
    found = [ppi_panel_mean(y, f, others, confidence=share).interval for share in (0.5, 0.9, 0.99)]
    widths = [each.high - each.low for each in found if each is not None]
    assert all(a < b for a, b in pairwise(widths))
    assert len(widths) == 3


@pytest.mark.parametrize(("share", "shared"), [pytest.param(0.5, 0.0, marks=pytest.mark.long), (0.8, 0.9), (0.9, 0.5)])
def test_its_interval_holds_the_mean_as_often_as_it_says(share: float, shared: float) -> None:
    """Skewed verdicts, three judges, 50 labels. 200 draws: 92 to 98 % is within two standard errors."""
    rng = np.random.default_rng(7)
    cut, held = scipy.stats.norm.ppf(1 - share), 0
    for _ in range(200):
        truth, common = rng.standard_normal((2, 500))
        errors = np.sqrt(shared) * common[:, None] + np.sqrt(1 - shared) * rng.standard_normal((500, 3))
        f = (0.7 * truth[:, None] + 0.7 * errors > cut).astype(float)
        found = ppi_panel_mean((truth[:50] > cut).astype(float), f[:50], f[50:])
        assert found.interval is not None
        held += found.interval.low <= share <= found.interval.high
    assert 0.92 <= held / 200 <= 0.98
