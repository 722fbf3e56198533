"""Selective prediction: risk over coverage, and a threshold that guarantees a risk."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from rag_harness.stats.distributions import beta_quantile, binomial_at_most
from rag_harness.stats.inputs import Floats, UndefinedError, Values, floats, pairs_of

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
        reason = f"{said}, which is no less than {risk:.0%}: at this rate no number of answers would do"
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
