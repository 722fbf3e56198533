"""Prediction-powered inference with the scores of several judges: PPI++ with a vector of predictions.

The mean label of all items is estimated as the mean of labels - lambda^T (F - mean F of unlabelled items). Lambda is
Sigma_FF^-1 Sigma_Fy / (1 + n / N) (Angelopoulos, Duchi & Zrnic 2023, arXiv 2311.01453, section 6). It is fitted with a
ridge, and on other labels than those that it corrects, so that a few labels cannot be explained by their own weights.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rag_harness.stats.distributions import t_quantile
from rag_harness.stats.estimate import members_of
from rag_harness.stats.inputs import Floats, Values, checked_confidence, finite, floats
from rag_harness.stats.intervals import Interval

FOLDS = 10
"""Folds of the cross-fitting. Fewer clusters are left out one at a time."""


class CorrectedByPanel(NamedTuple):
    """The estimated mean label of all items.

    ``weights`` is lambda, the mean over the folds: one number a judge. ``people`` is the mean of the labels alone.
    ``interval`` is None where there are too few labels, and ``reason`` then says so.
    """

    value: float
    interval: Interval | None
    weights: tuple[float, ...]
    people: float
    labels: int
    clusters: int
    unlabelled: int
    reason: str = ""


def ppi_panel_mean(
    labels: Values,
    scores: npt.ArrayLike,
    unlabelled: npt.ArrayLike,
    clusters: Sequence[Hashable] | None = None,
    *,
    confidence: float = 0.95,
    ridge: float | None = None,
    folds: int = FOLDS,
) -> CorrectedByPanel:
    """Return the mean of labels, corrected by the scores of all judges.

    Args:
        labels: people's labels of the labelled items, from 0 to 1, shape (n,).
        scores: the judges' scores of the same items, shape (n, judges).
        unlabelled: their scores of the other items, shape (N, judges).
        clusters: cluster of each labelled item; None where there are none.
        confidence: confidence of the interval: Student's t over clusters. Where all labels are 0 or 1, a label 0 and a
            label 1 are added, as Agresti & Coull 1998 do for a proportion.
        ridge: what is added to the variances, as a share of their mean; None for judges / n.
        folds: number of parts of the labels, each of which is corrected by weights of the others; 1 for no
            cross-fitting. The parts are drawn with a fixed seed.

    Raises:
        ValueError: shapes do not fit, a number is NaN or infinite, or a label lies outside 0 to 1.
    """
    y, f, rest = _checked(labels, scores, unlabelled)
    n, judges = f.shape
    members = members_of(clusters, n)
    ridge = judges / n if ridge is None else ridge
    weights = _weights_by_item(y, f, rest, members, ridge, folds)
    centre = rest.mean(axis=0) if len(rest) else f.mean(axis=0)
    residuals = y - ((f - centre) * weights).sum(axis=1)
    mean_weights = weights.mean(axis=0)
    value = float(np.clip(residuals.mean(), 0, 1))
    interval = None
    if len(members) > 1:
        share = (1 + checked_confidence(confidence)) / 2
        verdicts = bool(np.isin(y, (0, 1)).all())
        interval = _by_t(residuals, members, mean_weights, rest, share, (0.0, 1.0) if verdicts else ())
    reason = "" if interval else "the labels are of one item or cluster, so no interval"
    own = tuple(float(weight) for weight in mean_weights)
    return CorrectedByPanel(value, interval, own, float(y.mean()), n, len(members), len(rest), reason)


def _checked(labels: Values, scores: npt.ArrayLike, unlabelled: npt.ArrayLike) -> tuple[Floats, Floats, Floats]:
    y, f = floats(labels, "ppi_panel_mean"), np.asarray(scores, np.float64)
    if f.ndim != 2 or len(f) != len(y) or not f.shape[1]:
        raise ValueError(f"ppi_panel_mean needs a row of judges' scores a label; got {f.shape} for {len(y)} labels.")
    rest = np.asarray(unlabelled, np.float64)
    rest = rest if rest.size else np.empty((0, f.shape[1]))
    if rest.ndim != 2 or rest.shape[1] != f.shape[1]:
        raise ValueError(f"ppi_panel_mean needs unlabelled rows of {f.shape[1]} judges; got shape {rest.shape}.")
    if y.min() < 0 or y.max() > 1:
        raise ValueError(f"ppi_panel_mean needs labels from 0 to 1; got {y.min():g} to {y.max():g}. Scale the ratings.")
    remedy = "Leave out items without a score of every judge."
    # Fewer than two unlabelled items have no variance, and count as none.
    rest = rest if len(rest) > 1 else rest[:0]
    return y, finite(f, "ppi_panel_mean", remedy), finite(rest, "ppi_panel_mean", remedy)


def _weights_by_item(
    y: Floats,
    f: Floats,
    rest: Floats,
    members: Sequence[npt.NDArray[np.intp]],
    ridge: float,
    folds: int,
) -> Floats:
    """Return lambda for each labelled item, shape (n, judges), fitted on the clusters of other folds."""
    n, judges = f.shape
    found = np.zeros((n, judges))
    count = min(folds, len(members))
    if not len(rest) or n < 2:
        return found
    if count < 2:
        found[:] = _lambda(y, f, rest, n, ridge)
        return found
    order = np.random.default_rng(0).permutation(len(members))
    for fold in range(count):
        own = np.concatenate([members[number] for number in order[fold::count]])
        others = np.ones(n, np.bool_)
        others[own] = False
        if others.sum() > 1:
            found[own] = _lambda(y[others], f[others], rest, n, ridge)
    return found


def _lambda(y: Floats, f: Floats, rest: Floats, n: int, ridge: float) -> Floats:
    """Return (Sigma_FF + ridge)^-1 Sigma_Fy / (1 + n / N); Sigma_FF is of labelled and unlabelled items."""
    every = np.vstack([f, rest])
    between = np.atleast_2d(np.cov(every, rowvar=False, ddof=1))
    size = float(np.trace(between)) / len(between)
    if size <= 1e-12:
        return np.zeros(f.shape[1])
    with_labels = (f - f.mean(axis=0)).T @ (y - y.mean()) / len(y)
    # Judges that say the same of everything leave the matrix singular where the ridge is 0: the least weights count.
    solved = np.linalg.lstsq(between + ridge * size * np.eye(len(between)), with_labels, rcond=None)[0]
    return np.asarray(solved / (1 + n / len(rest)))


def _by_t(
    residuals: Floats,
    members: Sequence[npt.NDArray[np.intp]],
    weights: Floats,
    rest: Floats,
    share: float,
    added: Sequence[float],
) -> Interval:
    """Return Student's t over clusters. ``added`` are labels of more items, whose scores are like the mean."""
    sums = np.array([residuals[places].sum() for places in members])
    sizes = np.array([len(places) for places in members], np.float64)
    sums, sizes = np.append(sums, added), np.append(sizes, np.ones(len(added)))
    count, items = len(sums), sizes.sum()
    level = sums.sum() / items
    variance = count / (count - 1) * ((sums - level * sizes) ** 2).sum() / items**2
    if len(rest):
        between = np.atleast_2d(np.cov(rest, rowvar=False, ddof=1))
        variance += float(weights @ between @ weights) / len(rest)
    half = t_quantile(share, count - 1) * float(np.sqrt(variance))
    return Interval(float(np.clip(level - half, 0, 1)), float(np.clip(level + half, 0, 1)))
