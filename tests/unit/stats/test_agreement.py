"""Agreement equals scikit-learn, scipy and the package krippendorff; an undefined value has a reason."""

from __future__ import annotations

import math
from collections.abc import Callable

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
    krippendorff_alpha,
    pearson,
    spearman,
    weighted_kappa,
)
from rag_harness.stats.inputs import UndefinedError
from rag_harness.stats.means import estimate

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
