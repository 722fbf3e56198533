"""Corrects the mean of a judge's scores by people's labels of some of the answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum

from rag_harness.errors import DataError
from rag_harness.judges.calibration.saved import Calibration, LabelledScore
from rag_harness.results.score import Author
from rag_harness.stats import Interval
from rag_harness.stats.ppi import Corrected, ppi_mean

CALIBRATE_AGAIN = "rag-harness judge calibrate LABELS.jsonl"


@dataclass(frozen=True, slots=True)
class ExperimentScores:
    """One judge's scores of an experiment's answers: the score of each query, and the digest of its row."""

    experiment: str
    measure: str
    version: int
    author: Author
    values: Mapping[str, float]
    rows: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class CorrectedMean:
    """The estimated mean of people's labels, with its interval; ``said`` describes the estimate for a verdict."""

    value: float
    interval: Interval
    found: Corrected
    said: str


def corrected_mean(
    scores: ExperimentScores,
    calibrations: Sequence[Calibration],
    others: Sequence[float] = (),
    confidence: float = 0.95,
) -> CorrectedMean:
    """Return the corrected mean of an experiment, by the newest calibration of the judge that gave the scores.

    Only labels of this experiment's answers count, and of answers outside any run: labels of another pipeline's answers
    say nothing about this one. ``others`` are values without a judge, e.g. of failed trials; they count uncorrected.

    Raises:
        DataError: this judge and measure have no calibration, or its labels are too few or about other answers.
    """
    calibration = calibration_of(scores, calibrations)
    labels = labels_of(calibration, scores)
    current = {label.query_id for label in labels if label.row and scores.rows.get(label.query_id) == label.row}
    rest = [value for query_id, value in scores.values.items() if query_id not in current]
    human, judge = [label.human for label in labels], [label.score for label in labels]
    clusters = [label.cluster or f" {label.query_id}" for label in labels]
    found = ppi_mean(human, judge, rest, clusters, confidence=confidence)
    if found.interval is None:
        raise DataError(
            f"{calibration.name}.json cannot correct it: {found.reason}. Label more answers, then: {CALIBRATE_AGAIN}"
        )
    return joined(found, found.interval, len(scores.values), others, _said(found, labels, len(labels) - len(current)))


def calibration_of(scores: ExperimentScores, calibrations: Sequence[Calibration]) -> Calibration:
    """Return the newest calibration of a judge and measure.

    Raises:
        DataError: there is none; says which judges the others are of.
    """
    same = [each for each in calibrations if each.measure == scores.measure]
    if not same:
        why = f"no calibration of {scores.measure}: nobody has held its judge against people"
        raise DataError(f"{why}. Label answers (rag-harness judge sample), then: {CALIBRATE_AGAIN}")
    fitting = [each for each in same if each.judge.author == scores.author and each.version == scores.version]
    if fitting:
        return max(fitting, key=lambda each: each.date)
    latest = max(same, key=lambda each: each.date)
    differing = _differing(latest, scores)
    raise DataError(
        f"{latest.name}.json is of another judge: {differing}. Hold this one against people: {CALIBRATE_AGAIN}"
    )


def labels_of(calibration: Calibration, scores: ExperimentScores) -> list[LabelledScore]:
    """Return the labels that apply to these scores: of its answers in the slice, or of answers outside any run.

    Raises:
        DataError: there is no such label.
    """
    found = [
        label
        for label in calibration.labels
        if not label.experiment or (label.experiment == scores.experiment and label.query_id in scores.values)
    ]
    if not found:
        named = sorted({label.experiment for label in calibration.labels})
        raise DataError(
            f"{calibration.name}.json has no label of these answers of {scores.experiment}, only of "
            f"{', '.join(named)}. Label some of them (rag-harness judge sample), then: {CALIBRATE_AGAIN}"
        )
    return found


def _differing(calibration: Calibration, scores: ExperimentScores) -> str:
    theirs, ours = calibration.judge.author, scores.author
    pairs = [("judge", theirs.judge, ours.judge), ("model", theirs.model, ours.model)]
    pairs += [("revision", theirs.revision, ours.revision)]
    pairs += [(f"version of {scores.measure}", str(calibration.version), str(scores.version))]
    return ", ".join(f"{what} {was}, here {now}" for what, was, now in pairs if was != now)


def _said(found: Corrected, labels: Sequence[LabelledScore], earlier: int) -> str:
    said = f"calibrated on {found.labels} labels, λ = {found.lam:.2f}"
    alone = sum(not label.experiment for label in labels)
    if alone:
        return f"{said}; {alone} of the labels are of other answers"
    return f"{said}; {earlier} of the labels are of earlier answers" if earlier else said


def joined(found: Corrected, interval: Interval, n: int, others: Sequence[float], said: str) -> CorrectedMean:
    """Combine the corrected mean of ``n`` judged answers with the values of unjudged ones, by their numbers."""
    every, more = n + len(others), fsum(others)
    value, low, high = ((n * each + more) / every for each in (found.value, *interval))
    return CorrectedMean(value, Interval(low, high), found, said)
