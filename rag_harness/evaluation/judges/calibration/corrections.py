"""Means of a judge or a panel, corrected by people's labels, and a calibration as text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import floor, fsum

import numpy as np

from rag_harness.core.errors import DataError
from rag_harness.evaluation.judges.calibration.agreement import Calibration, LabelledScore, SavedEstimate
from rag_harness.evaluation.judges.calibration.labels import whole_name
from rag_harness.records.scores import Author
from rag_harness.stats import Interval
from rag_harness.stats.agreement import panel_values
from rag_harness.stats.prediction import Corrected, ppi_mean

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
        why = f"no calibration of {scores.measure}: its judge was not compared with people"
        raise DataError(f"{why}. Label answers (rag-harness judge sample), then: {CALIBRATE_AGAIN}")
    fitting = [each for each in same if each.judge.author == scores.author and each.version == scores.version]
    if fitting:
        return max(fitting, key=lambda each: each.date)
    latest = max(same, key=lambda each: each.date)
    differing = _differing(latest, scores)
    raise DataError(
        f"{latest.name}.json is of another judge: {differing}. Compare this one with people: {CALIBRATE_AGAIN}"
    )


def labels_of(calibration: Calibration, scores: ExperimentScores) -> list[LabelledScore]:
    """Return the labels that apply to these scores: labels of answers in the slice, or of answers outside any run.

    Raises:
        DataError: no label applies.
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


# Corrects the mean of a panel by people's labels, and says what its judges are worth together.
#
# Each judge has a calibration of its own, as one that judges alone. The labels of a panel are those that all of these
# have.

Item = tuple[str, str]


@dataclass(frozen=True, slots=True)
class PanelLabels:
    """Answers that people have labelled and every judge of a panel has scored.

    Attributes:
        human: shape (labels,).
        scores: shape (labels, judges), in the order of the panel.
        items: experiment and query of each label; empty texts for answers outside any run.
        clusters: cluster of each label.
        current: queries whose row is the one that was labelled.
        left_out: labels that some judge's calibration lacks, or gives another value.
        alone: labels of answers outside any run.
    """

    human: Sequence[float]
    scores: Sequence[Sequence[float]]
    items: Sequence[Item]
    clusters: Sequence[str]
    current: frozenset[str]
    left_out: int
    alone: int


def panel_labels(each: Sequence[ExperimentScores], calibrations: Sequence[Calibration]) -> PanelLabels:
    """Return the labels that the newest calibrations of all judges have in common. ``each`` are scores by judge.

    Raises:
        DataError: a judge has no calibration, or they have no label in common.
    """
    by_judge = [_by_item(labels_of(calibration_of(scores, calibrations), scores)) for scores in each]
    every = dict.fromkeys(item for found in by_judge for item in found)
    first = by_judge[0]
    items = [item for item in every if all(item in found for found in by_judge)]
    items = [item for item in items if len({found[item].human for found in by_judge}) == 1]
    if not items:
        raise DataError(
            f"the calibrations of the panel's {len(each)} judges have no label in common. Calibrate each on the same "
            f"labels: {CALIBRATE_AGAIN}"
        )
    rows = each[0].rows
    return PanelLabels(
        human=[first[item].human for item in items],
        scores=[[found[item].score for found in by_judge] for item in items],
        items=items,
        clusters=[first[item].cluster or f" {item[1]}" for item in items],
        current=frozenset(item[1] for item in items if first[item].row and rows.get(item[1]) == first[item].row),
        left_out=len(every) - len(items),
        alone=sum(not experiment for experiment, _ in items),
    )


def _by_item(labels: Sequence[LabelledScore]) -> dict[Item, LabelledScore]:
    return {(label.experiment, label.query_id): label for label in labels}


def corrected_panel_mean(
    rule: str,
    each: Sequence[ExperimentScores],
    calibrations: Sequence[Calibration],
    others: Sequence[float] = (),
    confidence: float = 0.95,
) -> CorrectedMean:
    """Return the corrected mean of the answers that every judge has scored.

    The panel's figure corrects it, as the score of one judge would. ``others`` are values without a judge; they count
    as they are.

    Raises:
        DataError: a judge has no calibration, or the labels are too few or of other answers.
    """
    labels = panel_labels(each, calibrations)
    judged = sorted(set.intersection(*(set(scores.values) for scores in each)))
    rest = [[scores.values[query] for scores in each] for query in judged if query not in labels.current]
    ours, theirs = _together(rule, labels.scores), _together(rule, rest)
    found = ppi_mean(labels.human, ours, theirs, labels.clusters, confidence=confidence)
    if found.interval is None:
        raise DataError(f"the panel cannot be corrected: {found.reason}. Label more answers, then: {CALIBRATE_AGAIN}")
    said = f"calibrated on {found.labels} labels, panel of {len(each)} ({rule}), λ = {found.lam:.2f}{_notes(labels)}"
    return joined(found, found.interval, len(judged), others, said)


