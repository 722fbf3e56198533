"""Answers -> scores: in their order, bounded in flight; whatever a judge does is a line with a reason."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rag_harness.core.errors import DataError, PrerequisiteError, SettingsError
from rag_harness.core.settings import Settings
from rag_harness.evaluation.judges.answers import (
    AskedMeasures,
    GivenAnswer,
    JudgedAnswer,
    MeasureTally,
    check_answers,
    judge_answers,
    read_answers,
    score_file,
)
from rag_harness.evaluation.measures import Score
from rag_harness.evaluation.measures.opinion import Material
from tests.unit.evaluation.judges.answers import Obeying, line, written

# Answers -> scores: in their order, bounded in flight; whatever a judge does is a line with a reason.


def given(*answers: str) -> Iterator[GivenAnswer]:
    return (GivenAnswer(place, Material("?", answer, ("c",))) for place, answer in enumerate(answers))


def judged(
    answers: Iterator[GivenAnswer], judge: Obeying, in_flight: int = 4, seconds: float = 9
) -> list[JudgedAnswer]:
    async def collected() -> list[JudgedAnswer]:
        found = judge_answers(answers, AskedMeasures(["faithfulness"]), judge, in_flight, seconds)
        return [answer async for answer in found]

    return asyncio.run(collected())


def reasons(*answers: str, **limits: Any) -> list[str]:
    return [answer.scores["faithfulness"].reason for answer in judged(given(*answers), Obeying(), **limits)]


def test_the_order_is_that_of_the_answers() -> None:
    answers = ("slow", "supported", "made up") * 4
    found = judged(given(*answers), Obeying(), in_flight=2)
    assert [answer.given.id for answer in found] == list(range(12))
    assert [answer.scores["faithfulness"].value for answer in found] == [1, 1, 0] * 4


def test_no_more_are_judged_at_once_than_may_be_and_no_more_are_read_than_can_wait() -> None:
    read: list[int] = []

    def reading() -> Iterator[GivenAnswer]:
        for answer in given(*["slow"] * 20):
            read.append(len(read))
            yield answer

    async def first() -> int:
        found = judge_answers(reading(), AskedMeasures(["faithfulness"]), judge, 3, 9)
        await anext(found)
        await found.aclose()
        return judge.most

    judge = Obeying()
    assert asyncio.run(first()) == 3
    assert len(read) == 13


def test_what_a_judge_fails_at_is_a_reason() -> None:
    assert reasons("unreadable", "supported", "no opinion") == [
        "half a JSON",
        "",
        "OSError: the disk is gone",
    ]


def test_a_judge_that_never_ends_is_left() -> None:
    assert reasons("never", "supported", seconds=0.05) == ["deadline: not judged within 0.05 s", ""]


def test_where_no_judgement_can_succeed_no_more_are_asked_for() -> None:
    judge = Obeying()
    found = judged(given("supported", "rejected", "supported", "supported"), judge, in_flight=1)
    assert [answer.scores["faithfulness"].reason for answer in found] == ["", *["the key was rejected"] * 3]
    assert judge.asked == ["supported", "rejected"]


def test_what_is_asked_for_is_judged() -> None:
    assert [part.name for part in AskedMeasures(["hri", "faithfulness"]).parts] == ["faithfulness", "answer_relevancy"]
    for names, message in (
        (["recall@5"], "'recall@5' is no judged measure. Judged are: answer_correctness, "),
        (["gmean"], "Did you mean 'g_mean'"),
        ([], "No measure is named. Judged are: answer_correctness, "),
    ):
        with pytest.raises(SettingsError) as refused:
            AskedMeasures(names)
        assert message in str(refused.value)


def score(folder: Path, names: list[str], *lines: dict[str, Any]) -> tuple[list[dict[str, Any]], MeasureTally]:
    scores = folder / "deep" / "scores.jsonl"
    work = score_file(
        written(folder, *lines), scores, AskedMeasures(names), Obeying(), Settings(), lambda answer: answer == "no"
    )
    tally = asyncio.run(work)
    return [json.loads(one) for one in scores.read_text(encoding="utf-8").splitlines()], tally


def test_a_line_of_scores(tmp_path: Path) -> None:
    names = ["faithfulness", "context_precision", "hri"]
    (first, second), _ = score(tmp_path, names, line(1, ground_truth="So."), line("b", contexts=[], answer="made up"))
    assert first == {
        "id": 1,
        "judge": "obeying",
        "model": "mock/obeying",
        "revision": "1",
        "scores": {"faithfulness": 1.0, "context_precision": 1.0, "hri": 0.0},
        "reasons": {},
        "undefined": [],
        "hallucinated": False,
        "details": {
            "faithfulness": {
                "hallucinated": False,
                "claims": [{"text": "supported", "value": 1.0, "start": 0, "end": 1}],
            },
            "context_precision": {"chunks": [{"value": 1.0}]},
        },
    }
    assert (second["id"], second["undefined"]) == ("b", ["context_precision"])
    assert second["scores"] == {"faithfulness": 0.0, "context_precision": None, "hri": 0.5}
    assert second["reasons"]["context_precision"] == "no ground truth"


def test_answers_none_of_which_has_a_context_have_no_faithfulness(tmp_path: Path) -> None:
    names = ["faithfulness", "hri"]
    (first, second), _ = score(tmp_path, names, line(1, contexts=[]), line("b", contexts=[" "], answer="made up"))
    assert first["scores"] == {"faithfulness": None, "hri": None}
    assert second["reasons"]["faithfulness"] == "no context: not defined without one"


def test_what_is_told_of_all(tmp_path: Path) -> None:
    answers = ["supported", "made up", "unreadable", "no opinion", "no"]
    lines, tally = score(tmp_path, ["faithfulness"], *(line(answer, answer=answer) for answer in answers))
    assert [one["scores"]["faithfulness"] for one in lines] == [1, 0, None, None, None]
    assert tally.lines() == [
        "faithfulness: 0.500 (n = 2)",
        "  2 not measured: half a JSON (1); OSError: the disk is gone (1)",
        "  1 undefined: an abstention, which claims nothing",
    ]
    assert tally.measured


def test_of_many_reasons_the_most_frequent_are_told() -> None:
    tally = MeasureTally(["faithfulness"])
    for reason in ["a", "b", "b", "c", "d", "e"]:
        tally.add({"faithfulness": Score(None, reason)})
    assert tally.lines() == [
        "faithfulness: not measured (n = 0)",
        "  6 not measured: b (2); a (1); c (1); 2 other reasons",
    ]
    assert not tally.measured


def test_scores_cannot_take_the_place_of_their_answers(tmp_path: Path) -> None:
    file = written(tmp_path, line())
    for scores, message in ((file, "holds the answers"), (file / "below", "cannot be written")):
        with pytest.raises(PrerequisiteError, match=message):
            asyncio.run(score_file(file, scores, AskedMeasures(["faithfulness"]), Obeying(), Settings(), bool))
    assert file.read_text().startswith('{"id"')


# Answers of anybody's: what is read of a line, and that each problem is named at once.


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
