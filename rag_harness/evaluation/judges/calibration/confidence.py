"""Calibrated confidence: reliability signals fitted to gold, a threshold that guarantees a risk, and its file."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from rag_harness.core.errors import DataError
from rag_harness.core.files import write_atomically
from rag_harness.core.types import REVIEWED, Case, review_said
from rag_harness.evaluation.measures.answers import normalised
from rag_harness.records.cases import CaseFile
from rag_harness.records.manifest import read_manifest
from rag_harness.records.row import ExperimentResult, first_problem, rows_in
from rag_harness.stats.inputs import Floats, Values, pairs_of
from rag_harness.stats.prediction import answers_at_rate, promise

SIGNAL = "signal: "
"""Prefix of the name of a decision that is a signal."""
FROM_RETRIEVAL = ("relevance", "margin", "coverage", "dispersion")
FROM_ANSWER = ("groundedness", "contradiction", "self_consistency")
SIGNALS = (*FROM_RETRIEVAL, *FROM_ANSWER)
ENOUGH = 0.8
"""Least share of the words of an evidence quote that an answer must have: few sources are quoted word for word."""


@dataclass(frozen=True, slots=True)
class AnswerSignals:
    """One answer: its signals, whether it was declined, whether that is right, and the page of its question.

    ``confidence`` is the one that the pipeline stated. ``made_of`` has the digests of models and documents behind it.
    ``question`` is its text, for comparison with the questions of another run.
    """

    query_id: str
    signals: Mapping[str, float | None]
    declined: bool
    right: bool
    cluster: str
    confidence: float | None = None
    quality: float | None = None
    made_of: Mapping[str, Any] = field(default_factory=dict)
    question: str = ""


def read_signals(output: Path, experiment: str) -> list[AnswerSignals]:
    """Return the answers of an experiment, in the order of their rows, without errors; see ``read_labels``."""
    return read_labels([output], experiment)


def read_labels(outputs: Sequence[Path], experiment: str) -> list[AnswerSignals]:
    """Return the answers of an experiment in several runs, over questions of a file and over those of users, say.

    A question that an earlier one of the runs asked does not count again. A question of users that nobody has reviewed
    has no gold, and does not count.

    Raises:
        DataError: a run has no such experiment, no case has evidence, or the rows have no signals.
    """
    pairs, asked = list[tuple[Case, ExperimentResult]](), set[str]()
    for output in outputs:
        new = [(case, row) for case, row in _pairs(output, experiment) if _same(case) not in asked]
        asked |= {_same(case) for case, _ in new}
        pairs += new
    _check(experiment, pairs)
    return [signals_of_row(case, row) for case, row in pairs]


def _pairs(output: Path, experiment: str) -> list[tuple[Case, ExperimentResult]]:
    suites = read_manifest(output).suites
    if experiment not in suites:
        known = ", ".join(sorted(suites)) or "none"
        raise DataError(f"{output} has no rows of {experiment}, only of: {known}. Run pytest -m {experiment} first.")
    suite = suites[experiment]
    cases = CaseFile(output, suite.cases)
    try:
        found = [(cases[cases.position[row.query_id]], row) for row in _rows(output / suite.file, suite.fingerprints)]
        return [(kept.case, row) for kept, row in found if not _is_unlabelled(kept.labels)]
    finally:
        cases.close()


def _same(case: Case) -> str:
    """Return the question in a form that does not depend on capitals and blanks."""
    return " ".join(case.query.text.casefold().split())


def _is_unlabelled(labels: Mapping[str, str]) -> bool:
    """Whether a case comes from traces of a service, and nobody has reviewed it."""
    return "sampled_as" in labels and review_said(labels.get(REVIEWED, "yes")) != "yes"


def signals_of_row(case: Case, row: ExperimentResult) -> AnswerSignals:
    """Return the answer of one row."""
    values = {decision.name: decision.value for decision in row.decisions}
    return AnswerSignals(
        row.query_id,
        {name: values.get(f"{SIGNAL}{name}") for name in SIGNALS},
        is_declined(row),
        is_right(case, row),
        cluster(case, row),
        row.confidence,
        values.get("retrieval quality"),
        detail(row, "confidence").get("made_of", {}),
        _same(case),
    )


def is_declined(row: ExperimentResult) -> bool:
    """Whether the question was declined: no model was asked, it does not know, or its answer was withheld."""
    return row.abstained and not detail(row, "decide").get("withheld")


def is_right(case: Case, row: ExperimentResult) -> bool:
    """Whether the answer is right and supported by gold, or declining is right.

    An answer is right where it has an evidence quote and cites a page of the gold. Declining is right where the
    documents do not have the answer. No judge is asked: a signal must not be the label.
    """
    if is_declined(row):
        return not case.answerable
    kept = detail(row, "decide")
    text, citations = kept.get("withheld", row.llm_answer), kept.get("withheld_citations", row.citations)
    places = [n for n in citations if 1 <= n <= len(row.retrieved_chunks)]
    cited = {row.retrieved_chunks[n - 1].metadata.filename for n in places}
    is_supported = bool(cited & set(case.context_reference))
    return case.answerable and is_supported and any(has_quote(text, each.quote) for each in case.evidence)


def has_quote(answer: str, quote: str) -> bool:
    """Whether an answer has most of the words of a quote."""
    wanted, said = Counter(normalised(quote)), Counter(normalised(answer))
    shared = (wanted & said).total()
    return bool(wanted) and shared >= ENOUGH * wanted.total()


def cluster(case: Case, row: ExperimentResult) -> str:
    """Return the page of a question; for an unanswerable one the page nearest to it, or the question itself."""
    return next(iter(case.context_reference), "") or str(row.metadata.get("nearest_page") or row.query_id)


def detail(row: ExperimentResult, stage: str) -> Mapping[str, Any]:
    """Return the detail of a row's stage."""
    return next((each.detail for each in row.stages if each.name == stage), {})


