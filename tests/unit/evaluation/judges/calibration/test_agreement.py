"""``rag-harness judge``: from a run to a calibrated gate, and what cannot be is said without a traceback."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from statistics import fmean

import pytest

from rag_harness.__main__ import main
from rag_harness.core.errors import DataError
from rag_harness.evaluation.judges.calibration.agreement import (
    Calibration,
    CalibrationSubject,
    JudgeScores,
    Repeatability,
    SavedConfusion,
    calibrate,
    read_calibrations,
    repeatability,
    save_calibration,
)
from rag_harness.evaluation.judges.calibration.corrections import ExperimentScores, calibration_lines, corrected_mean
from rag_harness.evaluation.judges.calibration.labels import AnswerLabel
from rag_harness.evaluation.judges.mock import MockJudge
from rag_harness.records.scores import Author
from rag_harness.stats.prediction import ppi_mean
from tests.unit.evaluation.judges.calibration.runs import JUDGE, human_of, write_judged, write_lines
from tests.unit.evaluation.judges.scripted import run_judge


@pytest.fixture
def truth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[tuple[str, str], int]:
    monkeypatch.chdir(tmp_path)
    return write_judged(Path("output"), ["e2", "e3"])


def fill(truth: dict[tuple[str, str], int], sheet: str = "sheet") -> None:
    """Fill in a sheet, as people who know the truth would."""
    key = json.loads(Path(f"{sheet}.key.json").read_text())
    lines = [json.loads(line) for line in Path(f"{sheet}.jsonl").read_text().splitlines()]
    for line in lines:
        row = key[line["item"]]
        line["human"] = truth[row["experiment"], row["query_id"]]
    write_lines(Path(f"{sheet}.jsonl"), lines)


def judged_mean(experiment: str) -> float:
    lines = Path(f"output/scores/{experiment}.jsonl").read_text().splitlines()
    return fmean(json.loads(line)["value"] for line in lines)


def test_from_a_run_to_a_calibrated_gate(truth: dict[tuple[str, str], int], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["judge", "sample", "-n", "40"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("40 answers of 2 experiments, spread over the judge's scores.\n")
    assert out.endswith("Then: rag-harness judge calibrate sheet.csv --measure faithfulness\n")
    fill(truth)
    assert main(["judge", "calibrate", "sheet.jsonl"]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 100
    assert "faithfulness by embedded minilm 1a2b\n40 labelled answers" in out
    assert "its Spearman with answer length" in out
    for name in ("e2", "e3"):
        assert f"  {name:<22}{judged_mean(name):>7.3f}" in out
    (calibration,) = read_calibrations(Path("judges"))
    assert calibration.name == "embedded-faithfulness"
    assert calibration.judge.author == JUDGE
    assert {label.experiment for label in calibration.labels} == {"e2", "e3"}
    assert all(label.row for label in calibration.labels)
    assert out.splitlines()[-3].strip() == "rag_gate ="
    assert out.splitlines()[-1].strip().startswith("e3: faithfulness~calibrated >= 0.")


def test_the_mean_of_an_experiment_is_of_its_own_answers(
    truth: dict[tuple[str, str], int], capsys: pytest.CaptureFixture[str]
) -> None:
    scores = Path("output/scores/e3.jsonl")
    scores.write_text("".join(scores.read_text().splitlines(keepends=True)[:40]))  # of e2 there are 60
    main(["judge", "sample", "-n", "20"])
    fill(truth)
    assert main(["judge", "calibrate", "sheet.jsonl"]) == 0
    assert f"  {'e3':<22}{judged_mean('e3'):>7.3f}" in capsys.readouterr().out


def test_the_same_answers_are_chosen_again_unless_another_seed_is_given(truth: dict[tuple[str, str], int]) -> None:
    for name, seed in (("usual", []), ("same", ["--seed", "0"]), ("other", ["--seed", "1"])):
        assert main(["judge", "sample", "-n", "10", "-o", name, *seed]) == 0
    usual, same, other = (
        sorted(
            (row["experiment"], row["query_id"]) for row in json.loads(Path(f"{name}.key.json").read_text()).values()
        )
        for name in ("usual", "same", "other")
    )
    assert usual == same != other


def test_the_shown_bounds_do_not_depend_on_chance(
    truth: dict[tuple[str, str], int], capsys: pytest.CaptureFixture[str]
) -> None:
    main(["judge", "sample", "-n", "20"])
    fill(truth)
    capsys.readouterr()
    shown = []
    for _ in range(2):
        assert main(["judge", "calibrate", "sheet.jsonl"]) == 0
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1]


def test_answers_that_stand_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = random.Random(0)
    pairs = [human_of(number, rng) for number in range(30)]
    lines = [
        {"id": f"a{n}", "answer": "x" * (n + 1), "human": 1 + 4 * human, "score": value, "judge": "mine", "model": "m"}
        for n, (human, value) in enumerate(pairs)
    ]
    labels = write_lines(tmp_path / "labels.jsonl", lines)
    where = ["--judges", str(tmp_path / "judges"), "--name", "own"]
    assert main(["judge", "calibrate", str(labels), "--scale", "1:5", *where]) == 0
    out = capsys.readouterr().out
    assert "faithfulness by mine m\n30 labelled answers" in out
    assert "Next: gate the corrected value of what this judge scores, e.g. e3: faithfulness~calibrated >= 0.8" in out
    (calibration,) = read_calibrations(tmp_path / "judges")
    assert calibration.judge.author == Author("mine", "m", "")
    assert {label.human for label in calibration.labels} == {0.0, 1.0}


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["judge", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


def test_labels_of_unknown_rows_are_named(
    truth: dict[tuple[str, str], int], capsys: pytest.CaptureFixture[str]
) -> None:
    labels = [
        {"experiment": "e3", "query_id": "q1", "human": 1},
        {"experiment": "e3", "query_id": "q999", "human": 1},
        {"experiment": "e7", "query_id": "q1", "human": 1},
    ]
    write_lines(Path("labels.jsonl"), labels)
    found = said(capsys, "calibrate", "labels.jsonl").splitlines()
    assert found[0].startswith("labels.jsonl:2: Unknown query 'q999'.")
    assert found[0].endswith("e3 has 60 answers.")
    assert found[1].startswith("labels.jsonl:3: Unknown experiment 'e7'.")
    assert len(found) == 2


@pytest.mark.parametrize(
    ("lines", "arguments", "message"),
    [
        ([{"id": "a", "human": 1}], [], "None of the 1 labelled answers has a score of faithfulness"),
        ([{"id": "a", "human": 5, "score": 1}], [], "human: 5 is not from 0 to 1"),
        ([{"id": "a", "human": 1, "score": 1}], ["--scale", "five"], "--scale 'five' is not a scale"),
        ([{"id": "a", "human": 1, "score": 1}], ["--scale", "5"], "A scale goes from a lower"),
        ([{"id": "a", "human": 1, "score": 1}], ["--measure", "recall@5"], "needs no judge"),
        ([{"id": "a", "human": 1, "score": 1}], ["--name", "a/b"], "is not a name"),
        (
            [{"id": n, "human": 1, "score": 1, "judge": f"judge {n}"} for n in (1, 2)],
            [],
            "scores of 2 judges: judge 1; judge 2. Calibrate each in a file of its own.",
        ),
    ],
)
def test_what_cannot_be_is_said(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    lines: list[dict[str, object]],
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    write_lines(Path("labels.jsonl"), lines)
    assert message in said(capsys, "calibrate", "labels.jsonl", *arguments)
    assert not list(tmp_path.glob("judges/*"))


def test_a_run_that_nobody_judged(truth: dict[tuple[str, str], int], capsys: pytest.CaptureFixture[str]) -> None:
    for file in Path("output/scores").glob("*"):
        file.unlink()
    assert main(["judge", "sample", "-n", "4"]) == 0
    assert "at random, because nothing is judged yet" in capsys.readouterr().out
    fill(truth)
    assert "None of the 4 labelled answers has a score" in said(capsys, "calibrate", "sheet.jsonl")


def test_labels_of_one_class_are_calibrated_too(
    truth: dict[tuple[str, str], int], capsys: pytest.CaptureFixture[str]
) -> None:
    labels = [{"experiment": "e3", "query_id": f"q{n}", "human": 1} for n in range(20)]
    write_lines(Path("labels.jsonl"), labels)
    assert main(["judge", "calibrate", "labels.jsonl"]) == 0
    out = capsys.readouterr().out
    assert "one class only: every label is 1" in out
    assert "nan" not in out.lower()
    assert max(map(len, out.splitlines())) <= 100
    assert "has no label of these answers of e2" in " ".join(out.split())


ANSWERS: list[dict[str, object]] = [
    {
        "id": 1,
        "question": "Return a lamp?",
        "contexts": ["You can return a lamp within 45 days."],
        "answer": "You can return a lamp.",
    },
    {"id": "b", "question": "Express?", "contexts": ["Express is quick."], "answer": "Whales sing at night."},
    {
        "id": "c",
        "question": "Express?",
        "contexts": ["Express is quick."],
        "answer": "Express is quick. Whales sing at night.",
    },
]


def judged_answers() -> Path:
    """Leave answers and their scores by the mock judge."""
    answers = write_lines(Path("answers.jsonl"), ANSWERS)
    command = ["judge", "score", str(answers), "-o", "scores.jsonl", "--measures", "faithfulness", "--judge", "mock"]
    assert main([*command, "--profile", "mock"]) == 0
    return Path("scores.jsonl")


def test_answers_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    scores = judged_answers()
    labels = [each | {"human": human} for each, human in zip(ANSWERS, [1, 0, 0.5], strict=True)]
    write_lines(Path("labels.jsonl"), labels)
    assert main(["judge", "calibrate", "labels.jsonl", "--scores", str(scores)]) == 0
    (calibration,) = read_calibrations(Path("judges"))
    assert calibration.judge.author == Author("mock", "mock/word-overlap", run_judge(MockJudge()).revision)
    assert [label.score for label in calibration.labels] == [1.0, 0.0, 0.5]
    assert calibration.agreement["spearman"].value == pytest.approx(1)
    assert "the first says 0 of everything" in " ".join(capsys.readouterr().out.split())


def test_an_answer_that_was_not_judged_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    scores = judged_answers()
    with scores.open("a") as stream:
        stream.write('{"id": "d", "value": 1}\n')
    write_lines(Path("labels.jsonl"), [{"id": "z", "human": 1}])
    capsys.readouterr()
    found = said(capsys, "calibrate", "labels.jsonl", "--scores", str(scores)).splitlines()
    assert found[0].startswith("scores.jsonl:4: no line of rag-harness judge score: judge")
    assert found[1] == "labels.jsonl:1: 'z' is not among the 3 answers of scores.jsonl: judge it, too"


# Calibration: agreement that equals scikit-learn's, and a reason wherever there is none.

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
    with pytest.raises(DataError, match="is not a name"):
        save_calibration(tmp_path, calibrate(SUBJECT, labels, said).model_copy(update={"name": "../x"}))


# Corrected means: by the labels of these answers and this judge, and by no others.

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
    with pytest.raises(DataError, match=f"is of another judge: {differing}. Compare this one with people: rag-harness"):
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


# Agreement of a judge with itself over repeats.


def test_a_judge_that_wavers() -> None:
    found = repeatability({"a": [1.0, 1.0, 0.0], "b": [0.2, 0.3, 0.1], "c": [0.9, None, 0.8], "d": [None, 1.0, None]})
    assert found.flips == pytest.approx((2 / 3 + 0 + 0) / 3)
    assert (found.n, found.missing) == (3, 3)
    assert found.alpha is not None
    assert (
        found.line() == f"judged again: 22.2% of verdicts flip, α {found.alpha:.2f}  n=3, 3 judgements without a score"
    )


def test_a_judge_of_one_mind() -> None:
    assert repeatability({"a": [1.0, 1.0], "b": [0.0, 0.0]}) == Repeatability(0.0, 1.0, 2, 0)
    assert repeatability({"a": [1.0, 1.0]}).line() == (
        "judged again: 0.0% of verdicts flip, α not defined: everybody says 1 of everything  n=1"
    )


@pytest.mark.parametrize("scores", [{}, {"a": [1.0]}, {"a": [None, None]}])
def test_nothing_to_compare(scores: dict[str, list[float | None]]) -> None:
    found = repeatability(scores)  # type: ignore[arg-type]
    assert (found.flips, found.alpha, found.n) == (None, None, 0)
    assert found.line().startswith("judged again: nothing to compare, no item has two values")


def test_two_judgements_that_disagree_always() -> None:
    found = repeatability({"a": [1.0, 0.0], "b": [0.0, 1.0]})
    assert found.flips == 1
    assert found.alpha is not None
    assert found.alpha < 0
