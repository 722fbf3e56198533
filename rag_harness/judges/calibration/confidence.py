"""Calibrates a confidence: signals and gold are fitted, thresholded and tested on answers about different pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rag_harness.errors import DataError
from rag_harness.judges.calibration.confidence_file import HeldOut, SavedConfidence, SavedPromise
from rag_harness.judges.calibration.logistic import Features, Logistic, fitted
from rag_harness.judges.calibration.told import FROM_RETRIEVAL, ToldAnswer
from rag_harness.stats.inputs import Values, pairs_of
from rag_harness.stats.selective import promise

FEWEST_ANSWERS = 40
"""With fewer answers nothing is fitted: the coefficients would be random."""
FEWEST_OF_A_MODEL = 20
"""With fewer answers, or declined questions, in the part for fitting, there is no model of them."""
SPLIT_SHARES = (0.5, 0.25, 0.25)
"""Shares of the pages for fit, threshold and test."""
MANY_ANSWERS = 400
SPLIT_OF_MANY = (0.25, 0.5, 0.25)
"""The shares from ``MANY_ANSWERS`` answers on: a fit gains little from more, and a promise needs them."""
SPEAKS = {
    "relevance": 1,
    "margin": 1,
    "coverage": 1,
    "dispersion": 0,
    "groundedness": 1,
    "contradiction": -1,
    "self_consistency": 1,
}
"""The sign of each signal's effect on an answer: positive, negative, or unknown. For declining it is reversed."""
TOO_FEW_TO_TEST = "too few answers to test a threshold"
RISK = 0.05
BINS = 10


def calibrated(experiment: str, told: Sequence[ToldAnswer], risk: float = RISK, seed: int = 0) -> SavedConfidence:
    """Fit on one part of the pages, choose the threshold on another, and test on the rest.

    Raises:
        DataError: there are too few answers, or they come from different models or documents.
    """
    made_of = _made_of(told)
    if len(told) < FEWEST_ANSWERS:
        raise DataError(f"{len(told)} answers of {experiment} are too few to calibrate: {FEWEST_ANSWERS} at least.")
    fit, threshold, test = split(told, split_shares(len(told)), seed)
    models = fit_models(fit)
    tested = [(models.probability(each), each.right) for each in test if models.knows(each)]
    return SavedConfidence(
        experiment=experiment,
        n=len(told),
        answered=_enough(models.answered),
        declined=_enough(models.declined),
        weights=weights(fit),
        promise=_promised(models, threshold, risk, seed),
        tested=_tested(tested),
        made_of=dict(made_of),
    )


def split_shares(n: int) -> tuple[float, float, float]:
    """Return the shares of the pages for fit, threshold and test, where there are ``n`` answers."""
    return SPLIT_OF_MANY if n >= MANY_ANSWERS else SPLIT_SHARES


class ConfidenceModels:
    """Two models: one of answers, one of declining. A signal for one is a signal against the other."""

    def __init__(self, answered: Logistic, declined: Logistic) -> None:
        self.answered, self.declined = answered, declined

    def knows(self, one: ToldAnswer) -> bool:
        """Whether the model for this kind was fitted to enough answers."""
        return _enough(self.declined if one.declined else self.answered) is not None

    def probability(self, one: ToldAnswer) -> float:
        """Return the probability that an answer, or declining, is right."""
        return (self.declined if one.declined else self.answered).probability(one.signals)


def fit_models(told: Sequence[ToldAnswer]) -> ConfidenceModels:
    """Return the models of answers and of declining, each fitted to its own kind."""
    return ConfidenceModels(
        _fit([one for one in told if not one.declined], SPEAKS),
        _fit([one for one in told if one.declined], {name: -SPEAKS[name] for name in FROM_RETRIEVAL}),
    )


