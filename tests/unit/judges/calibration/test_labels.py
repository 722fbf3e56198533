"""Labels of people: read from JSON Lines and CSV, and every line that is none is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_harness.core.errors import DataError
from rag_harness.evaluation.judges.calibration.labels import AnswerLabel, read_labels, scaled
from tests.unit.judges.calibration.runs import write_lines


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
