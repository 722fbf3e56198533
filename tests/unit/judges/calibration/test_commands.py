"""``rag-harness judge``: from a run to a calibrated gate, and what cannot be is said without a traceback."""

from __future__ import annotations

import json
import random
from pathlib import Path
from statistics import fmean

import pytest

from rag_harness.__main__ import main
from rag_harness.evaluation.judges.calibration.agreement import read_calibrations
from rag_harness.evaluation.judges.citations import CitationsOff
from rag_harness.evaluation.judges.mock import MockJudge
from rag_harness.records.scores import Author
from tests.unit.judges.calibration.runs import JUDGE, human_of, write_judged, write_lines


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
        ([{"id": "a", "human": 1, "score": 1}], ["--scale", "five"], "--scale 'five' is no scale"),
        ([{"id": "a", "human": 1, "score": 1}], ["--scale", "5"], "A scale goes from a lower"),
        ([{"id": "a", "human": 1, "score": 1}], ["--measure", "recall@5"], "needs no judge"),
        ([{"id": "a", "human": 1, "score": 1}], ["--name", "a/b"], "is no name"),
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
    assert "at random, for nothing is judged yet" in capsys.readouterr().out
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
    assert calibration.judge.author == Author("mock", "mock/word-overlap", CitationsOff(MockJudge()).revision)
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
