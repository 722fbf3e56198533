"""Scenarios in a file of questions: the turns that they may come to, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rag_harness.core.errors import DataError
from rag_harness.core.types import Case, Expectation, Scenario
from rag_harness.data.golden import read_golden
from rag_harness.data.queries import read_queries
from rag_harness.records.cases import CaseFile, stored_case, write_cases

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


def read(folder: Path, *lines: object, **options: Any) -> list[Case]:
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return read_queries(folder / "queries.jsonl", **options)


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
    with pytest.raises(DataError, match=r"context_reference 'tents.md' is no page of .* Did you mean 'tent.md'"):
        read(tmp_path, TENT, kb_dir=tmp_path / "kb")
