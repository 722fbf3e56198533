"""Agreement of a judge with people and with itself, and calibrations that are saved for review."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rag_harness.core.errors import DataError
from rag_harness.core.files import write_atomically
from rag_harness.evaluation.judges.calibration.labels import AnswerLabel
from rag_harness.records.row import first_problem
from rag_harness.records.scores import Author
from rag_harness.stats.agreement import (
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
from rag_harness.stats.inputs import Floats, UndefinedError
from rag_harness.stats.means import Estimate, Statistic, estimate

_Finite = Annotated[float, Field(allow_inf_nan=False)]
_Share = Annotated[float, Field(ge=0, le=1)]
_NAME = re.compile(r"[\w.-]{1,80}")


class _Saved(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="ignore")


class JudgeIdentity(_Saved):
    """The calibrated judge: its kind, its model, the digest of its prompts or coefficients."""

    name: str
    model: str
    revision: str

    @property
    def author(self) -> Author:
        """The same as scores name it."""
        return Author(self.name, self.model, self.revision)


class LabelledScore(_Saved):
    """One answer's label, the mean of its people's from 0 to 1, and the judge's score.

    ``row`` is the digest of the judged fields. It is empty for an answer outside any run, as is ``experiment``.
    """

    experiment: str = ""
    query_id: str
    human: _Share
    score: _Finite
    cluster: str = ""
    row: str = ""


class SavedEstimate(_Saved):
    """A statistic: null where undefined, and without bounds where there are too few labels; then with a reason."""

    value: _Finite | None = None
    low: _Finite | None = None
    high: _Finite | None = None
    reason: str = ""


class SavedConfusion(_Saved):
    """The confusion matrix of the judge's verdicts and people's."""

    true_positive: int
    false_positive: int
    false_negative: int
    true_negative: int


class Calibration(_Saved):
    """One judge's measure, compared with people's labels.

    ``agreement`` is between judge and people, ``humans`` is between people; ``confusion`` is null where people gave
    ratings. ``unscored`` counts labels of answers without a score of the judge.
    """

    schema_version: Literal[1] = 1
    name: str
    measure: str
    version: int
    judge: JudgeIdentity
    date: str
    threshold: _Finite = 0.5
    n: int
    clusters: int
    raters: int
    unscored: int = 0
    agreement: dict[str, SavedEstimate]
    confusion: SavedConfusion | None = None
    humans: dict[str, SavedEstimate] = {}
    labels: tuple[LabelledScore, ...] = Field(min_length=1)


def save_calibration(folder: Path, calibration: Calibration) -> Path:
    """Write the calibration, one label a line, so that a review shows changes; return the file.

    Raises:
        DataError: the name is not a file name.
    """
    if not _NAME.fullmatch(calibration.name):
        raise DataError(f"--name {calibration.name!r} is not a name: letters, digits, '.', '_' and '-' only.")
    content = calibration.model_dump(mode="json")
    labels = [json.dumps(label, ensure_ascii=False) for label in content.pop("labels")]
    head = json.dumps(content, ensure_ascii=False, indent=1).removesuffix("\n}")
    text = f'{head},\n "labels": [\n  ' + ",\n  ".join(labels) + "\n ]\n}\n"
    file = folder / f"{calibration.name}.json"
    write_atomically(file, text.encode())
    return file


def read_calibrations(folder: Path) -> list[Calibration]:
    """Read all calibrations of a folder, by their names; none where the folder does not exist.

    Raises:
        DataError: a file is not a calibration. The message has the file and the fault.
    """
    return [_read(file) for file in sorted(folder.glob("*.json"))]


def _read(file: Path) -> Calibration:
    try:
        return Calibration.model_validate_json(file.read_bytes())
    except ValidationError as error:
        again = "Make it again: rag-harness judge calibrate LABELS.jsonl"
        raise DataError(f"{file}: no calibration of a judge: {first_problem(error)}. {again}") from error


@dataclass(frozen=True, slots=True)
class RatedAnswer:
    """An answer with its people's labels."""

    item: tuple[str, str]
    said: tuple[float, ...]
    own_cluster: str

    @property
    def human(self) -> float:
        """The mean of the labels."""
        return sum(self.said) / len(self.said)

    @property
    def is_verdict(self) -> bool:
        """Whether all labels are 0 or 1."""
        return set(self.said) <= {0.0, 1.0}

    @property
    def verdict(self) -> float | None:
        """The majority of the labels; None for a tie."""
        return None if self.human == 0.5 else float(self.human > 0.5)

    @property
    def is_clustered(self) -> bool:
        """Whether its labels name a cluster."""
        return bool(self.own_cluster)

    @property
    def cluster(self) -> str:
        """The cluster of the answer. Where labels name none, all experiments' answers to one question are one."""
        return f"cluster {self.own_cluster}" if self.own_cluster else f"query {self.item[1]}"


