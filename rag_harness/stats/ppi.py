"""Prediction-powered inference (PPI++): the mean label of all items, from few labels and a judge's scores of all."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rag_harness.stats.distributions import t_quantile
from rag_harness.stats.inputs import Floats, Interval, Values, checked_confidence, floats, pairs_of, positive
from rag_harness.stats.means import members_of

# PPI++ from sums over clusters, so that ten thousand resamples are one matrix product.

_NO_SPREAD = 1e-12


class UnlabelledSums(NamedTuple):
    """The judge's scores of unlabelled items: number, sum, sum of squares, mean and its standard error."""

    n: int
    total: float
    squares: float
    mean: float
    error: float


class Weighed(NamedTuple):
    """Lambda, estimate and standard error of each resample, shape (resamples,)."""

    lam: Floats
    value: Floats
    error: Floats


def rest_of(scores: Floats) -> UnlabelledSums:
    """Sum the judge's scores of unlabelled items. Fewer than two have no variance, and count as none."""
    n = len(scores)
    if n < 2:
        return UnlabelledSums(0, 0.0, 0.0, 0.0, 0.0)
    return UnlabelledSums(n, scores.sum(), (scores**2).sum(), scores.mean(), scores.std(ddof=1) / np.sqrt(n))


def cluster_sums(y: Floats, f: Floats, members: Sequence[npt.NDArray[Any]]) -> Floats:
    """Return for each cluster n, sums of y, f, f² and yf, and the products of the first three: shape (clusters, 11)."""
    return np.array([_row(y[places], f[places]) for places in members])


def added(sums: Floats, score: float, labels: Sequence[float]) -> Floats:
    """Return the sums with one more cluster for each of ``labels``: one item with this ``score`` of the judge."""
    more = [_row(np.array([label]), np.array([score])) for label in labels]
    return np.vstack([sums, *more])


def _row(y: Floats, f: Floats) -> list[float]:
    n, a, b = float(len(y)), float(y.sum()), float(f.sum())
    return [n, a, b, float(f @ f), float(y @ f), n * n, a * a, b * b, n * a, n * b, a * b]


def weigh(weights: Floats, sums: Floats, rest: UnlabelledSums) -> Weighed:
    """Return PPI++ where each cluster counts as often as in ``weights``, shape (resamples, clusters).

    The standard error is clustered, with the factor C / (C - 1) (Miller 2024, arXiv 2411.00640).
    """
    n, a, b, ff, yf, nn, aa, bb, na, nb, ab = (weights @ sums).T
    lam = _lambda(n, a, b, ff, yf, rest)
    level = (a - lam * b) / n
    # The squared sum of a cluster's residuals, label - lambda * score - level, multiplied out.
    squares = aa + lam**2 * bb + level**2 * nn - 2 * lam * ab - 2 * level * na + 2 * lam * level * nb
    # One cluster does not show a variance. The caller then does not use the error.
    factor = len(sums) / max(len(sums) - 1, 1)
    variance = factor * np.where(squares > _NO_SPREAD, squares, 0) / n**2
    return Weighed(lam, lam * rest.mean + level, np.sqrt(variance + (lam * rest.error) ** 2))


def _lambda(n: Floats, a: Floats, b: Floats, ff: Floats, yf: Floats, rest: UnlabelledSums) -> Floats:
    """Return clip(Cov(y, f) / ((1 + n / N) Var f), 0, 1); 0 where nothing is unlabelled, or all scores are equal."""
    if not rest.n:
        return np.zeros_like(n)
    every = n + rest.n
    spread = (ff + rest.squares - (b + rest.total) ** 2 / every) / (every - 1)
    covariance = yf / n - a * b / n**2
    usable = spread > _NO_SPREAD
    return np.asarray(np.where(usable, np.clip(covariance / ((1 + n / rest.n) * np.where(usable, spread, 1)), 0, 1), 0))


# Prediction-powered inference (PPI++): the mean label of all items, from few labels and a judge's scores of all items.
#
# The judge's scores only narrow the interval. Where they are useless, lambda is near 0, and the result is the mean of
# the labels with its own interval (Angelopoulos, Duchi & Zrnic 2023, arXiv 2311.01453).

FEW_LABELS = 100
"""Below this number of labels the interval is a bootstrap-t."""
_DEGENERATE = 0.005
"""Highest share of resamples without variance. Above it, the tails of a bootstrap-t mean nothing."""