def weights(told: Sequence[ToldAnswer]) -> dict[str, float]:
    """Return α, β, γ of the formula, estimated from the labels; empty where retrieval and grounding have no effect.

    They come from a logistic model of retrieval quality, groundedness and contradiction, scaled so that α + β is 1.
    """
    answered = [one for one in told if not one.declined and one.quality is not None]
    features: list[Features] = [{**one.signals, "quality": one.quality} for one in answered]
    signs = {"quality": 1, "groundedness": 1, "contradiction": -1}
    model = fitted(features, [one.right for one in answered], signs)
    raw = {name: model.coefficients.get(name, 0.0) / model.spreads.get(name, 1.0) for name in signs}
    total = raw["quality"] + raw["groundedness"]
    if not total:
        return {}
    alpha, beta = raw["quality"] / total, raw["groundedness"] / total
    return {"alpha": alpha, "beta": beta, "gamma": -raw["contradiction"] / total}


def split(told: Sequence[ToldAnswer], shares: Sequence[float], seed: int = 0) -> list[list[ToldAnswer]]:
    """Return disjoint parts of about these shares. All answers about one page are in one part."""
    pages = sorted({one.cluster for one in told})
    mixed = [pages[place] for place in np.random.default_rng(seed).permutation(len(pages))]
    ends = np.cumsum(shares) / sum(shares) * len(pages)
    part_of = {page: int(np.searchsorted(ends - 1e-9, place, side="right")) for place, page in enumerate(mixed)}
    return [[one for one in told if part_of[one.cluster] == part] for part in range(len(shares))]


def expected_calibration_error(right: Values, probability: Values, bins: int = BINS) -> float:
    """Return the expected calibration error: distance of stated and true share over equal-width bins (Naeini 2015)."""
    truth, stated = pairs_of(right, probability, "expected_calibration_error")
    place = np.minimum((stated * bins).astype(int), bins - 1)
    gaps = [abs(float((truth - stated)[place == number].sum())) for number in range(bins)]
    return sum(gaps) / len(truth)


def brier(right: Values, probability: Values) -> float:
    """Return the mean squared error of the probabilities (Brier 1950)."""
    truth, stated = pairs_of(right, probability, "brier")
    return float(np.mean((truth - stated) ** 2))


def _fit(told: Sequence[ToldAnswer], signs: Mapping[str, int]) -> Logistic:
    return fitted([one.signals for one in told], [one.right for one in told], signs)


def _enough(model: Logistic) -> Logistic | None:
    return model if model.n >= FEWEST_OF_A_MODEL else None


def _promised(models: ConfidenceModels, told: Sequence[ToldAnswer], risk: float, seed: int) -> SavedPromise:
    answered = [one for one in told if not one.declined]
    if _enough(models.answered) is None:
        return SavedPromise(risk=risk, reason=f"{models.answered.n} answers are too few to fit a confidence")
    if len(answered) < 2:
        return SavedPromise(risk=risk, reason=TOO_FEW_TO_TEST)
    stated = [models.probability(one) for one in answered]
    found = promise(stated, [float(not one.right) for one in answered], risk, seed=seed)
    if found.threshold is None:
        return SavedPromise(risk=risk, tested=found.accepted, wrong=found.wrong, reason=found.reason)
    return SavedPromise(risk=risk, threshold=found.threshold, tested=found.accepted, wrong=found.wrong)


def _tested(pairs: Sequence[tuple[float, bool]]) -> HeldOut:
    if not pairs:
        return HeldOut(n=0)
    stated, right = [p for p, _ in pairs], [float(r) for _, r in pairs]
    return HeldOut(n=len(pairs), ece=expected_calibration_error(right, stated), brier=brier(right, stated))


def _made_of(told: Sequence[ToldAnswer]) -> Mapping[str, Any]:
    different = {repr(sorted(one.made_of.items())): one.made_of for one in told}
    if len(different) > 1:
        raise DataError(
            f"The rows were made of {len(different)} different sets of models and documents. Run pytest with "
            "--rag-overwrite, so that they are all of one."
        )
    return next(iter(different.values()), {})
