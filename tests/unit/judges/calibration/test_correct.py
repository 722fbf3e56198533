"""Corrected means: by the labels of these answers and this judge, and by no others."""

from __future__ import annotations

import random
from functools import lru_cache

import pytest

from rag_harness.core.errors import DataError
from rag_harness.evaluation.judges.calibration.agreement import Calibration, CalibrationSubject, JudgeScores, calibrate
from rag_harness.evaluation.judges.calibration.corrections import ExperimentScores, corrected_mean
from rag_harness.evaluation.judges.calibration.labels import AnswerLabel
from rag_harness.records.scores import Author
from rag_harness.stats.ppi import ppi_mean
from tests.unit.judges.calibration.runs import JUDGE, human_of

_RNG = random.Random(2)
PAIRS = [human_of(number, _RNG) for number in range(200)]
VALUES = {f"q{number}": value for number, (_, value) in enumerate(PAIRS)}
ROWS = {f"q{number}": f"row {number}" for number in range(200)}
SCORES = ExperimentScores("e3", "faithfulness", 1, JUDGE, VALUES, ROWS)


@lru_cache
def calibration(
    experiment: str = "e3", author: Author = JUDGE, n: int = 50, date: str = "2026-01-01", version: int = 1
) -> Calibration:
    labels = [AnswerLabel(experiment, f"q{number}", float(PAIRS[number][0])) for number in range(n)]
    items = [label.item for label in labels]
    said = JudgeScores(
        {item: PAIRS[number][1] for number, item in enumerate(items)},
        digests={item: f"row {number}" for number, item in enumerate(items) if experiment},
    )
    return calibrate(
        CalibrationSubject(f"by-{author.judge}-{date}", "faithfulness", version, author, date), labels, said
    )


def test_labelled_answers_are_not_counted_twice() -> None:
    found = corrected_mean(SCORES, [calibration()])
    human, judge = ([float(pair[place]) for pair in PAIRS] for place in (0, 1))
    expected = ppi_mean(human[:50], judge[:50], judge[50:])
    assert found.found == expected
    assert (found.value, found.interval) == (expected.value, expected.interval)
    assert found.said == f"calibrated on 50 labels, λ = {expected.lam:.2f}"


def test_it_is_nearer_to_people_than_the_judge_is() -> None:
    truth, judge = (sum(pair[place] for pair in PAIRS) / 200 for place in (0, 1))
    found = corrected_mean(SCORES, [calibration()])
    assert abs(found.value - truth) < 0.5 * abs(judge - truth)
    assert found.interval.low < truth < found.interval.high


def test_labels_of_earlier_answers_are_told() -> None:
    rows = ROWS | {f"q{number}": "answered anew" for number in range(10)}
    found = corrected_mean(ExperimentScores("e3", "faithfulness", 1, JUDGE, VALUES, rows), [calibration()])
    assert found.said.endswith("; 10 of the labels are of earlier answers")
    assert found.found.unlabelled == 160


def test_labels_of_answers_that_stand_alone_are_told() -> None:
    found = corrected_mean(SCORES, [calibration("")])
    assert found.said.endswith("; 50 of the labels are of other answers")
    assert found.found.unlabelled == 200


def test_a_slice_is_corrected_by_its_own_labels() -> None:
    values = {f"q{number}": VALUES[f"q{number}"] for number in range(30, 120)}
    assert (
        corrected_mean(ExperimentScores("e3", "faithfulness", 1, JUDGE, values, ROWS), [calibration()]).found.labels
        == 20
    )


def test_cases_that_nobody_judged_count_as_they_are() -> None:
    alone, found = (corrected_mean(SCORES, [calibration()], others) for others in ([], [0.0] * 50))
    assert found.value == pytest.approx(0.8 * alone.value)
    assert found.interval == pytest.approx((0.8 * alone.interval.low, 0.8 * alone.interval.high))


def test_the_newest_calibration_of_the_judge_holds() -> None:
    new, old = calibration(n=60, date="2026-02-01"), calibration(n=40)
    other = calibration(author=Author("fused", "gpt", "1"), n=30, date="2026-03-01")
    assert corrected_mean(SCORES, [new, old, other]).found.labels == 60


@pytest.mark.parametrize(
    ("author", "differing"),
    [
        (Author("fused", "minilm", "1a2b"), "judge fused, here embedded"),
        (Author("embedded", "other", "1a2b"), "model other, here minilm"),
        (Author("embedded", "minilm", "ffff"), "revision ffff, here 1a2b"),
    ],
)
def test_another_judge_is_refused(author: Author, differing: str) -> None:
    with pytest.raises(DataError, match=f"is of another judge: {differing}. Hold this one against people: rag-harness"):
        corrected_mean(SCORES, [calibration(author=author)])


def test_another_version_of_the_measure_is_refused() -> None:
    with pytest.raises(DataError, match="version of faithfulness 2, here 1"):
        corrected_mean(SCORES, [calibration(version=2)])


def test_no_calibration_names_the_commands() -> None:
    with pytest.raises(DataError, match=r"no calibration of faithfulness: .*judge sample.*judge calibrate LABELS"):
        corrected_mean(SCORES, [])


def test_labels_of_another_experiment_say_nothing_of_this_one() -> None:
    with pytest.raises(DataError, match="has no label of these answers of e3, only of e2"):
        corrected_mean(SCORES, [calibration("e2")])


def test_one_label_is_too_few() -> None:
    with pytest.raises(DataError, match=r"one item or cluster, so no interval. Label more answers"):
        corrected_mean(SCORES, [calibration(n=1)])