def item_labels(labels: Sequence[AnswerLabel]) -> list[RatedAnswer]:
    """Return each labelled item once, in the order of the labels."""
    found: dict[tuple[str, str], list[AnswerLabel]] = {}
    for label in labels:
        found.setdefault(label.item, []).append(label)
    return [
        RatedAnswer(item, tuple(label.human for label in each), next((one.cluster for one in each if one.cluster), ""))
        for item, each in found.items()
    ]


def between_people(items: Sequence[RatedAnswer]) -> dict[str, Estimate]:
    """Return the agreement between people, over answers with two or more labels; empty where there are none.

    ``alpha`` is Krippendorff's: nominal where all labels are 0 or 1, else interval. ``one_against_others`` is the best
    that a judge can reach: each label against the mean of the others' labels, as accuracy or Spearman correlation.
    """
    several = [item for item in items if len(item.said) > 1]
    if not several:
        return {}
    verdicts = all(item.is_verdict for item in several)
    return {"alpha": _alpha(several, verdicts), "one_against_others": _one_against_others(several, verdicts)}


def _alpha(items: Sequence[RatedAnswer], verdicts: bool) -> Estimate:
    values = [item.said for item in items]

    def of(places: Floats) -> float:
        return krippendorff_alpha([values[int(place)] for place in places], "nominal" if verdicts else "interval")

    return estimate(of, list(range(len(items))), clusters=[item.cluster for item in items])


def _one_against_others(items: Sequence[RatedAnswer], verdicts: bool) -> Estimate:
    pairs = [(one, (sum(item.said) - one) / (len(item.said) - 1), item.cluster) for item in items for one in item.said]
    if verdicts:
        pairs = [(one, float(others > 0.5), cluster) for one, others, cluster in pairs if others != 0.5]
    if not pairs:
        return Estimate(None, reason="the others are even on every answer")
    ones, others, clusters = zip(*pairs, strict=True)
    return estimate(accuracy if verdicts else spearman, ones, others, clusters=clusters)


Item = tuple[str, str]
_VERDICTS: dict[str, Statistic] = {"accuracy": accuracy, "kappa": cohen_kappa, "f1": f1}
_RATED = "people gave ratings, no verdicts of 0 or 1"
_NO_LENGTHS = "the answers are not at hand"


@dataclass(frozen=True, slots=True)
class CalibrationSubject:
    """The subject of a calibration: a name to save it under, the measure with its version, and the judge.

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
            f"{first.where}: human: {first.human:g} is neither a verdict of 0 or 1 nor a rating between them "
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


@dataclass(frozen=True, slots=True)
class Repeatability:
    """How far a judge agrees with itself.

    ``flips`` is the probability that two judgements of an answer are on different sides of the threshold. ``alpha`` is
    Krippendorff's interval alpha over the scores. Both are None where ``reason`` says why. ``n`` answers have at least
    two scores; ``missing`` judgements gave no score.
    """

    flips: float | None
    alpha: float | None
    n: int
    missing: int
    reason: str = ""

    def line(self) -> str:
        """Return the result in one line."""
        lost = f", {self.missing} judgements without a score" if self.missing else ""
        if self.flips is None:
            return f"judged again: nothing to compare, {self.reason}{lost}"
        alpha = f"α {self.alpha:.2f}" if self.alpha is not None else f"α not defined: {self.reason}"
        return f"judged again: {self.flips:.1%} of verdicts flip, {alpha}  n={self.n}{lost}"


def repeatability(scores: Mapping[Hashable, Sequence[float | None]], threshold: float = 0.5) -> Repeatability:
    """Return the agreement of each item's judgements. None is a judgement without a score, and is left out."""
    items = [[value for value in values if value is not None] for values in scores.values()]
    missing = sum(value is None for values in scores.values() for value in values)
    n = sum(len(item) > 1 for item in items)
    try:
        flips = flip_rate(items, threshold)
    except UndefinedError as why:
        return Repeatability(None, None, n, missing, str(why))
    try:
        return Repeatability(flips, krippendorff_alpha(items, "interval"), n, missing)
    except UndefinedError as why:
        return Repeatability(flips, None, n, missing, str(why))
