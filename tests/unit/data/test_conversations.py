"""Conversations and scenarios in a file of questions: their turns, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.errors import DataError
from rag_harness.core.types import Case, Expectation, Message, Query, Scenario
from rag_harness.data.golden import read_golden
from rag_harness.data.queries import read_queries
from rag_harness.data.query_lines import (
    DECLINES,
    MOST_TURNS,
    SaidTurn,
    histories,
    order_problems,
    rows_of_line,
    with_turns,
)
from rag_harness.records.cases import CaseFile, stored_case, write_cases

# Conversations in a file of questions: their turns as cases, what was said before each, and what is refused.

LAMP: dict[str, Any] = {"query": "How long can I return a lamp?", "ground_truth": "45 days"}
TURNS: list[dict[str, Any]] = [LAMP, {"query": "And a chair?", "reply": "Also 45 days, dear."}, {"query": "?"}]
WHOLE = {"conversation": "c1", "turns": TURNS}


def turn(number: Any, conversation: Any = "c1", **more: Any) -> dict[str, Any]:
    return {"conversation": conversation, "turn": number, "query": f"question {number}?", "ground_truth": "yes", **more}


def read(folder: Path, *lines: object, **options: Any) -> list[Case]:
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return read_queries(folder / "queries.jsonl", **options)


def test_a_line_a_conversation_and_a_line_a_turn_are_the_same(tmp_path: Path) -> None:
    turns = [{"conversation": "c1", "turn": n, **each} for n, each in enumerate(TURNS, 1)]
    cases = read(tmp_path, WHOLE)
    assert cases == read(tmp_path, *turns)
    assert [case.query.query_id for case in cases] == ["c1#1", "c1#2", "c1#3"]
    assert [case.labels["turn"] for case in cases] == ["1", "2", "3"]
    assert {case.labels["conversation"] for case in cases} == {"c1"}


def test_each_turn_has_what_was_said_before_it(tmp_path: Path) -> None:
    first, second, third = read(tmp_path, WHOLE)
    assert first.query.history == ()
    assert "history" not in first.query.inputs
    assert second.query.history == (Message("user", LAMP["query"]), Message("assistant", "45 days"))
    assert third.query.history[2:] == (Message("user", "And a chair?"), Message("assistant", "Also 45 days, dear."))


def test_what_the_documents_do_not_answer_is_declined_in_the_history(tmp_path: Path) -> None:
    cases = read(tmp_path, turn(1, ground_truth="", query_type="negative"), turn(2))
    assert cases[1].query.history[1].content == DECLINES


def test_metadata_of_a_conversation_are_those_of_its_turns(tmp_path: Path) -> None:
    turns = [{"query": "?", "metadata": {"kind": "first"}}, {"query": "?", "metadata": {"part": "report"}}]
    first, second = read(tmp_path, {"conversation": "c1", "metadata": {"part": "fit"}, "turns": turns})
    assert first.metadata == {"part": "fit", "kind": "first"}
    assert second.metadata["part"] == "report"


def test_questions_of_no_conversation_stand_beside_them(tmp_path: Path) -> None:
    cases = read(tmp_path, {"query_id": "q1", "query": "Alone?"}, WHOLE, {"query_id": "q2", "query": "Alone, too?"})
    assert [case.query.place.get("turn") for case in cases] == [None, "1", "2", "3", None]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([turn(1), turn(1)], "queries.jsonl:2: turn 1 of 'c1' is there twice: already on line 1"),
        ([turn(1), turn(3)], "queries.jsonl:2: turn 3 of 'c1' comes without turn 2"),
        ([turn(2), turn(1)], "queries.jsonl:1: turn 2 of 'c1' comes without turn 1"),
        ([turn(1), turn(2), turn(1)], "queries.jsonl:3: turn 1 of 'c1' comes after turn 2"),
        ([turn(1), turn(1, "c2"), turn(2)], "queries.jsonl:3: conversation 'c1' stands already on line 1"),
        ([WHOLE, {**WHOLE}], "queries.jsonl:2: conversation 'c1' stands already|queries.jsonl:2: turn 1 of 'c1' comes"),
        ([turn(0)], "turn: Input should be greater than or equal to 1"),
        ([turn("1")], "turn: Input should be a valid integer"),
        ([turn(True)], "turn: "),
        ([turn(1, "c 1")], "conversation: "),
        ([turn(1, 7)], "conversation: "),
        ([turn(1, query_id="other")], "query_id is 'other', and that of this turn is 'c1#1'"),
        ([{"query_id": "c1#1", "query": "?"}], "'#' stands only in the ids of turns"),
        ([{"query_id": "q1", "query": "?", "turn": 1}], "conversation is missing"),
        ([{"query_id": "q1", "query": "?", "conversation": "c1"}], "turn is missing"),
        ([{"conversation": "c1", "turns": []}], "turns: a list of objects was expected"),
        ([{"conversation": "c1", "turns": "two"}], "turns: a list of objects was expected"),
        ([{"conversation": "c1", "turns": [LAMP, "And then?"]}], "turns: a list of objects was expected"),
        ([{"turns": [LAMP]}], "turn 1: .*conversation is missing"),
        ([{"conversation": "c1", "query": "?", "turns": [LAMP]}], "query: a conversation has conversation, turns"),
        ([{"conversation": "c1", "turns": [{**LAMP, "turn": 2}]}], "'turn' is in a turn"),
        ([{"conversation": "c1", "turns": [LAMP, {"ground_truth": "yes"}]}], "turn 2: query: Field required"),
        ([{"conversation": "c1", "turns": [LAMP, {"query": "?", "gold": 1}]}], "turn 2: gold: no field of a question."),
        ([{"conversation": "c1", "turns": [LAMP] * (MOST_TURNS + 1)}], f"{MOST_TURNS + 1}; a conversation has"),
        (
            [turn(n) for n in range(1, 200)],
            f"turn {MOST_TURNS + 1} of 'c1': a conversation has {MOST_TURNS} turns at most",
        ),
        ([{"conversation": "c1", "metadata": 3, "turns": [LAMP]}], "metadata: an object was expected"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path: Path, lines: list[object], said: str) -> None:
    with pytest.raises(DataError, match=rf"(?s)queries\.jsonl:\d+: .*{said}" if "queries" not in said else said):
        read(tmp_path, *lines)


def test_a_conversation_with_a_turn_that_cannot_be_used_is_skipped_whole(tmp_path: Path) -> None:
    skipped: list[str] = []
    lines = [turn(1), turn(2, query=""), turn(3), turn(1, "c2"), turn(2, "c2")]
    cases = read(tmp_path, *lines, skipped=skipped)
    assert [case.query.query_id for case in cases] == ["c2#1", "c2#2"]
    assert len(skipped) == 2
    assert "turn 3 of 'c1' comes without turn 2" in skipped[1]


def test_a_query_with_inputs_of_its_own_is_no_turn() -> None:
    assert Query("q", "?", {"conversation": "c", "history": ["a", "b"]}).place == {}
    assert Query("q", "?", {"conversation": "c", "history": ["a", "b"]}).history == ()


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 3)), max_size=8))
def test_turns_are_in_order_or_that_is_said(places: list[tuple[str, int]]) -> None:
    turns = [SaidTurn(n, *each, "?", "!") for n, each in enumerate(places, 1)]
    grouped = [name for n, (name, _) in enumerate(places) if n == 0 or places[n - 1][0] != name]
    numbers = {name: [turn for each, turn in places if each == name] for name in "ab"}
    in_order = all(each == [*range(1, len(each) + 1)] for each in numbers.values())
    assert (not order_problems(turns)) == (in_order and len(grouped) == len({*grouped}))
    if in_order:
        assert [len(each) for each in histories(turns)] == [2 * (turn - 1) for _, turn in places]


def test_the_question_that_stands_alone_is_gold_and_no_pipeline_sees_it(tmp_path: Path) -> None:
    turns = [LAMP, {"query": "And a chair?", "standalone": " How long can I return a chair? "}, {"query": "?"}]
    first, second, third = read(tmp_path, {"conversation": "c1", "turns": turns})
    assert [case.standalone for case in (first, second, third)] == ["", "How long can I return a chair?", ""]
    assert [case.asked_alone for case in (first, second, third)] == [
        LAMP["query"], "How long can I return a chair?", "",
    ]  # fmt: skip
    assert "standalone" not in json.dumps(dict(second.query.inputs))
    with pytest.raises(DataError, match="conversation is missing"):
        read(tmp_path, {"query_id": "q1", "query": "?", "standalone": "How long?"})


_VALUES = st.dictionaries(st.sampled_from("abc"), st.sampled_from(["x", "y", 1, None]), max_size=3)


@given(_VALUES, st.lists(_VALUES, min_size=1, max_size=3), st.booleans())
def test_a_line_is_its_rows_and_rows_are_its_line(
    shared: dict[str, Any], own: list[dict[str, Any]], has_shared: bool
) -> None:
    turns = [{"query": f"{n}?", "metadata": each} for n, each in enumerate(own)]
    line = {"conversation": "c1", "turns": turns, **({"metadata": shared} if has_shared else {})}
    rows = rows_of_line(line)
    assert [row["query_id"] for row in rows] == [f"c1#{n}" for n in range(1, len(own) + 1)]
    assert rows_of_line(with_turns(line, rows)) == [{**row, "metadata": row["metadata"]} for row in rows]
    changed = [{**row, "metadata": {"a": "new"}} for row in rows]
    assert [row["metadata"] for row in rows_of_line(with_turns(line, changed))] == [{"a": "new"}] * len(rows)


def test_rows_of_other_lines_are_themselves() -> None:
    assert rows_of_line({"query_id": "q1", "query": "?"}) == [{"query_id": "q1", "query": "?"}]
    assert rows_of_line(turn(3))[0]["query_id"] == "c1#3"


# Scenarios in a file of questions: the turns that they may come to, and what is refused.

TENT: dict[str, Any] = {
    "conversation": "sim_001",
    "scenario": {
        "persona": "impatient",
        "goal": "knows what three days cost",
        "opening": " can i rent a tent? ",
        "facts": {"how many people": "two adults", "when": "friday to sunday"},
        "asks": ["and the deposit?"],
        "reached": [{"contains": "€36"}, {"number": 120, "within": 1}],
        "max_turns": 3,
    },
    "context_reference": ["tents.md"],
    "evidence": [{"filename": "tents.md", "quote": "€18 and €9"}],
    "expect": [{"max_words": 90}],
    "ground_truth": "€36",
    "metadata": {"topic": "rental"},
}


def test_each_turn_that_it_may_come_to_is_a_case_with_the_gold_of_the_line(tmp_path: Path) -> None:
    cases = read(tmp_path, TENT)
    assert [case.query.query_id for case in cases] == ["sim_001#1", "sim_001#2", "sim_001#3"]
    assert [case.query.text for case in cases] == [
        "can i rent a tent?",
        "(what the simulated user says in turn 2 of sim_001)",
        "(what the simulated user says in turn 3 of sim_001)",
    ]
    assert [case.has_text for case in cases] == [True, False, False]
    for number, case in enumerate(cases, 1):
        assert case.query.inputs == {"conversation": "sim_001", "turn": number}
        assert case.context_reference == ("tents.md",)
        assert case.expect == (Expectation("max_words", 90),)
        assert case.labels["topic"] == "rental"
        # No text is the right answer to each of the turns.
        assert case.ground_truth == ""
        assert case.scenario == Scenario(
            "can i rent a tent?",
            "impatient",
            "knows what three days cost",
            (("how many people", "two adults"), ("when", "friday to sunday")),
            ("and the deposit?",),
            (Expectation("contains", "€36"), Expectation("number", 120, {"within": 1})),
            3,
            "€36",
        )


def test_facts_may_be_a_list_and_most_of_it_may_be_left_out(tmp_path: Path) -> None:
    (first, *others) = read(tmp_path, {"conversation": "s", "scenario": {"opening": "hi", "asks": ["a?"]}})
    assert first.scenario == Scenario("hi", asks=("a?",))
    assert len(others) == 9
    facts = {"conversation": "s", "scenario": {"opening": "hi", "facts": ["two adults"], "max_turns": 1}}
    assert read(tmp_path, facts)[0].scenario == Scenario("hi", facts=(("", "two adults"),), max_turns=1)


def test_cases_are_kept_and_read_with_their_scenario(tmp_path: Path) -> None:
    lines = [TENT, {"conversation": "s", "scenario": {"opening": "hi", "facts": ["a"], "asks": ["b?"]}}]
    cases = read(tmp_path, *lines)
    write_cases(tmp_path, "queries+scenarios", map(stored_case, cases))
    found = CaseFile(tmp_path, "queries+scenarios")
    assert [found[n].case.scenario for n in range(len(cases))] == [case.scenario for case in cases]
    found.close()


def test_recorded_conversations_questions_and_scenarios_may_stand_in_one_file(tmp_path: Path) -> None:
    recorded = {"conversation": "c1", "turns": [{"query": "a?", "ground_truth": "b"}, {"query": "c?"}]}
    cases = read(tmp_path, {"query_id": "q1", "query": "x?"}, TENT, recorded)
    assert [case.query.query_id for case in cases] == ["q1", "sim_001#1", "sim_001#2", "sim_001#3", "c1#1", "c1#2"]
    assert len(cases[-1].query.history) == 2
    assert not any(case.query.history for case in cases[:-1])


def test_no_scenario_is_in_a_golden_set(tmp_path: Path) -> None:
    read(tmp_path, TENT, {"query_id": "q1", "query": "x?", "context_reference": ["a.md"]})
    assert [entry.entry_id for entry in read_golden(tmp_path / "queries.jsonl")] == ["q1"]


def with_(**changes: Any) -> dict[str, Any]:
    scenario = {**TENT["scenario"], **changes}
    return {**TENT, "scenario": {name: value for name, value in scenario.items() if value is not None}}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (with_(opening=None), "scenario: opening is missing"),
        (with_(opening="  "), "scenario: opening is missing"),
        (with_(opening=3), "scenario: opening: a text was expected"),
        (with_(goal="x" * 2001), "scenario: goal has 2,001 characters; at most 2,000"),
        (with_(reached=None, asks=None, max_turns=None), "scenario: nothing says when it is over. Add reached"),
        (with_(max_turns=0), "scenario: max_turns is 0. Write a number from 1 to 20"),
        (with_(max_turns=21), "scenario: max_turns is 21. Write a number from 1 to 20"),
        (with_(max_turns=True), "scenario: max_turns is True"),
        (with_(openings="hi"), "scenario: Unknown key 'openings'. Did you mean 'opening'?"),
        (with_(facts="two"), "scenario: facts: an object of words that ask for a fact"),
        (with_(facts={"people": ""}), "scenario: facts: an object of words that ask for a fact"),
        (with_(asks=[""]), "scenario: asks: a list of texts was expected"),
        (with_(asks=["a?"] * 21), "scenario: asks: at most 20 texts"),
        (with_(reached=[{"contain": "x"}]), "scenario: reached: 0: Unknown kind of expectation 'contain'"),
        (with_(reached=[{"not": {"contains": "x"}}]), "reached: not contains “x”: what an answer does not say"),
        (with_(reached=[{"rubric": "names a price"}]), "it needs a judge, and this is asked while the conversation"),
        ({**TENT, "scenario": "hi"}, "scenario: an object was expected"),
        ({**TENT, "ground_truth": 3}, "ground_truth: a text was expected"),
        ({**TENT, "turns": []}, "Unknown key beside a scenario 'turns'"),
        ({**TENT, "evidense": []}, "Unknown key beside a scenario 'evidense'. Did you mean 'evidence'?"),
        ({**TENT, "evidence": [{"filename": "a.md"}]}, "evidence.0.quote: Field required"),
        ({**TENT, "expect": [{"contain": "x"}]}, "expect: 0: Unknown kind of expectation 'contain'"),
        ({**TENT, "conversation": "a b"}, "conversation: String should match pattern"),
        ({"scenario": TENT["scenario"]}, "conversation is missing"),
    ],
)
def test_what_is_wrong_is_named_once_with_file_and_line(tmp_path: Path, line: object, said: str) -> None:
    with pytest.raises(DataError) as error:
        read(tmp_path, {"query_id": "q1", "query": "?"}, line)
    problems = [each for each in str(error.value).split("\n") if said in each]
    assert len(problems) >= 1, str(error.value)
    assert problems[0].startswith(f"{tmp_path / 'queries.jsonl'}:2: ")


def test_two_conversations_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"queries.jsonl:2: conversation 'sim_001' stands already on line 1"):
        read(tmp_path, TENT, TENT)


def test_a_bad_scenario_may_be_left_out(tmp_path: Path) -> None:
    skipped: list[str] = []
    cases = read(tmp_path, with_(opening=""), {"query_id": "q1", "query": "?"}, skipped=skipped)
    assert [case.query.query_id for case in cases] == ["q1"]
    assert len(skipped) == 1
    assert "opening is missing" in skipped[0]


def test_its_pages_are_looked_up(tmp_path: Path) -> None:
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb" / "tent.md").write_text("# Tents\n")
    with pytest.raises(DataError, match=r"context_reference 'tents.md' is not a page of .* Did you mean 'tent.md'"):
        read(tmp_path, TENT, kb_dir=tmp_path / "kb")
