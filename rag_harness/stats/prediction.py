"""Prediction-powered inference (PPI++), and selective prediction with a guaranteed risk."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rag_harness.stats.distributions import beta_quantile, binomial_at_most, t_quantile
from rag_harness.stats.inputs import (
    Floats,
    Interval,
    UndefinedError,
    Values,
    checked_confidence,
    floats,
    pairs_of,
    positive,
)
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


_MOST_THRESHOLDS = 100
_MOST_ANSWERS = 10_000_000
_MOST_NEEDED = 10_000
_ROUNDED = 1e-9


class RiskCoverage(NamedTuple):
    """The share of wrong answers among the most confident ones.

    ``coverage`` and ``risk`` have a point for each number of answers, shape (n,). Equally confident answers have the
    mean over all their orders. ``aurc`` is the mean risk over all coverages (Geifman & El-Yaniv 2017). ``best`` is the
    mean risk of the ideal order, right answers first; ``by_chance`` the mean risk of a random order.
    """

    coverage: Floats
    risk: Floats
    aurc: float
    best: float
    by_chance: float

    def risk_at(self, coverage: float) -> float:
        """Return the risk where this share is answered, 0 < coverage <= 1."""
        place = int(np.searchsorted(self.coverage, coverage - 1e-9))
        return float(self.risk[min(place, len(self.risk) - 1)])


class Promise(NamedTuple):
    """A guarantee at level 1 - ``delta``: answers at or above ``threshold`` are wrong in at most ``risk`` of the cases.

    ``accepted`` and ``wrong`` count answers of the half that was tested; ``bound`` is the upper bound of their risk.
    ``threshold`` is None where nothing can be guaranteed: ``missing`` more answers, all of them right, would be enough,
    and ``reason`` says so.
    """

    threshold: float | None
    risk: float
    delta: float
    accepted: int
    wrong: int
    bound: float
    missing: int = 0
    reason: str = ""


def risk_coverage(confidence: Values, wrong: Values) -> RiskCoverage:
    """Return the curve; ``wrong`` is 1 for a wrong answer, else 0.

    Raises:
        ValueError: the lists differ in length, a number is NaN or infinite, or ``wrong`` is neither 0 nor 1.
    """
    scores, errors = _checked(confidence, wrong, "risk_coverage")
    order = np.argsort(-scores, kind="stable")
    # Equally confident answers share their errors: all their orders are equally good.
    _, place, counts = np.unique(-scores[order], return_inverse=True, return_counts=True)
    shared = np.bincount(place, errors[order])[place] / counts[place]
    number = np.arange(1, len(scores) + 1)
    risk = np.cumsum(shared) / number
    best = np.cumsum(np.sort(errors)) / number
    return RiskCoverage(number / len(scores), risk, float(risk.mean()), float(best.mean()), float(errors.mean()))


@lru_cache(maxsize=4096)
def answers_needed(wrong: int, risk: float, delta: float = 0.05) -> int:
    """Return the number of answers that guarantee ``risk`` at level 1 - ``delta``: for 5 % and none wrong, 59.

    It is the smallest n with P(X <= wrong) <= delta for X ~ binomial(n, risk).

    Raises:
        ValueError: risk or delta is not between 0 and 1, or more than ten million answers would be needed.
    """
    _check_shares(risk, delta)
    low, high = wrong, max(1, 2 * wrong)
    while binomial_at_most(wrong, high, risk) > delta:
        low, high = high, 2 * high
        if high > _MOST_ANSWERS:
            raise ValueError(f"a risk of {risk:g} needs more than {_MOST_ANSWERS:,} answers.")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if binomial_at_most(wrong, middle, risk) <= delta else (middle, high)
    return high


def answers_at_rate(rate: float, risk: float, delta: float = 0.05) -> int | None:
    """Return the number of answers that guarantee ``risk`` at level 1 - ``delta``, if a share ``rate`` is wrong.

    It is the smallest n among those of ``answers_needed`` of which at most as many as that allows are wrong, at this
    rate: for 5 % and none wrong 59, for 5 % and 2 % wrong 181. None: no number below 10,000 would do.

    Raises:
        ValueError: risk or delta is not between 0 and 1, or the rate not from 0 to 1.
    """
    _check_shares(risk, delta)
    if not 0 <= rate <= 1:
        raise ValueError(f"a rate is a share from 0 to 1; got {rate}.")
    wrong = 0
    while rate < risk and (needed := answers_needed(wrong, risk, delta)) < _MOST_NEEDED:
        if rate * needed <= wrong + _ROUNDED:
            return needed
        # No fewer may be wrong than this rate makes of the answers that are needed already.
        wrong = max(wrong + 1, math.ceil(rate * needed - _ROUNDED))
    return None


def promise(confidence: Values, wrong: Values, risk: float = 0.05, *, delta: float = 0.05, seed: int = 0) -> Promise:
    """Return the lowest threshold that guarantees ``risk``, by fixed-sequence testing (Angelopoulos et al. 2021).

    A random half of the answers gives the sequence: it begins at the threshold with the best guarantee, and goes down.
    The other half tests the thresholds in this order by the binomial distribution, until the first test fails. So the
    guarantee holds at its level, however many thresholds are tested.

    Raises:
        ValueError: the lists differ in length, a value is NaN or infinite, ``wrong`` is neither 0 nor 1, or a share is
            not between 0 and 1.
        UndefinedError: the list has only one answer, which leaves no half to test.
    """
    scores, errors = _checked(confidence, wrong, "promise")
    _check_shares(risk, delta)
    if len(scores) < 2:
        raise UndefinedError("one answer only, which leaves no half to test")
    mixed = np.random.default_rng(seed).permutation(len(scores))
    first, second = mixed[: len(mixed) // 2], mixed[len(mixed) // 2 :]
    sequence = _sequence(scores[first], errors[first], risk)
    kept: Promise | None = None
    for threshold in sequence:
        accepted, count = _counts(scores[second], errors[second], threshold)
        if binomial_at_most(count, accepted, risk) > delta:
            return kept or _refused(accepted, count, risk, delta)
        bound = beta_quantile(1 - delta, count + 1, accepted - count)
        kept = Promise(threshold, risk, delta, accepted, count, bound)
    assert kept is not None
    return kept


def _sequence(scores: Floats, errors: Floats, risk: float) -> list[float]:
    """Return thresholds from the one with the best guarantee on these answers, each lower than the one before."""
    distinct = np.unique(scores)[::-1]
    chosen = distinct[np.unique(np.linspace(0, len(distinct) - 1, _MOST_THRESHOLDS).round().astype(int))]
    counts = [_counts(scores, errors, each) for each in chosen]
    p = [binomial_at_most(wrong, accepted, risk) for accepted, wrong in counts]
    return [float(each) for each in chosen[int(np.argmin(p)) :]]


def _counts(scores: Floats, errors: Floats, threshold: float) -> tuple[int, int]:
    taken = scores >= threshold
    return int(taken.sum()), int(errors[taken].sum())


def _refused(accepted: int, wrong: int, risk: float, delta: float) -> Promise:
    needed = answers_needed(wrong, risk, delta)
    bound = beta_quantile(1 - delta, wrong + 1, accepted - wrong) if accepted > wrong else 1.0
    said = f"{wrong} of {accepted} accepted answers are wrong"
    if accepted and wrong / accepted >= risk:
        reason = f"{said}, which is not less than {risk:.0%}: at this rate no number of answers would do"
        return Promise(None, risk, delta, accepted, wrong, bound, needed - accepted, reason)
    reason = f"{said}; {needed - accepted} more without an error are needed in this half, {needed} in all"
    return Promise(None, risk, delta, accepted, wrong, bound, needed - accepted, reason)


def _checked(confidence: Values, wrong: Values, who: str) -> tuple[Floats, Floats]:
    scores, errors = pairs_of(confidence, wrong, who)
    other = floats(errors, who)[(errors != 0) & (errors != 1)]
    if len(other):
        raise ValueError(f"{who} needs 1 for a wrong answer and 0 for a right one; got {other[0]:g}.")
    return scores, errors


def _check_shares(risk: float, delta: float) -> None:
    if not (0 < risk < 1 and 0 < delta < 1):
        raise ValueError(f"risk and delta are shares between 0 and 1, e.g. 0.05; got {risk} and {delta}.")
