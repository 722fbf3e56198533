"""Measures the agreement of a judge's scores with people's labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rag_harness.errors import DataError
from rag_harness.judges.calibration.labels import AnswerLabel
from rag_harness.judges.calibration.people import RatedAnswer, between_people, item_labels
from rag_harness.judges.calibration.saved import (
    Calibration,
    JudgeIdentity,
    LabelledScore,
    SavedConfusion,
    SavedEstimate,
)
from rag_harness.results.score import Author
from rag_harness.stats.agreement import accuracy, auroc, cohen_kappa, confusion, f1, pearson, spearman, weighted_kappa
from rag_harness.stats.estimate import Estimate, Statistic, estimate

Item = tuple[str, str]
_VERDICTS: dict[str, Statistic] = {"accuracy": accuracy, "kappa": cohen_kappa, "f1": f1}
_RATED = "people gave ratings, no verdicts of 0 or 1"
_NO_LENGTHS = "the answers are not at hand"


@dataclass(frozen=True, slots=True)
class CalibrationSubject:
    """What is calibrated: a name to save it under, the measure with its version, and the judge.

    ``threshold`` is the score from which the verdict is 1; ``date`` is ISO 8601.
    """

    name: str
    measure: str
    version: int
    author: Author
    date: str
    threshold: float = 0.5


@dataclass(frozen=True, slots=True)
class JudgeScores:
    """The judge's score of each item, its answer's length in characters, and the digest of its row, if it has one."""

    scores: Mapping[Item, float]
    lengths: Mapping[Item, int] = field(default_factory=dict)
    digests: Mapping[Item, str] = field(default_factory=dict)


def calibrate(subject: CalibrationSubject, labels: Sequence[AnswerLabel], said: JudgeScores) -> Calibration:
    """Compare the judge with people. An item counts once, with the mean of its labels, from 0 to 1.

    Raises:
        DataError: no labelled answer has a score, or labels are outside 0 to 1.
    """
    _check(labels)
    items = item_labels(labels)
    judged = [item for item in items if item.item in said.scores]
    if not judged:
        raise DataError(
            f"None of the {len(items)} labelled answers has a score of {subject.measure}: judge them first "
            "(pytest --rag-measures, or rag-harness judge score), or write a judge's into 'score' of each label."
        )
    scores = [said.scores[item.item] for item in judged]
    verdicts = _verdicts(judged)
    clusters = [item.cluster for item in judged]
    return Calibration(
        name=subject.name,
        measure=subject.measure,
        version=subject.version,
        judge=JudgeIdentity(name=subject.author.judge, model=subject.author.model, revision=subject.author.revision),
        date=subject.date,
        threshold=subject.threshold,
        n=len(judged),
        clusters=len(set(clusters)),
        raters=len({label.rater for label in labels}),
        unscored=len(items) - len(judged),
        agreement=_agreement(judged, scores, subject.threshold) | {"error_with_length": _with_length(judged, said)},
        confusion=_confusion(verdicts, scores, subject.threshold),
        humans={name: _saved(found) for name, found in between_people(items).items()},
        labels=tuple(_kept(item, score, said) for item, score in zip(judged, scores, strict=True)),
    )


def _check(labels: Sequence[AnswerLabel]) -> None:
    beyond = [label for label in labels if not 0 <= label.human <= 1]
    if beyond:
        first = beyond[0]
        raise DataError(
            f"{first.where}: human: {first.human:g} is no verdict of 0 or 1 and no rating between them "
            f"({len(beyond)} of {len(labels)} labels). Name the scale of your ratings: --scale 1:5."
        )


def _verdicts(judged: Sequence[RatedAnswer]) -> list[float | None] | None:
    """Return the majority verdict of each item, None for a tie; None for all items where people gave ratings."""
    return [item.verdict for item in judged] if all(item.is_verdict for item in judged) else None


def _agreement(judged: Sequence[RatedAnswer], scores: Sequence[float], threshold: float) -> dict[str, SavedEstimate]:
    human, clusters = [item.human for item in judged], [item.cluster for item in judged]
    verdicts = _verdicts(judged)
    found = {name: _of_verdicts(verdicts, scores, clusters, how, threshold) for name, how in _VERDICTS.items()}
    found["auroc"] = _of_verdicts(verdicts, scores, clusters, auroc, None)
    found["spearman"] = estimate(spearman, human, scores, clusters=clusters)
    found["pearson"] = estimate(pearson, human, scores, clusters=clusters)
    if verdicts is None:
        found["weighted_kappa"] = estimate(weighted_kappa, human, scores, clusters=clusters)
    found["mean_error"] = estimate(_mean_error, human, scores, clusters=clusters)
    return {name: _saved(each) for name, each in found.items()}


def _of_verdicts(
    verdicts: Sequence[float | None] | None,
    scores: Sequence[float],
    clusters: Sequence[str],
    how: Statistic,
    threshold: float | None,
) -> Estimate:
    if verdicts is None:
        return Estimate(None, reason=_RATED)
    clear = [place for place, verdict in enumerate(verdicts) if verdict is not None]
    if not clear:
        return Estimate(None, reason="people are even on every answer")
    human = [float(verdicts[place] or 0) for place in clear]
    judge = [_at(scores[place], threshold) for place in clear]
    return estimate(how, human, judge, clusters=[clusters[place] for place in clear])


def _at(score: float, threshold: float | None) -> float:
    return score if threshold is None else float(score >= threshold)


def _mean_error(human: Sequence[float], scores: Sequence[float]) -> float:
    return float(sum(scores) - sum(human)) / len(human)


def _with_length(judged: Sequence[RatedAnswer], said: JudgeScores) -> SavedEstimate:
    """Return the length bias of the judge: Spearman correlation of score - human with the answer's length."""
    known = [item for item in judged if said.lengths.get(item.item)]
    if len(known) < 2:
        return SavedEstimate(reason=_NO_LENGTHS)
    errors = [said.scores[item.item] - item.human for item in known]
    lengths = [float(said.lengths[item.item]) for item in known]
    return _saved(estimate(spearman, errors, lengths, clusters=[item.cluster for item in known]))


def _confusion(
    verdicts: Sequence[float | None] | None, scores: Sequence[float], threshold: float
) -> SavedConfusion | None:
    pairs = [(verdict, score) for verdict, score in zip(verdicts or (), scores, strict=False) if verdict is not None]
    if not pairs:
        return None
    counts = confusion([verdict for verdict, _ in pairs], [_at(score, threshold) for _, score in pairs])
    return SavedConfusion(**counts._asdict())


def _kept(item: RatedAnswer, score: float, said: JudgeScores) -> LabelledScore:
    experiment, query_id = item.item
    row = said.digests.get(item.item, "")
    own = item.cluster if item.is_clustered else ""
    return LabelledScore(experiment=experiment, query_id=query_id, human=item.human, score=score, cluster=own, row=row)


def _saved(found: Estimate) -> SavedEstimate:
    low, high = found.interval or (None, None)
    return SavedEstimate(value=found.value, low=low, high=high, reason=found.reason)