def _rows(file: Path, fingerprints: Iterable[str]) -> list[ExperimentResult]:
    current = set(fingerprints)
    return [row for row in rows_in(file) if row.ok and (not current or row.fingerprint in current)]


def _check(experiment: str, pairs: list[tuple[Case, ExperimentResult]]) -> None:
    if not any(case.evidence for case, _ in pairs):
        raise DataError(
            f"No case of {experiment} has evidence quotes, so nothing but a judge could call an answer right. Add "
            '"evidence": [{"filename": …, "quote": …}] to the queries.'
        )
    if not any(decision.name.startswith(SIGNAL) for _, row in pairs for decision in row.decisions):
        raise DataError(f"The rows of {experiment} state no signals: calibrate r1, or one that is made as it is.")


L2 = 1.0
"""Ridge penalty on coefficients of standardised features; the intercept has none."""
_STEPS = 50
_ENOUGH = 1e-9

Features = Mapping[str, float | None]
"""Features by name; None is a missing value."""


class Logistic(BaseModel):
    """A fitted model. A feature enters as (value - mean) / spread, and as 0 where it is missing.

    ``n`` labels were fitted; ``positive`` of them are 1.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True)
    n: int
    positive: int
    intercept: float
    means: dict[str, float] = {}
    spreads: dict[str, float] = {}
    coefficients: dict[str, float] = {}

    @model_validator(mode="after")
    def _is_whole(self) -> Logistic:
        for name in self.coefficients:
            lacks = [what for what, of in (("mean", self.means), ("spread", self.spreads)) if name not in of]
            if lacks or not self.spreads[name]:
                raise ValueError(f"the feature {name} has no {' and no '.join(lacks or ['spread but 0'])}")
        return self

    def probability(self, features: Features) -> float:
        """Return the probability of 1."""
        total = self.intercept
        for name, coefficient in self.coefficients.items():
            value = features.get(name)
            total += 0.0 if value is None else coefficient * (value - self.means[name]) / self.spreads[name]
        return float(1 / (1 + np.exp(-np.clip(total, -60, 60))))


def fitted(examples: Sequence[Features], labels: Sequence[bool], signs: Mapping[str, int], l2: float = L2) -> Logistic:
    """Return the model of ``labels``, fitted by Newton's method (IRLS) with a ridge penalty ``l2``.

    ``signs`` names the features, and says whether a coefficient must be positive (1), negative (-1), or is free (0). A
    feature whose estimate has the wrong sign is left out. Where all labels are equal, or there are none, the model has
    no features: its probability is Laplace's (k + 1) / (n + 2).
    """
    left = list(signs)
    while True:
        model = _fitted(examples, labels, left, l2)
        wrong = {name: value * signs[name] for name, value in model.coefficients.items() if value * signs[name] < 0}
        if not wrong:
            return model
        left.remove(min(wrong, key=lambda name: wrong[name]))


def _fitted(examples: Sequence[Features], labels: Sequence[bool], names: Sequence[str], l2: float) -> Logistic:
    n, positive = len(labels), sum(labels)
    if positive in (0, n):
        return Logistic(n=n, positive=positive, intercept=float(np.log((positive + 1) / (n - positive + 1))))
    columns = {name: np.array([_number(each.get(name)) for each in examples]) for name in names}
    means = {name: float(np.nanmean(column)) for name, column in columns.items() if np.isfinite(column).any()}
    spreads = {name: float(np.nanstd(columns[name])) for name in means}
    used = [name for name in names if spreads.get(name, 0.0) > 0]
    standard = [(np.nan_to_num(columns[name], nan=means[name]) - means[name]) / spreads[name] for name in used]
    weights = _newton(np.column_stack([np.ones(n), *standard]), np.array(labels, float), l2)
    return Logistic(
        n=n,
        positive=positive,
        intercept=float(weights[0]),
        means={name: means[name] for name in used},
        spreads={name: spreads[name] for name in used},
        coefficients=dict(zip(used, map(float, weights[1:]), strict=True)),
    )


def _newton(design: Floats, labels: Floats, l2: float) -> Floats:
    penalty = l2 * np.eye(design.shape[1])
    penalty[0, 0] = 0.0
    weights: Floats = np.zeros(design.shape[1])
    for _ in range(_STEPS):
        chance = 1 / (1 + np.exp(-np.clip(design @ weights, -60, 60)))
        gradient = design.T @ (chance - labels) + penalty @ weights
        curvature = (design.T * (chance * (1 - chance))) @ design + penalty + 1e-9 * np.eye(len(weights))
        step = np.linalg.solve(curvature, gradient)
        weights = weights - step
        if np.abs(step).max() < _ENOUGH:
            break
    return weights


def _number(value: float | None) -> float:
    return float("nan") if value is None else value


_Share = Annotated[float, Field(ge=0, le=1)]


class _Saved(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="ignore")


class SavedPromise(_Saved):
    """With 95 % confidence at most ``risk`` of the answers from ``threshold`` up are wrong; null: no promise."""

    risk: _Share
    threshold: _Share | None = None
    tested: int = 0
    wrong: int = 0
    reason: str = ""


class HeldOut(_Saved):
    """The quality of the probabilities on answers about pages that were used for neither fit nor threshold."""

    n: int
    ece: float | None = None
    brier: float | None = None


class SavedConfidence(_Saved):
    """How signals become a probability that an answer is right.

    ``n`` answers were labelled by gold. A model is None where too few of the answers were of its kind. ``weights`` are
    α, β and γ of the formula, as estimated from the labels. ``made_of`` names the models and documents behind the
    signals; with others the signals mean something else.
    """

    schema_version: Literal[1] = 1
    experiment: str
    n: int
    answered: Logistic | None
    declined: Logistic | None
    weights: dict[str, float] = {}
    promise: SavedPromise
    tested: HeldOut
    made_of: dict[str, Any] = {}

    def model(self, declined: bool) -> Logistic | None:
        """Return the model of answers, or that of declining."""
        return self.declined if declined else self.answered


def save_confidence(file: Path, saved: SavedConfidence) -> None:
    """Write the file with six digits: further ones carry no information, and would differ between machines."""
    rounded = SavedConfidence.model_validate(_rounded(saved.model_dump(mode="json")))
    write_atomically(file, (rounded.model_dump_json(indent=1) + "\n").encode())


def read_confidence(file: Path) -> SavedConfidence | None:
    """Read the file; None where there is none.

    Raises:
        DataError: the file has another format; says what to do.
    """
    try:
        return SavedConfidence.model_validate_json(file.read_bytes())
    except FileNotFoundError:
        return None
    except ValidationError as error:
        again = "Make it again: rag-harness reliability calibrate OUTPUT"
        raise DataError(f"{file}: no calibrated confidence: {first_problem(error)}. {again}") from error


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    return round(value, 6) if isinstance(value, float) else value


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


def calibrated(experiment: str, told: Sequence[AnswerSignals], risk: float = RISK, seed: int = 0) -> SavedConfidence:
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

    def knows(self, one: AnswerSignals) -> bool:
        """Whether the model for this kind was fitted to enough answers."""
        return _enough(self.declined if one.declined else self.answered) is not None

    def probability(self, one: AnswerSignals) -> float:
        """Return the probability that an answer, or declining, is right."""
        return (self.declined if one.declined else self.answered).probability(one.signals)


def fit_models(told: Sequence[AnswerSignals]) -> ConfidenceModels:
    """Return the models of answers and of declining, each fitted to its own kind."""
    return ConfidenceModels(
        _fit([one for one in told if not one.declined], SPEAKS),
        _fit([one for one in told if one.declined], {name: -SPEAKS[name] for name in FROM_RETRIEVAL}),
    )


def weights(told: Sequence[AnswerSignals]) -> dict[str, float]:
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


def split(told: Sequence[AnswerSignals], shares: Sequence[float], seed: int = 0) -> list[list[AnswerSignals]]:
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


def _fit(told: Sequence[AnswerSignals], signs: Mapping[str, int]) -> Logistic:
    return fitted([one.signals for one in told], [one.right for one in told], signs)


def _enough(model: Logistic) -> Logistic | None:
    return model if model.n >= FEWEST_OF_A_MODEL else None


def _promised(models: ConfidenceModels, told: Sequence[AnswerSignals], risk: float, seed: int) -> SavedPromise:
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


def _made_of(told: Sequence[AnswerSignals]) -> Mapping[str, Any]:
    different = {repr(sorted(one.made_of.items())): one.made_of for one in told}
    if len(different) > 1:
        raise DataError(
            f"The rows were made of {len(different)} different sets of models and documents. Run pytest with "
            "--rag-overwrite, so that they are all of one."
        )
    return next(iter(different.values()), {})


class LabelsNeeded(NamedTuple):
    """The labels that a promise would need, if answers go on to be as right as they were.

    From ``threshold`` up, ``wrong`` of ``accepted`` answers were wrong. ``tested`` such answers are needed in the half
    that tests. ``labels`` are needed in all, since only a part of all answers is tested, and only a part of these
    reaches the threshold; ``more`` of them are not there yet.
    """

    threshold: float
    wrong: int
    accepted: int
    tested: int
    labels: int
    more: int


def labels_needed(told: Sequence[AnswerSignals], risk: float = RISK, seed: int = 0) -> LabelsNeeded | None:
    """Return the fewest labels over all thresholds; None if at each of them too many of the answers were wrong.

    The thresholds are those of the part that chooses one. ``tested`` is exact for its rate of wrong answers. ``labels``
    is an expectation: it takes as many of the next answers to reach the threshold as of these.
    """
    fit, chosen, _ = split(told, split_shares(len(told)), seed)
    models = fit_models(fit)
    pairs = [(models.probability(one), not one.right) for one in chosen if not one.declined]
    return min(_by_threshold(pairs, len(chosen), len(told), risk), key=lambda each: each.labels, default=None)


def _by_threshold(pairs: Sequence[tuple[float, bool]], answers: int, n: int, risk: float) -> Iterator[LabelsNeeded]:
    """Yield what each threshold would need; ``answers`` are in the part of ``pairs``, declined ones among them."""
    for threshold in sorted({stated for stated, _ in pairs}, reverse=True):
        taken = [is_wrong for stated, is_wrong in pairs if stated >= threshold]
        tested = answers_at_rate(sum(taken) / len(taken), risk)
        if tested is not None:
            labels = _labels(tested, len(taken) / answers)
            yield LabelsNeeded(threshold, sum(taken), len(taken), tested, labels, max(0, labels - n))


def _labels(tested: int, reaching: float) -> int:
    """Return of how many labels so many are tested. Half of the part for the threshold is."""
    few, many = (math.ceil(tested / (reaching * split_shares(n)[1] / 2) - 1e-9) for n in (0, MANY_ANSWERS))
    return few if few < MANY_ANSWERS else max(MANY_ANSWERS, many)
