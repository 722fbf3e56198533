"""Cases that are kept beside rows, and what is damaged in them."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rag_harness.core.errors import DataError
from rag_harness.core.types import Case, ExpectedTool, Query
from rag_harness.evaluation.measures import measure_named
from rag_harness.records.cases import CaseFile, SaidMessage, chat_before, inputs_beside, stored_case, write_cases
from rag_harness.records.expectations import expectations_of
from rag_harness.records.scores import parse_score
from tests.unit.records.test_scores import LINE

# Cases that are kept beside rows, and what is damaged in them.


@pytest.mark.parametrize(
    "damage",
    [
        {"labels": None},
        {"labels": {"a": 1}},
        {"qrels": {"a.md": "x"}},
        {"qrels": {"a.md": True}},
        {"answerable": {}},
        {"case_id": {"a": 1}},
        {"evidence": [{"filename": "a.md", "quote": 7}]},
    ],
)
def test_a_field_of_another_type_is_a_damaged_case(tmp_path: Path, damage: dict[str, object]) -> None:
    write_cases(tmp_path, "data", [stored_case(Case(Query("q1", "How long?"), qrels={"a.md": 1}))])
    file = CaseFile.place(tmp_path, "data")
    file.write_text(json.dumps({**json.loads(file.read_text()), **damage}) + "\n")
    with (
        pytest.raises(DataError, match=r"data.jsonl:1: no case: TypeError"),
        closing(CaseFile(tmp_path, "data")) as cases,
    ):
        _ = cases[0]


@pytest.mark.parametrize("damage", [{"query_id": []}, {"detail": [1]}, {"row": None}, {"reason": {}}, {"judge": 3}])
def test_a_score_with_a_field_of_another_type_is_none(damage: dict[str, object]) -> None:
    assert parse_score(json.dumps({**json.loads(LINE.line()), **damage})) is None


def test_what_a_case_demands_of_its_answers_comes_back_as_it_was_written(tmp_path: Path) -> None:
    raw = [{"not": {"contains": "refund", "case": True}, "weight": 2, "must": True}, {"number": 9, "unit": "days"}]
    (snapshot,) = expectations_of([{"snapshot": True, "case": True}])[0]
    answers = [None, "", "x" * 100_000]
    expected = (*expectations_of(raw)[0], *(replace(snapshot, was=was) for was in answers))
    case = Case(Query("q1", "How long?"), expect=expected)
    write_cases(tmp_path, "data", [stored_case(case), stored_case(Case(Query("q2", "Why?")))])
    lines = [json.loads(line) for line in CaseFile.place(tmp_path, "data").read_text().splitlines()]
    said = [{"snapshot": True, "case": True, **({} if was is None else {"was": was})} for was in answers]
    assert [each.get("expect") for each in lines] == [[{**raw[0], "weight": 2.0}, raw[1], *said], None]
    with closing(CaseFile(tmp_path, "data")) as cases:
        assert [each.case.expect for each in (cases[0], cases[1])] == [case.expect, ()]


def test_the_question_that_stands_alone_is_kept_with_its_case(tmp_path: Path) -> None:
    case = Case(Query("c1#2", "And the price?"), standalone="What does the lamp cost?")
    write_cases(tmp_path, "data", [stored_case(case), stored_case(Case(Query("q2", "Why?")))])
    lines = [json.loads(line) for line in CaseFile.place(tmp_path, "data").read_text().splitlines()]
    assert [each.get("standalone") for each in lines] == ["What does the lamp cost?", None]
    with closing(CaseFile(tmp_path, "data")) as cases:
        assert [each.case.standalone for each in (cases[0], cases[1])] == ["What does the lamp cost?", ""]


def test_a_case_keeps_what_its_metadata_say_in_short(tmp_path: Path) -> None:
    told = {"conversation": "c1", "turn": 2, "history": [{"role": "user", "content": "Hi"}]}
    metadata = {"turn_kind": "correction", "long": ["a", "list"], "part": "fit"}
    write_cases(
        tmp_path, "queries", [stored_case(Case(Query("c1#2", "?", told), ground_truth="No.", metadata=metadata))]
    )
    with closing(CaseFile(tmp_path, "queries")) as cases:
        back = cases[0]
    assert back.case.metadata == {"turn_kind": "correction", "part": "fit"}
    assert back.case.labels == back.labels
    # Measures that ask what a turn is must find it here: tables read their cases from this file.
    assert measure_named("correction").applies(back.case) == ""


def test_the_calls_that_a_case_expects_come_back_and_none_is_not_unsaid(tmp_path: Path) -> None:
    said = (ExpectedTool("price", {"sku": "T-18", "n": [1, None]}), ExpectedTool("page"), ExpectedTool("stop", {}))
    cases = [Case(Query(f"q{n}", "?"), tools=tools) for n, tools in enumerate((said, (), None))]
    write_cases(tmp_path, "data", map(stored_case, cases))
    with closing(CaseFile(tmp_path, "data")) as file:
        assert [file[n].case.tools for n in range(3)] == [said, (), None]
    place = CaseFile.place(tmp_path, "data")
    place.write_text(place.read_text().replace('"price"', "7"))
    with (
        pytest.raises(DataError, match=r"data.jsonl:1: no case: ValueError: tools: call 1: name is missing"),
        closing(CaseFile(tmp_path, "data")) as file,
    ):
        _ = file[0]


# What was said before a turn, of rows that this package wrote and of others.

PLACE = {"conversation": "c1", "turn": 2}
SAID = [{"role": "user", "content": "How long?"}, {"role": "assistant", "content": "Sorry.", "failed": True}]


def test_a_turn_has_what_was_said_before_it_and_which_reply_failed() -> None:
    query = Query("c1#2", "?", {**PLACE, "history": SAID, "plan": "gold"})
    assert chat_before(query) == [SaidMessage("user", "How long?"), SaidMessage("assistant", "Sorry.", failed=True)]
    assert inputs_beside(query) == {"plan": "gold"}


@pytest.mark.parametrize(
    "history", ["a text", [1], [{"role": "user"}], [{"role": 1, "content": "x"}], {"role": "user"}]
)
def test_what_is_no_list_of_messages_stays_an_input(history: Any) -> None:
    query = Query("c1#2", "?", {**PLACE, "history": history})
    assert chat_before(query) == []
    assert inputs_beside(query) == {"history": history}


@pytest.mark.parametrize("inputs", [{"history": SAID}, {"history": SAID, "conversation": "c1"}, {}])
def test_a_query_that_is_no_turn_keeps_all_its_inputs(inputs: dict[str, Any]) -> None:
    assert chat_before(Query("q1", "?", inputs)) == []
    assert inputs_beside(Query("q1", "?", inputs)) == inputs
