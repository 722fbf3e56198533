"""Causes as a person reads them."""

from __future__ import annotations

import pytest

from rag_harness.diagnosis.cause_lines import NOTHING_TO_EXPLAIN, cause_in_full, cause_lines
from rag_harness.records.scores import CauseLine


def line(n: int, **changes: object) -> CauseLine:
    usual = {
        "experiment": "e3",
        "query_id": f"q_direct_{n:03}",
        "query": "How long may I return a lamp that I bought in a sale, if the box is gone and so is the receipt? " * 2,
        "hri": 0.5,
        "cause": "Retrieval Miss",
        "detail": "not found",
        "evidence": f"page-{n}.md is in the index, but not among the candidates: “Sale items: 14 days to return.” " * 2,
        "remedy": "hybrid retrieval",
        "repaired_by": "+gold_context",
        "answers": {"+gold_context": {"answer": "14 days", "right": True, "value": 1.0}},
    }
    return CauseLine.model_validate(usual | changes)


def test_the_section_counts_shows_the_worst_ten_and_fits_100_columns() -> None:
    causes = [line(n) for n in range(12)]
    causes.append(line(1, experiment="e1", cause="Noise", detail="right when asked again", repaired_by="+twice"))
    wrong = {"e3": {each.query_id for each in causes[:9]} | {"unexplained"}, "e1": set[str]()}
    text = cause_lines(causes, "output", answers={"e3": 1200, "e1": 40}, wrong=wrong)
    assert text[:5] == [
        "why they failed           e3       e1",
        "Retrieval Miss            12        0",
        "Noise                      0        1",
        "explained        12 of 1,200  1 of 40",
        "of wrong ones        9 of 10        0",
    ]
    assert "e3: the worst 10 of 12: wrong ones first, then by hallucination risk (HRI)" in text
    assert "    Retrieval Miss: not found; +gold_context repairs it" in text
    assert text[-2:] == ["all 13: output/causes.jsonl", f"one whole: rag-harness explain output {causes[0].trial}"]
    assert max(map(len, text)) <= 100


def test_one_cause_of_all_is_said_once() -> None:
    nothing = {"detail": "no retriever", "evidence": "its rows have no context", "hri": None}
    text = cause_lines([line(n, **nothing) for n in range(10)], "output")
    start = text.index(
        "e3: all 10 for one cause; the worst, by words of the ground truth that the answer lacks: e3-q_direct_000"
    )
    assert text[start + 1 :] == [
        "    Retrieval Miss: no retriever; +gold_context repairs it",
        "    its rows have no context",
        "    -> hybrid retrieval",
        "",
        *text[-2:],
    ]


def test_what_would_not_repair_it_is_said_too() -> None:
    vain = {"+gold_context": {"answer": "?", "right": False, "value": 0.0}}
    assert "    Retrieval Miss: not found; +gold_context does not repair it" in cause_lines(
        [line(1, repaired_by="", answers=vain)], "output"
    )


def test_what_is_from_rows_alone_is_marked_with_the_reason() -> None:
    text = cause_lines([line(1, observational=True, limits="no recording", answers={}, repaired_by="")], "output")
    assert "e3: 1 of 1 causes are from rows and gold alone (observational): no recording" in text


def test_without_failures_it_says_so() -> None:
    assert cause_lines([], "output") == [NOTHING_TO_EXPLAIN]


def test_one_cause_whole() -> None:
    answers = {"+twice": {"answer": "", "why": "replayed"}, **line(1).answers}
    text = cause_in_full(line(1, answers=answers, reviewed_cause="Noise", reviewed_by="ada", category="Hallucination"))
    joined = "\n".join(text)
    assert max(map(len, text)) <= 100
    for said in (
        "trial        e3-q_direct_001",
        "cause        Retrieval Miss: not found",
        "repaired by  +gold_context",
        "reviewed     Noise, by ada",
        "tried        +twice: replayed",
        "tried        +gold_context: correct: 14 days",
    ):
        assert said in joined


@pytest.mark.parametrize(("words", "rows"), [(44, 1), (45, 2), (4 * 44, 4), (4 * 44 + 1, 4)])
def test_what_fits_100_columns_is_not_broken(words: int, rows: int) -> None:
    """The label takes 13 of them; four rows at most."""
    text = cause_in_full(line(1, evidence=" ".join("a" * words)))
    first = next(n for n, each in enumerate(text) if each.startswith("evidence"))
    last = next(n for n, each in enumerate(text) if each.startswith("repaired by"))
    assert last - first == rows
    assert len(text[first]) == 100
    assert text[last - 1].endswith(" …") is (words > 4 * 44)
    assert all(each.startswith(" " * 13 + "a") for each in text[first + 1 : last])


def test_what_was_tried_takes_few_rows() -> None:
    answers = {"+twice": {"answer": "", "why": "because " * 60}, "+no_context": {"answer": "so " * 200, "right": False}}
    text = cause_in_full(line(1, answers=answers))
    first, second = (n for n, each in enumerate(text) if each.startswith("tried"))
    assert (second - first, len(text) - second) == (2, 3)
    assert text[second].startswith("tried        +no_context: not correct: so so")


def test_of_many_experiments_forty_failures_are_shown_in_all() -> None:
    causes = [line(number, experiment=f"x{place}") for place in range(10) for number in range(6)]
    text = cause_lines(causes, "output")
    assert sum("the worst 4 of 6" in each for each in text) == 10
    assert sum(each.startswith("  x") for each in text) == 40


def test_a_category_never_stands_beside_a_cause() -> None:
    """It is the study's table by scores; of one trial the cause says what went wrong, by evidence."""
    told = line(1, category="Retrieval Failure", cause="Logic Failure", detail="misread")
    for text in (cause_lines([told], "output"), cause_in_full(told)):
        assert "Retrieval Failure" not in "\n".join(text)