class Corrected(NamedTuple):
    """The estimated mean label of all items.

    ``lam`` is the weight of the judge's scores, 0 to 1; ``people`` is the mean of the labels alone. ``interval`` is
    None where there are too few labels, and ``reason`` then says so.
    """

    value: float
    interval: Interval | None
    lam: float
    people: float
    labels: int
    clusters: int
    unlabelled: int
    method: str
    reason: str = ""


def ppi_mean(
    labels: Values,
    scores: Values,
    unlabelled: Values,
    clusters: Sequence[Hashable] | None = None,
    *,
    confidence: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> Corrected:
    """Return the corrected mean: lambda times the mean of ``unlabelled``, plus the mean of labels - lambda * scores.

    Args:
        labels: people's labels of the labelled items, from 0 to 1.
        scores: the judge's scores of the same items.
        unlabelled: the judge's scores of the other items; empty where all are labelled.
        clusters: cluster of each labelled item, e.g. a conversation or a document; None where there are none.
        confidence: confidence of the interval. With ratings it is Student's t from 100 labels on, with one degree of
            freedom less than clusters; with fewer labels it is a bootstrap-t over clusters. With labels that are all 0
            or 1, and with resamples that lack variance, it is Student's t with an added label 0 and an added label 1,
            as Agresti & Coull 1998 do for a proportion.
        resamples: number of resamples of the bootstrap-t.
        seed: seed of the bootstrap-t.

    Raises:
        ValueError: labels and scores differ in length, a number is NaN or infinite, or a label is outside 0 to 1.
    """
    y, f = pairs_of(labels, scores, "ppi_mean")
    if y.min() < 0 or y.max() > 1:
        raise ValueError(f"ppi_mean needs labels from 0 to 1; got {y.min():g} to {y.max():g}. Scale the ratings.")
    rest = rest_of(floats(unlabelled, "ppi_mean") if len(unlabelled) else np.empty(0))
    sums = cluster_sums(y, f, members_of(clusters, len(y)))
    found = weigh(np.ones((1, len(sums))), sums, rest)
    lam, value = float(found.lam[0]), float(np.clip(found.value[0], 0, 1))
    interval, method = _bounds(sums, y, f, rest, (1 + checked_confidence(confidence)) / 2, positive(resamples), seed)
    reason = "" if interval else "the labels are of one item or cluster, so no interval"
    return Corrected(value, interval, lam, float(y.mean()), len(y), len(sums), rest.n, method, reason)


def _bounds(
    sums: Floats, y: Floats, f: Floats, rest: UnlabelledSums, share: float, resamples: int, seed: int
) -> tuple[Interval | None, str]:
    if len(sums) < 2:
        return None, "none"
    verdicts = bool(np.isin(y, (0, 1)).all())
    if not verdicts and len(y) >= FEW_LABELS:
        return _by_t(sums, rest, share), "Student's t"
    bounds = None if verdicts else _by_bootstrap(sums, rest, share, resamples, np.random.default_rng(seed))
    if bounds is not None:
        return bounds, "bootstrap-t"
    return _by_t(added(sums, float(f.mean()), (0.0, 1.0)), rest, share), "Student's t, two labels added"


def _by_t(sums: Floats, rest: UnlabelledSums, share: float) -> Interval:
    found = weigh(np.ones((1, len(sums))), sums, rest)
    half = t_quantile(share, len(sums) - 1) * found.error[0]
    return _held(found.value[0] - half, found.value[0] + half)


def _by_bootstrap(
    sums: Floats, rest: UnlabelledSums, share: float, resamples: int, rng: np.random.Generator
) -> Interval | None:
    """Return the bootstrap-t interval (Efron & Tibshirani 1993, 12.5); None where resamples lack variance."""
    count = len(sums)
    found = weigh(np.ones((1, count)), sums, rest)
    drawn = weigh(rng.multinomial(count, np.full(count, 1 / count), resamples).astype(float), sums, rest)
    value, error = found.value[0], found.error[0]
    if np.mean(drawn.error <= 1e-6 * error) > _DEGENERATE or not error:
        return None
    usable = drawn.error > 1e-6 * error
    ratios = _with_rest(drawn, rest, rng)[usable] - value
    low, high = np.quantile(ratios / drawn.error[usable], [1 - share, share])
    return _held(value - high * error, value - low * error)


def _with_rest(drawn: Weighed, rest: UnlabelledSums, rng: np.random.Generator) -> Floats:
    """Add the variance of the unlabelled mean. There are many unlabelled items, so it is normal."""
    return np.asarray(drawn.value + drawn.lam * rest.error * rng.standard_normal(len(drawn.value)))


def _held(low: float, high: float) -> Interval:
    return Interval(float(np.clip(low, 0, 1)), float(np.clip(high, 0, 1)))
