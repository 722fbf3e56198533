"""Answers of anybody's: what is read of a line, and that each problem is named at once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rag_harness.core.errors import DataError
from rag_harness.evaluation.judges.answers import check_answers, read_answers
from rag_harness.evaluation.measures.opinion import Material
from tests.unit.judges.answers import line, written


def problems(file: Path) -> list[str]:
    with pytest.raises(DataError) as refused:
        check_answers(file)
    return str(refused.value).replace(f"{file}:", "").split("\n")


def says_no(answer: str) -> bool:
    return answer == "no"


def test_a_line_is_a_material(tmp_path: Path) -> None:
    full = line(7, ground_truth="So.", gold_pages=["Page."], quotes=["Quote."], answerable=False, abstained=True, tag=1)
    file = written(tmp_path, full, line("b", contexts=[], answer=""))
    assert check_answers(file) == 2
    first, second = read_answers(file, says_no)
    assert (first.id, second.id) == (7, "b")
    assert first.material == Material(
        "What?", "supported", ("It is so.",), "So.", ("Page.",), ("Quote.",), abstained=True, answerable=False
    )
    assert second.material == Material("What?", "")


def test_who_does_not_say_whether_it_abstains_is_asked(tmp_path: Path) -> None:
    file = written(tmp_path, line(1, answer="no"), line(2, answer="no", abstained=False), line(3, answer="yes"))
    assert [given.material.abstained for given in read_answers(file, says_no)] == [True, False, False]


def test_every_problem_is_named_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "answers.jsonl"
    lines = [
        '{"id": 1}',
        json.dumps(line(2, ground_truths="So.")),
        "",
        json.dumps(line(2, question=" ", contexts="one", answer=3)),
        "prose",
        json.dumps(line("2")),
        "[1]",
        json.dumps(line(True)),
        json.dumps(line(" ", answerable="no")),
    ]
    file.write_bytes("\n".join(lines).encode() + b'\n{"id": "\xff"}')
    found = problems(file)
    assert found[:8] == [
        "1: question: Field required",
        "1: contexts: Field required",
        "1: answer: Field required",
        "2: ground_truths is no field that is read. Did you mean 'ground_truth'? Else call it otherwise.",
        "4: question: String should have at least 1 character",
        "4: contexts: Input should be a valid array",
        "4: answer: Input should be a valid string",
        "5: line: Invalid JSON: expected value at line 1 column 1",
    ]
    assert found[8:12] == [
        "6: id '2' stands already on line 2.",
        "7: line: Input should be an object",
        "8: id: Value error, an id is a text or a whole number",
        "9: id: Value error, an id is a text or a whole number",
    ]
    assert found[12].startswith("9: answerable: ")
    assert found[13].startswith("10: line: Invalid JSON")


def test_a_byte_order_mark_and_strange_ends_of_lines_do_no_harm(tmp_path: Path) -> None:
    file = tmp_path / "answers.jsonl"
    one = json.dumps(line("a", answer="one\u2028two"), ensure_ascii=False)
    file.write_bytes(b"\xef\xbb\xbf" + f"{one}\r\n\r\n{json.dumps(line('b'))}".encode())
    assert [given.material.answer for given in read_answers(file, says_no)] == ["one\u2028two", "supported"]


@pytest.mark.parametrize("content", [b"", b"\n \n"])
def test_a_file_without_answers_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "answers.jsonl"
    file.write_bytes(content)
    assert "holds no answer" in problems(file)[0]


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert problems(tmp_path / "gone.jsonl")[0].startswith("No file")
