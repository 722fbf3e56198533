"""Labels of people: read from JSON Lines and CSV, and every line that is none is named."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from rag_harness.core.errors import DataError, PrerequisiteError
from rag_harness.evaluation.judges.calibration.labels import (
    SHEET_COLUMNS,
    AnswerLabel,
    ScoredAnswers,
    read_labels,
    read_scored,
    sample_of_answers,
    scaled,
    write_sheet,
)
from rag_harness.records.scores import Author, row_digest
from tests.unit.evaluation.judges.calibration.runs import JUDGE, score, write_judged, write_lines, write_run_file
from tests.unit.rows import make_row


def problems_of(*files: Path, key: Path | None = None) -> list[str]:
    with pytest.raises(DataError) as caught:
        read_labels(files, key)
    return str(caught.value).splitlines()


def test_rows_and_answers_that_stand_alone(tmp_path: Path) -> None:
    file = write_lines(
        tmp_path / "labels.jsonl",
        [
            {"experiment": "e3", "query_id": "q1", "human": 1, "rater": "anna", "cluster": "c1"},
            {"experiment": "e3", "query_id": "q1", "human": False, "rater": "ben"},
            {"id": 7, "question": "?", "contexts": ["a"], "answer": "b", "human": 0.25, "score": 0.5, "judge": "mine"},
            {"id": "x", "human": None},
        ],
    )
    found = read_labels([file])
    assert found.unlabelled == 1
    assert found.each[:2] == (
        AnswerLabel("e3", "q1", 1.0, "anna", "c1", where=f"{file}:1"),
        AnswerLabel("e3", "q1", 0.0, "ben", where=f"{file}:2"),
    )
    alone = found.each[2]
    assert (alone.item, alone.human, alone.score, alone.answer) == (("", "7"), 0.25, 0.5, "b")
    assert alone.author is not None
    assert alone.author.judge == "mine"


@pytest.mark.parametrize("separator", [",", ";"])
def test_a_table_as_spreadsheets_save_it(tmp_path: Path, separator: str) -> None:
    text = 'experiment,query_id,human,rater\r\ne3,q1,1,anna\r\ne3,q2,"0.5",\r\ne3,q3,,\r\ne3,q4,Yes,\r\n,,,\r\n'
    file = tmp_path / "labels.csv"
    file.write_bytes(b"\xef\xbb\xbf" + text.replace(",", separator).encode())
    found = read_labels([file])
    assert [(label.query_id, label.human, label.rater) for label in found.each] == [
        ("q1", 1.0, "anna"),
        ("q2", 0.5, ""),
        ("q4", 1.0, ""),
    ]
    assert found.unlabelled == 1


def test_a_table_counts_lines_although_cells_hold_line_breaks(tmp_path: Path) -> None:
    file = tmp_path / "labels.csv"
    file.write_text('id,answer,human\na,"two\nlines",1\nb,short,maybe\n')
    assert problems_of(file) == [
        f"{file}:4: human: Input should be a valid number, unable to parse string as a number; found 'maybe'"
    ]


def test_a_cell_may_be_longer_than_csv_allows_by_default(tmp_path: Path) -> None:
    file = tmp_path / "labels.csv"
    file.write_text(f'id,contexts,human\na,"{"x" * 200_000}",1\n')
    assert len(read_labels([file]).each) == 1


def test_every_malformed_line_is_named(tmp_path: Path) -> None:
    file = tmp_path / "labels.jsonl"
    file.write_text(
        '{"experiment": "e3", "query_id": "q1", "human": 1}\n'
        "{\n"
        '["e3", "q1"]\n'
        '{"experiment": "e3", "human": 1}\n'
        '{"id": "a", "human": "maybe"}\n'
        '{"id": "a", "human": NaN}\n'
        '{"id": "b", "human": 1, "score": Infinity}\n'
        '{"item": "a01", "human": 1}\n'
        '{"experiment": "e3", "query_id": "q1", "human": 0}\n'
    )
    found = problems_of(file)
    assert [line.partition(": ")[0].removeprefix(str(file)) for line in found] == [
        ":2", ":3", ":4", ":5", ":6", ":7", ":8", ":9",
    ]  # fmt: skip
    assert "no JSON" in found[0]
    assert "a line is an object" in found[1]
    assert "names no answer" in found[2]
    assert "found 'maybe'" in found[3]
    assert "finite" in found[4]
    assert "finite" in found[5]
    assert "needs the key of its sheet" in found[6]
    assert found[7].endswith(f"e3-q1 is labelled twice without a rater: name who said what, first at {file}:1")


def test_one_rater_may_not_say_two_things_in_two_files(tmp_path: Path) -> None:
    line = {"id": "a", "human": 1, "rater": "anna"}
    first, second = (write_lines(tmp_path / name, [line]) for name in ("1.jsonl", "2.jsonl"))
    assert problems_of(first, second) == [f"{second}:1: a is labelled twice by 'anna', first at {first}:1"]


def test_many_problems_are_counted(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "labels.jsonl", [{"human": 1}] * 30)
    found = problems_of(file)
    assert len(found) == 21
    assert found[-1] == "and 10 more"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("gone.jsonl", None, "No file"),
        ("empty.jsonl", b"", "Nothing is labelled in"),
        ("blank.jsonl", b'{"id": "a", "human": ""}\n', "Nothing is labelled in"),
        ("latin.csv", b"id,human\nM\xfcller,1\n", "latin.csv:2: not UTF-8"),
        ("other.csv", b"id,verdict\na,1\n", "other.csv:1: no column 'human'; found id, verdict"),
        ("empty.csv", b"", "no column 'human'; found nothing"),
    ],
)
def test_what_is_no_file_of_labels(tmp_path: Path, name: str, content: bytes | None, message: str) -> None:
    file = tmp_path / name
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_labels([file])


def test_ratings_are_scaled() -> None:
    labels = [AnswerLabel("", "a", 1.0), AnswerLabel("", "b", 4.0), AnswerLabel("", "c", 2.5)]
    assert [label.human for label in scaled(labels, 1, 4)] == [0.0, 1.0, 0.5]


@pytest.mark.parametrize(
    ("low", "high", "message"),
    [
        (0, 1, "labels:3: human: 4 is not from 0 to 1\nName the scale"),
        (4, 4, "from a lower"),
        (1, 3, "4 is not from 1 to 3"),
    ],
)
def test_a_rating_beyond_its_scale_is_named(low: float, high: float, message: str) -> None:
    with pytest.raises(DataError, match=message):
        scaled([AnswerLabel("", "a", 1.0), AnswerLabel("", "b", 4.0, where="labels:3")], low, high)


# A sheet for people: blind, spread over the judge's scores, and read back as labels.


@pytest.fixture
def scored(tmp_path: Path) -> ScoredAnswers:
    write_judged(tmp_path / "output", ["e2", "e3"])
    return read_scored(tmp_path / "output", "faithfulness")


def test_as_many_of_each_experiment_and_spread_over_the_scores(scored: ScoredAnswers) -> None:
    items = sample_of_answers(scored, 30, seed=1)
    assert len(set(items)) == 30
    assert Counter(name for name, _ in items) == {"e2": 15, "e3": 15}
    for name in ("e2", "e3"):
        every = sorted(value for (experiment, _), value in scored.scores.items() if experiment == name)
        chosen = sorted(scored.scores[item] for item in items if item[0] == name)
        # One of each four in the order of the scores.
        assert all(every[4 * n] <= value <= every[4 * n + 3] for n, value in enumerate(chosen))


def test_each_answer_is_as_likely_as_the_next(scored: ScoredAnswers) -> None:
    counts = Counter(item for seed in range(400) for item in sample_of_answers(scored, 30, seed))
    assert len(counts) == 120
    # 100 expected of each, with a standard deviation below 9.
    assert 100 - 45 < min(counts.values()) <= max(counts.values()) < 100 + 45


def test_seeds_repeat_and_differ(scored: ScoredAnswers) -> None:
    assert sample_of_answers(scored, 10, 1) == sample_of_answers(scored, 10, 1) != sample_of_answers(scored, 10, 2)


def test_more_than_there_are_is_all(scored: ScoredAnswers) -> None:
    assert set(sample_of_answers(scored, 999)) == set(scored.rows)


def test_without_scores_it_is_any_answer(tmp_path: Path) -> None:
    write_lines(tmp_path / "e1.jsonl", [json.loads(make_row(experiment="e1", query_id=f"q{n}").text) for n in range(5)])
    assert len(sample_of_answers(read_scored(tmp_path, "faithfulness"), 3)) == 3


def test_answers_that_have_no_score_are_not_picked(tmp_path: Path) -> None:
    write_judged(tmp_path, n=3)
    row = make_row(query_id="q9")
    with (tmp_path / "e3.jsonl").open("a") as stream:
        stream.write(row.line())
    line = score("e3", "q9", None, row_digest(row), reason="an abstention", undefined=True)
    with (tmp_path / "scores" / "e3.jsonl").open("ab") as stream:
        stream.write(line.line())
    found = read_scored(tmp_path, "faithfulness")
    assert found.missing == {("e3", "q9"): "an abstention"}
    assert {query for _, query in sample_of_answers(found, 9)} == {"q0", "q1", "q2"}


@pytest.mark.parametrize("n", [0, -1])
def test_no_answers_are_refused(scored: ScoredAnswers, n: int) -> None:
    with pytest.raises(DataError, match="1 or more"):
        sample_of_answers(scored, n)


def test_the_sheet_is_blind_and_reads_back(scored: ScoredAnswers, tmp_path: Path) -> None:
    items = sample_of_answers(scored, 12)
    table, lines, key = write_sheet(tmp_path / "sheet", items, scored.rows)
    for file in (table, lines):
        text = file.read_text(encoding="utf-8-sig")
        assert "e2" not in text
        assert "e3" not in text
        assert not any(query in text for query in ('"q1"', "q11"))
    with pytest.raises(DataError, match="Nothing is labelled"):
        read_labels([table])
    rows = list(csv.DictReader(table.read_text(encoding="utf-8-sig").splitlines()))
    assert tuple(rows[0]) == SHEET_COLUMNS
    for number, row in enumerate(rows[:5]):
        row |= {"human": str(number % 2), "rater": "anna"}
    with table.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, SHEET_COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    found = read_labels([table])
    assert [label.item for label in found.each] == items[:5]
    assert [label.human for label in found.each] == [0, 1, 0, 1, 0]
    assert found.unlabelled == 7
    filled = [json.loads(line) | {"human": 1} for line in lines.read_text().splitlines()]
    assert len(read_labels([write_lines(tmp_path / "ben.jsonl", filled)], key).each) == 12


def test_an_item_that_the_key_does_not_know_is_named(scored: ScoredAnswers, tmp_path: Path) -> None:
    _, _, key = write_sheet(tmp_path / "sheet", sample_of_answers(scored, 2), scored.rows)
    file = write_lines(tmp_path / "labels.jsonl", [{"item": "a7", "human": 1}])
    with pytest.raises(DataError, match=r"labels.jsonl:1: item 'a7' is not in the key"):
        read_labels([file], key)


def test_people_s_work_is_never_written_over(scored: ScoredAnswers, tmp_path: Path) -> None:
    items = sample_of_answers(scored, 2)
    write_sheet(tmp_path / "sheet", items, scored.rows)
    with pytest.raises(DataError, match="may hold labels"):
        write_sheet(tmp_path / "sheet", items, scored.rows)


@pytest.mark.parametrize("answer", ["=HYPERLINK(1)", "@SUM(1)", "-2+3"])
def test_an_answer_is_no_formula_in_a_spreadsheet(answer: str, tmp_path: Path) -> None:
    rows = {("e3", "q1"): make_row(llm_answer=answer)}
    table, lines, _ = write_sheet(tmp_path / "sheet", list(rows), rows)
    (row,) = csv.DictReader(table.read_text(encoding="utf-8-sig").splitlines())
    assert row["answer"] == f"'{answer}"
    assert json.loads(lines.read_text())["answer"] == answer


def test_scores_of_several_judges_need_a_name(tmp_path: Path) -> None:
    other = Author("fused", "gpt-4o", "9")
    write_judged(tmp_path, authors=[JUDGE, other])
    with pytest.raises(DataError, match=r"by 2 judges: embedded minilm 1a2b; fused gpt-4o 9. Name one"):
        read_scored(tmp_path, "faithfulness")
    assert read_scored(tmp_path, "faithfulness", "gpt-4o").author == other
    assert read_scored(tmp_path, "faithfulness", "embedded").author == JUDGE
    with pytest.raises(DataError, match="is by 'mine'"):
        read_scored(tmp_path, "faithfulness", "mine")


def test_scores_of_answers_that_are_no_more_do_not_count(tmp_path: Path) -> None:
    write_judged(tmp_path, n=4)
    changed = [json.loads(line) for line in (tmp_path / "e3.jsonl").read_text().splitlines()]
    changed[0]["llm_answer"] = "Another answer."
    write_lines(tmp_path / "e3.jsonl", changed)
    assert set(read_scored(tmp_path, "faithfulness").scores) == {("e3", f"q{n}") for n in (1, 2, 3)}


@pytest.mark.parametrize(
    ("measure", "message"),
    [("recall@5", "needs no judge"), ("faith", "Unknown"), ("faithfulness", "No answers in")],
)
def test_what_cannot_be_calibrated(tmp_path: Path, measure: str, message: str) -> None:
    with pytest.raises(PrerequisiteError, match=message):
        read_scored(tmp_path, measure)


def test_the_sample_gives_the_mean_of_everything_on_average(scored: ScoredAnswers) -> None:
    means = [np.mean([scored.scores[item] for item in sample_of_answers(scored, 20, seed)]) for seed in range(200)]
    assert np.mean(means) == pytest.approx(np.mean(list(scored.scores.values())), abs=0.01)


def test_where_no_judgement_came_to_a_score_those_answers_are_not_picked_either(tmp_path: Path) -> None:
    write_lines(tmp_path / "e3.jsonl", [json.loads(make_row(query_id=f"q{n}").text) for n in range(3)])
    line = score("e3", "q1", None, row_digest(make_row(query_id="q1")), reason="the judge is away")
    (tmp_path / "scores").mkdir()
    (tmp_path / "scores" / "e3.jsonl").write_bytes(line.line())
    assert {query for _, query in sample_of_answers(read_scored(tmp_path, "faithfulness"), 9)} == {"q0", "q2"}


def test_the_judge_of_the_last_run_is_meant_where_others_have_judged_before(tmp_path: Path) -> None:
    before = Author("embedded", "minilm", "older")
    write_judged(tmp_path, authors=[before, JUDGE])
    write_run_file(tmp_path, {"e3": [JUDGE]})
    assert read_scored(tmp_path, "faithfulness").author == JUDGE
    write_run_file(tmp_path, {"e3": [before]})
    assert read_scored(tmp_path, "faithfulness").author == before