def _together(rule: str, rows: Sequence[Sequence[float]]) -> list[float]:
    return [float(value) for value in panel_values(rule, np.array(rows).T)] if rows else []


def _notes(labels: PanelLabels) -> str:
    notes = {
        "of the labels are of other answers": labels.alone,
        "of the labels are of earlier answers": 0 if labels.alone else len(labels.items) - len(labels.current),
        "labels are left out, for not every judge's calibration has them": labels.left_out,
    }
    return "".join(f"; {count} {said}" for said, count in notes.items() if count)


_WIDTH = 100
_NAME = 30
_NAMES = {
    "accuracy": "accuracy at {threshold:g}",
    "kappa": "Cohen's κ",
    "weighted_kappa": "κ, quadratic weights",
    "f1": "F1",
    "auroc": "AUROC",
    "spearman": "Spearman",
    "pearson": "Pearson",
    "mean_error": "judge - people, mean",
    "error_with_length": "its Spearman with answer length",
    "alpha": "Krippendorff's α",
    "one_against_others": "one against the others",
}


def calibration_lines(
    calibration: Calibration, corrected: Mapping[str, CorrectedMean | str], means: Mapping[str, float]
) -> list[str]:
    """Return the lines. ``corrected`` has each experiment's mean, or why there is none; ``means`` has the judge's."""
    return [
        *textwrap.wrap(f"{calibration.measure} by {whole_name(calibration.judge.author)}", _WIDTH),
        _counts(calibration),
        "",
        *_table("judge with people", calibration.agreement, calibration),
        *_confusion(calibration),
        *_table("people with each other", calibration.humans, calibration),
        *_corrected(corrected, means),
    ]


def gate_lines(calibration: Calibration, corrected: Mapping[str, CorrectedMean | str]) -> list[str]:
    """Return gates that pass today: each has the lower bound of the mean that people would give as its threshold."""
    found = {name: mean for name, mean in corrected.items() if isinstance(mean, CorrectedMean)}
    return [
        f"{name}: {calibration.measure}~calibrated >= {floor(mean.interval.low * 100) / 100:g}"
        for name, mean in found.items()
    ]


def _counts(calibration: Calibration) -> str:
    several = f" by {calibration.raters} people" if calibration.raters > 1 else ""
    left = f"; {calibration.unscored} labelled answers have no score" if calibration.unscored else ""
    clusters = f"{calibration.clusters} cluster{'s' * (calibration.clusters != 1)}"
    return f"{calibration.n} labelled answers{several}, in {clusters}{left}"


def _table(title: str, estimates: Mapping[str, SavedEstimate], calibration: Calibration) -> Iterator[str]:
    if not estimates:
        return
    yield f"{title:<{_NAME + 4}}{'value':>7}  95 % interval"
    for name, found in estimates.items():
        shown = _NAMES[name].format(threshold=calibration.threshold)
        value = "-" if found.value is None else f"{found.value:.3f}"
        yield from _wrapped(f"  {shown:<{_NAME + 2}}{value:>7}  ", _bounds(found))
    yield ""


def _wrapped(head: str, text: str) -> list[str]:
    first, *more = textwrap.wrap(text, _WIDTH - len(head)) or [""]
    return [f"{head}{first}".rstrip(), *(" " * len(head) + line for line in more)]


def _bounds(found: SavedEstimate) -> str:
    if found.low is None or found.high is None:
        return found.reason
    return f"[{found.low:.3f}, {found.high:.3f}]"


def _confusion(calibration: Calibration) -> list[str]:
    found = calibration.confusion
    if found is None:
        return []
    head = f"{'verdicts':<{_NAME + 4}}{'judge 1':>7}{'judge 0':>10}"
    ones = f"  {'people 1':<{_NAME + 2}}{found.true_positive:>7}{found.false_negative:>10}"
    zeros = f"  {'people 0':<{_NAME + 2}}{found.false_positive:>7}{found.true_negative:>10}"
    even = calibration.n - sum(dict(found).values())
    return [head, ones, zeros, *([f"  left out, people are even on them: {even}"] if even else []), ""]


def _corrected(corrected: Mapping[str, CorrectedMean | str], means: Mapping[str, float]) -> Iterator[str]:
    if not corrected:
        return
    title = f"{'mean of all answers':<24}{'judge':>7}{'corrected':>11}  {'95 % interval':<18}"
    yield f"{title}{'λ':>5}{'labels':>8}{'people':>8}"
    for name, mean in corrected.items():
        head = f"  {name:<22}{means[name]:>7.3f}"
        if isinstance(mean, str):
            yield from _wrapped(f"{head}    ", mean)
            continue
        interval = f"[{mean.interval.low:.3f}, {mean.interval.high:.3f}]"
        found = mean.found
        yield f"{head}{mean.value:>11.3f}  {interval:<18}{found.lam:>5.2f}{found.labels:>8}{found.people:>8.3f}"
    yield ""
