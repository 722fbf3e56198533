"""Corrects the mean of a panel by people's labels, and says what its judges are worth together.

Each judge has a calibration of its own, as one that judges alone. The labels of a panel are those that all of these
have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rag_harness.errors import DataError
from rag_harness.judges.calibration.correct import (
    CALIBRATE_AGAIN,
    CorrectedMean,
    ExperimentScores,
    calibration_of,
    joined,
    labels_of,
)
from rag_harness.judges.calibration.saved import Calibration, LabelledScore
from rag_harness.stats.panels import panel_values
from rag_harness.stats.ppi import ppi_mean

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
