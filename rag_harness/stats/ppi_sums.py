"""PPI++ from sums over clusters, so that ten thousand resamples are one matrix product."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rag_harness.stats.inputs import Floats

_NO_SPREAD = 1e-12


class Rest(NamedTuple):
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


def rest_of(scores: Floats) -> Rest:
    """Sum the judge's scores of unlabelled items. Fewer than two have no variance, and count as none."""
    n = len(scores)
    if n < 2:
        return Rest(0, 0.0, 0.0, 0.0, 0.0)
    return Rest(n, scores.sum(), (scores**2).sum(), scores.mean(), scores.std(ddof=1) / np.sqrt(n))


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


def weigh(weights: Floats, sums: Floats, rest: Rest) -> Weighed:
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


def _lambda(n: Floats, a: Floats, b: Floats, ff: Floats, yf: Floats, rest: Rest) -> Floats:
    """Return clip(Cov(y, f) / ((1 + n / N) Var f), 0, 1); 0 where nothing is unlabelled, or all scores are equal."""
    if not rest.n:
        return np.zeros_like(n)
    every = n + rest.n
    spread = (ff + rest.squares - (b + rest.total) ** 2 / every) / (every - 1)
    covariance = yf / n - a * b / n**2
    usable = spread > _NO_SPREAD
    return np.asarray(np.where(usable, np.clip(covariance / ((1 + n / rest.n) * np.where(usable, spread, 1)), 0, 1), 0))
