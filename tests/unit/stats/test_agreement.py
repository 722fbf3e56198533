"""Agreement equals scikit-learn, scipy and the package krippendorff; an undefined value has a reason."""

from __future__ import annotations

import math
from collections.abc import Callable
from math import nan
from typing import Any

import krippendorff
import numpy as np
import pytest
import scipy.stats
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rag_harness.stats.agreement import (
    Confusion,
    accuracy,
    auroc,
    cohen_kappa,
    confusion,
    f1,
    flip_rate,
    independent_votes,
    krippendorff_alpha,
    panel_values,
    pearson,
    spearman,
    variance_components,
    weighted_kappa,
)
from rag_harness.stats.inputs import UndefinedError
from rag_harness.stats.means import estimate
from rag_harness.stats.prediction import ppi_mean

verdicts = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=2, max_size=30)
ratings = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=2, max_size=30)
graded = st.lists(st.tuples(st.integers(0, 1), st.sampled_from([0, 0.25, 0.5, 0.9, 1])), min_size=2, max_size=30)


def columns(pairs: list[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [float(a) for a, _ in pairs], [float(b) for _, b in pairs]


@settings(max_examples=50)
@given(verdicts)
def test_verdicts_agree_as_sklearn_says(pairs: list[tuple[float, float]]) -> None:
    import sklearn.metrics

    a, b = columns(pairs)
    assert accuracy(a, b) == pytest.approx(sklearn.metrics.accuracy_score(a, b))
    tn, fp, fn, tp = sklearn.metrics.confusion_matrix(a, b, labels=[0, 1]).ravel()
    assert confusion(a, b) == Confusion(tp, fp, fn, tn)
    if len({*a, *b}) == 2:
        assert cohen_kappa(a, b) == pytest.approx(sklearn.metrics.cohen_kappa_score(a, b), abs=1e-12)
        assert f1(a, b) == pytest.approx(sklearn.metrics.f1_score(a, b))


@given(ratings)
def test_weighted_kappa_equals_sklearn(pairs: list[tuple[float, float]]) -> None:
    import sklearn.metrics

    a, b = columns(pairs)
    assume(len({*a, *b}) > 1)
    theirs = sklearn.metrics.cohen_kappa_score(a, b, weights="quadratic", labels=[1, 2, 3, 4, 5])
    assert weighted_kappa(a, b) == pytest.approx(theirs, abs=1e-12)


@settings(max_examples=50)
@given(graded)
def test_auroc_equals_sklearn_with_ties(pairs: list[tuple[float, float]]) -> None:
    import sklearn.metrics

    a, b = columns(pairs)
    assume(len(set(a)) == 2)
    assert auroc(a, b) == pytest.approx(sklearn.metrics.roc_auc_score(a, b))
    assert auroc(a, b) == pytest.approx(1 - auroc(a, [-score for score in b]))


@given(ratings)
def test_correlations_equal_scipy(pairs: list[tuple[float, float]]) -> None:
    a, b = columns(pairs)
    assume(len(set(a)) > 1 and len(set(b)) > 1)
    assert spearman(a, b) == pytest.approx(scipy.stats.spearmanr(a, b).statistic, abs=1e-12)
    assert pearson(a, b) == pytest.approx(scipy.stats.pearsonr(a, b).statistic, abs=1e-12)


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_correlations_of_extreme_numbers(size: float) -> None:
    assert pearson([0, size, 2 * size], [0, 1, 2]) == pytest.approx(1)


@given(
    st.lists(st.lists(st.integers(0, 3), max_size=4), min_size=1, max_size=12), st.sampled_from(["nominal", "interval"])
)
def test_alpha_equals_the_package_krippendorff(items: list[list[int]], level: str) -> None:
    rated = [item for item in items if len(item) > 1]
    assume(len({value for item in rated for value in item}) > 1)
    table = np.full((4, len(rated)), np.nan)
    for place, item in enumerate(rated):
        table[: len(item), place] = item
    theirs = krippendorff.alpha(reliability_data=table, level_of_measurement=level, value_domain=[0, 1, 2, 3])
    assert krippendorff_alpha(items, level) == pytest.approx(theirs, abs=1e-9)  # type: ignore[arg-type]


def test_two_raters_who_disagree_always() -> None:
    a, b = [0.0, 1, 0, 1, 1], [1.0, 0, 1, 0, 0]
    assert accuracy(a, b) == 0
    assert cohen_kappa(a, b) < 0
    assert f1(a, b) == 0
    assert auroc(a, b) == 0
    assert spearman(a, b) == pytest.approx(-1)
    assert pearson(a, b) == pytest.approx(-1)
    assert krippendorff_alpha(list(zip(a, b, strict=True))) < 0
    assert flip_rate(list(zip(a, b, strict=True))) == 1


def test_flip_rate_is_the_chance_that_two_repeats_differ() -> None:
    assert flip_rate([[0.4, 0.6, 0.9], [1, 1], [0.2]]) == pytest.approx((2 / 3 + 0) / 2)


undefined: dict[str, tuple[Callable[[], float], str]] = {
    "kappa of one verdict": (lambda: cohen_kappa([1, 1], [1, 1]), "both say 1 of everything"),
    "weighted kappa of one": (lambda: weighted_kappa([3, 3], [3, 3]), "both say 3 of everything"),
    "auroc of one class": (lambda: auroc([0, 0], [0.1, 0.2]), "one class only: every label is 0"),
    "spearman, constant judge": (lambda: spearman([1, 2], [0.5, 0.5]), "the second says 0.5 of everything"),
    "pearson of one item": (lambda: pearson([1], [2]), "one item only"),
    "f1 without a 1": (lambda: f1([0, 0], [0, 0]), "neither says 1 of anything"),
    "alpha of one rater": (lambda: krippendorff_alpha([[1], [0]]), "no item has two values"),
    "alpha without spread": (lambda: krippendorff_alpha([[1, 1], [1, 1]]), "everybody says 1 of everything"),
    "alpha, interval": (lambda: krippendorff_alpha([[0.3, 0.3]], "interval"), "everybody says 0.3"),
    "flips of one repeat": (lambda: flip_rate([[1]]), "no item has two values"),
}


@pytest.mark.parametrize(("call", "why"), undefined.values(), ids=undefined)
def test_what_is_not_defined_says_why(call: Callable[[], float], why: str) -> None:
    with pytest.raises(UndefinedError, match=why):
        call()


@pytest.mark.parametrize("call", [lambda: auroc([0, 2], [0, 1]), lambda: f1([0, 1], [0, 0.5])])
def test_what_is_no_verdict_is_refused(call: Callable[[], float]) -> None:
    with pytest.raises(ValueError, match="0 or 1"):
        call()


def test_an_estimate_has_the_interval_of_scipy() -> None:
    rng = np.random.default_rng(0)
    a = rng.random(60)
    b = a + rng.random(60)
    ours = estimate(pearson, a, b, resamples=4000)
    theirs = scipy.stats.bootstrap(
        (a, b),
        lambda x, y: np.corrcoef(x, y)[0, 1],
        paired=True,
        vectorized=False,
        method="percentile",
        n_resamples=2000,
    )
    low, high = theirs.confidence_interval
    assert ours.interval == pytest.approx((low, high), abs=0.1 * (high - low))
    assert ours.value == pytest.approx(pearson(a, b))


def test_items_of_a_cluster_are_drawn_together() -> None:
    a = [0.0, 1, 0, 1, 0, 1, 1, 1] * 5
    b = [0.0, 1, 1, 1, 0, 1, 0, 1] * 5
    alone, together = estimate(accuracy, a, b), estimate(accuracy, a, b, clusters=[place % 8 for place in range(40)])
    assert alone.interval is not None
    assert together.interval is not None
    assert together.interval.high - together.interval.low > 1.5 * (alone.interval.high - alone.interval.low)


@pytest.mark.parametrize(
    ("truth", "scores", "clusters", "why"),
    [
        ([1.0], [0.5], None, "one item or cluster only"),
        ([1.0, 0.0], [0.5, 0.1], ["a", "a"], "one item or cluster only"),
        ([1.0, 0, 0, 0], [0.5, 0.1, 0.2, 0.3], None, "too few items for an interval"),
        ([1.0, 1.0], [0.5, 0.1], None, "one class only"),
        ([1.0, 0, 0, 1], [1.0, 0, 0, 1], list("abcd"), "no resample differs"),
    ],
)
def test_an_estimate_says_what_it_lacks(
    truth: list[float], scores: list[float], clusters: list[str] | None, why: str
) -> None:
    found = estimate(accuracy if len(truth) == 1 or clusters else auroc, truth, scores, clusters=clusters)
    assert found.interval is None
    assert found.reason.startswith(why)


@given(verdicts, st.sampled_from([accuracy, cohen_kappa, auroc, spearman, pearson, f1]))
def test_an_estimate_is_never_nan(pairs: list[tuple[float, float]], statistic: Callable[..., float]) -> None:
    found = estimate(statistic, *columns(pairs), resamples=20)
    assert found.value is None or math.isfinite(found.value)
    assert found.value is not None or found.reason


def test_clusters_are_one_a_value() -> None:
    with pytest.raises(ValueError, match="got 1 for 2"):
        estimate(accuracy, [1, 0], [1, 0], clusters=["a"])


# Variance components equal a textbook's, are unbiased, and find known variances.


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


# The figure of a panel, what its judges are worth, and its mean corrected by people's labels.

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
