"""Calibration: agreement that equals scikit-learn's, and a reason wherever there is none."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace
from pathlib import Path

import pytest

from rag_harness.core.errors import DataError
from rag_harness.evaluation.judges.calibration.agreement import (
    Calibration,
    CalibrationSubject,
    JudgeScores,
    SavedConfusion,
    calibrate,
    read_calibrations,
    save_calibration,
)
from rag_harness.evaluation.judges.calibration.corrections import calibration_lines
from rag_harness.evaluation.judges.calibration.labels import AnswerLabel
from tests.unit.judges.calibration.runs import JUDGE, human_of

SUBJECT = CalibrationSubject("mine", "faithfulness", 1, JUDGE, "2026-01-01T00:00:00+00:00")


def made(n: int = 40) -> tuple[list[AnswerLabel], JudgeScores]:
    rng = random.Random(1)
    pairs = [human_of(number, rng) for number in range(n)]
    labels = [AnswerLabel("e3", f"q{number}", float(human)) for number, (human, _) in enumerate(pairs)]
    scores = {("e3", f"q{number}"): score for number, (_, score) in enumerate(pairs)}
    return labels, JudgeScores(
        scores, {item: 10 + number for number, item in enumerate(scores)}, {("e3", "q1"): "digest"}
    )


def of(human: list[float], scores: list[float]) -> Calibration:
    labels = [AnswerLabel("e3", f"q{number}", value) for number, value in enumerate(human)]
    return calibrate(SUBJECT, labels, JudgeScores({("e3", f"q{number}"): score for number, score in enumerate(scores)}))


def test_agreement_is_what_sklearn_says() -> None:
    import sklearn.metrics

    labels, said = made()
    found = calibrate(SUBJECT, labels, said)
    human = [label.human for label in labels]
    verdicts = [float(score >= 0.5) for score in said.scores.values()]
    assert found.agreement["accuracy"].value == pytest.approx(sklearn.metrics.accuracy_score(human, verdicts))
    assert found.agreement["kappa"].value == pytest.approx(sklearn.metrics.cohen_kappa_score(human, verdicts))
    assert found.agreement["f1"].value == pytest.approx(sklearn.metrics.f1_score(human, verdicts))
    auroc = sklearn.metrics.roc_auc_score(human, list(said.scores.values()))
    assert found.agreement["auroc"].value == pytest.approx(auroc)
    tn, fp, fn, tp = map(int, sklearn.metrics.confusion_matrix(human, verdicts).ravel())
    assert found.confusion == SavedConfusion(true_positive=tp, false_positive=fp, false_negative=fn, true_negative=tn)
    assert (found.n, found.clusters, found.raters, found.unscored) == (40, 40, 1, 0)
    assert found.humans == {}
    assert found.labels[1].row == "digest"


def test_the_threshold_makes_the_verdict() -> None:
    import sklearn.metrics

    labels, said = made()
    strict = calibrate(CalibrationSubject("mine", "faithfulness", 1, JUDGE, "", 0.9), labels, said)
    verdicts = [float(score >= 0.9) for score in said.scores.values()]
    human = [label.human for label in labels]
    assert strict.agreement["accuracy"].value == pytest.approx(sklearn.metrics.accuracy_score(human, verdicts))
    assert strict.agreement["auroc"] == calibrate(SUBJECT, labels, said).agreement["auroc"]


def test_a_score_at_the_threshold_is_the_verdict_1() -> None:
    found = of([1.0, 0.0], [0.5, 0.499]).confusion
    assert found == SavedConfusion(true_positive=1, false_positive=0, false_negative=0, true_negative=1)


def test_ratings_are_ranked_and_no_verdicts() -> None:
    found = of([0.0, 0.25, 0.75, 1.0, 0.5], [0.1, 0.2, 0.9, 0.8, 0.5])
    assert found.agreement["spearman"].value == pytest.approx(0.9)
    assert found.agreement["weighted_kappa"].value is not None
    assert found.agreement["accuracy"].reason == "people gave ratings, no verdicts of 0 or 1"
    assert found.confusion is None


@pytest.mark.parametrize(
    ("human", "scores", "name", "why"),
    [
        ([1, 1, 1], [0.9, 0.2, 0.4], "auroc", "one class only: every label is 1"),
        ([1, 1, 1], [0.9, 0.2, 0.4], "spearman", "the first says 1 of everything"),
        ([1, 0, 1], [0.7, 0.7, 0.7], "pearson", "the second says 0.7 of everything"),
        ([1, 1], [0.7, 0.7], "kappa", "both say 1 of everything"),
        ([0, 0], [0.1, 0.2], "f1", "neither says 1 of anything"),
        ([1], [0.7], "spearman", "one item only"),
        ([1, 0], [0.7, 0.1], "error_with_length", "the answers are not at hand"),
    ],
)
def test_what_is_not_defined_says_why(human: list[float], scores: list[float], name: str, why: str) -> None:
    found = of(human, scores).agreement[name]
    assert (found.value, found.reason) == (None, why)


def test_one_label_has_no_interval_and_says_so() -> None:
    found = of([1.0], [0.7]).agreement["accuracy"]
    assert (found.value, found.low, found.reason) == (1.0, None, "one item or cluster only, so no interval")


def test_two_raters_who_disagree_always() -> None:
    labels = [AnswerLabel("e3", f"q{n}", float(v == r), r) for n, v in enumerate("abab") for r in "ab"]
    found = calibrate(SUBJECT, labels, JudgeScores({("e3", f"q{n}"): n / 4 for n in range(4)}))
    assert found.humans["alpha"].value == pytest.approx(-0.75)
    assert found.humans["one_against_others"].value == 0
    assert found.agreement["accuracy"].reason == "people are even on every answer"
    assert found.confusion is None
    assert {label.human for label in found.labels} == {0.5}


def test_several_raters_are_held_against_each_other() -> None:
    said = {"q0": (1, 1, 1), "q1": (0, 0, 1), "q2": (0, 0, 0), "q3": (1, 1, 0)}
    labels = [AnswerLabel("e3", q, float(v), f"r{n}") for q, values in said.items() for n, v in enumerate(values)]
    found = calibrate(SUBJECT, labels, JudgeScores(dict.fromkeys([label.item for label in labels], 0.6)))
    assert found.raters == 3
    assert found.n == 4
    # q1 and q3: of the two that agree each meets an even pair, which is left out; the third is against both.
    assert found.humans["one_against_others"].value == pytest.approx(6 / 8)
    assert [label.human for label in found.labels] == pytest.approx([1, 1 / 3, 0, 2 / 3])
    assert found.confusion == SavedConfusion(true_positive=2, false_positive=2, false_negative=0, true_negative=0)


def test_a_judge_that_favours_long_answers_is_seen() -> None:
    labels = [AnswerLabel("e3", f"q{n}", 0.5) for n in range(20)]
    scores = {label.item: 0.3 + n / 40 for n, label in enumerate(labels)}
    lengths = {label.item: 100 + n * n for n, label in enumerate(labels)}
    assert calibrate(SUBJECT, labels, JudgeScores(scores, lengths)).agreement[
        "error_with_length"
    ].value == pytest.approx(1)


def test_answers_without_a_score_are_counted() -> None:
    labels, said = made(10)
    del said.scores["e3", "q3"]  # type: ignore[attr-defined]
    found = calibrate(SUBJECT, labels, said)
    assert (found.n, found.unscored) == (9, 1)


def test_what_is_shown_counts_answers_people_and_what_has_no_score() -> None:
    labels, said = made(10)
    assert calibration_lines(calibrate(SUBJECT, labels, said), {}, {})[1] == "10 labelled answers, in 10 clusters"
    twice = [*labels, *(replace(label, rater="r2") for label in labels)]
    counted = calibration_lines(calibrate(SUBJECT, twice, said), {}, {})[1]
    assert counted == "10 labelled answers by 2 people, in 10 clusters"
    del said.scores["e3", "q3"]  # type: ignore[attr-defined]
    counted = calibration_lines(calibrate(SUBJECT, labels, said), {}, {})[1]
    assert counted == "9 labelled answers, in 9 clusters; 1 labelled answers have no score"


def test_values_stand_below_their_title() -> None:
    labels, said = made()
    _, _, _, title, *table = calibration_lines(calibrate(SUBJECT, labels, said), {}, {})
    end = title.index("value") + len("value")
    rows = table[: table.index("")]
    assert len(rows) > 3
    assert all(re.search(r"  (\d\.\d{3}|-\d\.\d{3}|-)$", row[:end]) and row[end : end + 1] in " " for row in rows)


def test_no_score_at_all_is_refused() -> None:
    with pytest.raises(DataError, match="None of the 1 labelled answers has a score of faithfulness: judge them first"):
        calibrate(SUBJECT, [AnswerLabel("e3", "q1", 1.0)], JudgeScores({}))


def test_ratings_beyond_0_to_1_are_refused() -> None:
    with pytest.raises(DataError, match="--scale 1:5"):
        calibrate(SUBJECT, [AnswerLabel("", "a", 5.0, where="labels:1")], JudgeScores({("", "a"): 0.5}))


def test_labels_of_a_cluster_widen_the_interval() -> None:
    labels, said = made(40)
    ordered = sorted(labels, key=lambda label: (label.human == 1) == (said.scores[label.item] >= 0.5))
    grouped = [AnswerLabel("e3", each.query_id, each.human, cluster=f"c{n // 8}") for n, each in enumerate(ordered)]
    alone, together = (calibrate(SUBJECT, each, said).agreement["accuracy"] for each in (ordered, grouped))
    assert together.high is not None
    assert together.low is not None
    assert alone.high is not None
    assert alone.low is not None
    assert together.high - together.low > alone.high - alone.low
    assert calibrate(SUBJECT, grouped, said).clusters == 5


def test_what_is_saved_is_read_back(tmp_path: Path) -> None:
    labels, said = made(8)
    found = calibrate(SUBJECT, labels, said)
    file = save_calibration(tmp_path / "judges", found)
    assert file.name == "mine.json"
    assert read_calibrations(tmp_path / "judges") == [found]
    assert len([line for line in file.read_text().splitlines() if '"human":' in line]) == 8


def test_no_folder_has_no_calibration(tmp_path: Path) -> None:
    assert read_calibrations(tmp_path / "judges") == []


@pytest.mark.parametrize(("key", "value"), [("labels", []), ("n", "many"), ("schema_version", 2), ("threshold", None)])
def test_a_damaged_file_is_named(tmp_path: Path, key: str, value: object) -> None:
    labels, said = made(3)
    file = save_calibration(tmp_path, calibrate(SUBJECT, labels, said))
    file.write_text(json.dumps(json.loads(file.read_text()) | {key: value}))
    with pytest.raises(DataError, match=f"mine.json: no calibration of a judge: {key}.*Make it again"):
        read_calibrations(tmp_path)


def test_a_name_is_no_path(tmp_path: Path) -> None:
    labels, said = made(3)
    with pytest.raises(DataError, match="is no name"):
        save_calibration(tmp_path, calibrate(SUBJECT, labels, said).model_copy(update={"name": "../x"}))
