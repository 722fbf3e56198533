"""Queries and golden entries against the pages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rag_harness.__main__ import main
from rag_harness.authoring.kb.plan_checks import NO_FACTS
from rag_harness.core.errors import DataError
from rag_harness.frontends.cli import FOUND
from tests.unit.data.kb_builder import Kb, query


@pytest.fixture
def kb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kb:
    monkeypatch.setenv("RAG_MERMAID_MODULES", "/nowhere")
    return Kb(tmp_path / "kb")


def quote(text: str, filename: str = "returns.md") -> dict[str, Any]:
    return {"evidence": [{"filename": filename, "quote": text}], "context_reference": [filename]}


def hop(**more: Any) -> dict[str, Any]:
    return query(9, query_id="q_multi_hop_001", query_type="multi_hop", **more)


def negative(**more: Any) -> dict[str, Any]:
    bare: dict[str, Any] = {"evidence": [], "context_reference": []}
    return query(8, query_id="q_negative_001", query_type="negative", **(bare | more))


BOTH = ["returns.md", "shipping.md"]


def test_a_selection_may_have_other_white_space(kb: Kb) -> None:
    kb.ask(query(inputs={"selected_text": "The label\n  costs €3.50."}))
    report = kb.validate()
    assert [each for each in report.findings if "selects" in str(each)] == []
    assert next(check.checked for check in report.checks if check.name == "selections") == "1 selections"


def test_sound_questions(kb: Kb) -> None:
    kb.planned["queries"] = {"direct": 1, "multi_hop": 1, "negative": 1}
    kb.ask(query(), hop(context_reference=BOTH), negative())
    kb.expect({"expected_document_id": "returns.md#return-fees", "evidence": "The label costs €3.50."})
    report = kb.validate()
    assert report.findings == []
    assert not [check.name for check in report.checks if check.skipped not in ("", NO_FACTS)]


def test_a_type_of_ones_own_is_noted_until_it_is_named(kb: Kb, monkeypatch: pytest.MonkeyPatch) -> None:
    kb.ask(query(query_type="table"), query(2, query_type="table"), query(3, query_type="negtive"))
    types = [each.line() for each in kb.validate().findings if each.check == "types"]
    assert [each.partition("queries.jsonl:")[2].partition(",")[0] for each in types] == [
        "1: note: q_direct_001 is 'table'",
        "3: q_direct_003: query_type 'negtive' is not known. Did you mean 'negative'? Known: direct",
    ]
    monkeypatch.chdir(kb.folder.parent)
    command = ["kb", "validate", str(kb.folder), "--queries", "queries.jsonl"]
    Path("pytest.ini").write_text("[pytest]\nrag_query_types = table\n")
    assert main(command) == FOUND
    assert main([*command, "--query-types=table, negtive"]) == 0
    Path("pytest.ini").unlink()
    Path("pyproject.toml").write_text('[tool.pytest.ini_options]\nrag_query_types = ["table", "negtive"]\n')
    assert main(command) == 0


CASES: dict[str, tuple[list[dict[str, Any]], str]] = {
    "comparison": (
        [query(query_id="q_comparison_001", query_type="comparison", context_reference=["returns.md"])],
        "multi-hop: queries.jsonl:1: q_comparison_001 is comparison, but context_reference names 1 page(s). "
        "Name all it needs.",
    ),
    "selection": (
        [query(inputs={"selected_text": "words of no page"})],
        "selections: queries.jsonl:1: q_direct_001 selects words that stand in no page: 'words of no page'. "
        "Copy them from one page.",
    ),
    "empty selection": (
        [query(inputs={"selected_text": " \n"})],
        "selections: queries.jsonl:1: q_direct_001 has a selected_text without words. Write it, or leave it out.",
    ),
    "quote": (
        [query(**quote("The label costs €4.50."))],
        "quotes: queries.jsonl:1: quote 'The label costs €4.50.' is not in returns.md. "
        "The nearest there is 'The label costs €3.50.'. Copy the words of the page.",
    ),
    "outdated": (
        [query(**quote("Send items back within 30 days.", "returns-2024.md"))],
        "direct: queries.jsonl:1: q_direct_001 is direct, but returns-2024.md is an outdated page. "
        "Ask about a current one.",
    ),
    "duplicate id": (
        [query(), query(query="Another?")],
        "queries: queries.jsonl:2: query_id 'q_direct_001' stands already on line 1. Give it another.",
    ),
    "gone": (
        [query(context_reference=["refunds.md"])],
        "references: queries.jsonl:1: q_direct_001 refers to 'refunds.md': no such file in KB. "
        "The nearest is 'returns.md'. Mend the reference.",
    ),
    "outside": (
        [query(context_reference=["../../etc/passwd"])],
        "references: queries.jsonl:1: q_direct_001 refers to '../../etc/passwd': refused: the name leads out of KB. "
        "Name a file inside it. Mend the reference.",
    ),
    "one hop": (
        [hop()],
        "multi-hop: queries.jsonl:1: q_multi_hop_001 is multi_hop, but context_reference names 1 page(s). "
        "Name all it needs.",
    ),
    "unlisted hop": (
        [hop(context_reference=["returns-2024.md", "shipping.md"])],
        "multi-hop: queries.jsonl:1: q_multi_hop_001 quotes returns.md, which its context_reference does not name. "
        "Add it there.",
    ),
    "negative with evidence": (
        [negative(evidence=query()["evidence"])],
        "negative: queries.jsonl:1: q_negative_001 is negative, but has 1 piece of evidence. "
        "Remove it, or the type is wrong.",
    ),
    "negative with gold": (
        [negative(context_reference=["returns.md"])],
        "negative: queries.jsonl:1: q_negative_001 is negative, but context_reference names returns.md. "
        "Name a page that tempts in metadata.",
    ),
    "unknown field": (
        [query(answer="x")],
        "queries: queries.jsonl:1: answer: Extra inputs are not permitted. Mend the entry.",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_fault_in_the_queries(kb: Kb, case: str) -> None:
    lines, said = CASES[case]
    kb.ask(*lines)
    assert kb.errors() == [said]


@pytest.mark.parametrize(
    "name", ["../kb/returns.md", "/etc/passwd", "..\\returns.md", "C:\\returns.md", "sub/../../x.md"]
)
def test_no_name_leads_out_of_the_folder(kb: Kb, name: str) -> None:
    kb.ask(query(context_reference=[name]))
    said = "refused: the name leads out of KB. Name a file inside it. Mend the reference."
    assert kb.errors() == [f"references: queries.jsonl:1: q_direct_001 refers to {name!r}: {said}"]


def test_other_white_space_is_accepted_and_said(kb: Kb) -> None:
    kb.ask(query(**quote("The label\n  costs\u00a0€3.50.")))
    assert kb.validate().ok
    what = "stands there with other white space, which is accepted. Copy the quote as it is to silence this."
    shown = repr("The label\n  costs\u00a0€3.50.")
    assert kb.notes() == [f"quotes: queries.jsonl:1: note: quote {shown} of returns.md {what}"]


def test_invalid_json_on_line_57_leaves_the_other_lines_checked(kb: Kb) -> None:
    kb.ask(*(query(number) for number in range(1, 61)))
    lines = (kb.queries or "").split("\n")
    lines[56] = lines[56][:-1]
    kb.queries = "\n".join(lines)
    column = len(lines[56]) + 1
    said = f"invalid JSON at column {column}: Expecting ',' delimiter. Mend the line."
    assert kb.errors() == [f"queries: queries.jsonl:57: {said}"]
    assert next(check for check in kb.validate().checks if check.name == "queries").checked == "59 queries"


def test_an_empty_file_of_queries(kb: Kb) -> None:
    kb.queries = "\n\n"
    said = "the file holds no query. Each line is an object with query_id and query."
    assert kb.errors() == [f"queries: queries.jsonl: {said}"]


def test_the_distribution_is_the_plans(kb: Kb) -> None:
    kb.planned["queries"] = {"direct": 2, "negative": 0}
    kb.ask(query(), negative())
    assert kb.errors() == [
        "distribution: queries.jsonl: 1 direct queries, planned are 2. Add, drop, or replan.",
        "distribution: queries.jsonl: 1 negative queries, planned are 0. Add, drop, or replan.",
    ]


def test_what_is_worth_a_note(kb: Kb) -> None:
    kb.plan = None
    kb.pages["lonely.md"] = "# Lonely\n"
    bare = query(1, evidence=[])
    kb.ask(bare, bare | {"query_id": "q2"}, hop(context_reference=["lonely.md", "returns.md"]))
    assert kb.notes() == [
        "queries: queries.jsonl:2: note: q2 asks the same words as line 1.",
        "direct: queries.jsonl:1: note: 2 of 2 direct queries have no evidence, the first is q_direct_001. "
        "Without a quote nothing proves the answer.",
        "multi-hop: queries.jsonl:3: note: q_multi_hop_001 needs lonely.md, returns.md, which no links connect.",
    ]
    direct = next(check for check in kb.validate().checks if check.name == "direct")
    assert direct.how == "current pages are not told from outdated ones: there is no structure.json"


GOLDEN = {
    "returns.md#Return-Window": "the anchor is 'return-window', and case counts.",
    "returns.md#return-fee": "returns.md has no heading with the anchor 'return-fee'. The nearest is 'return-fees'.",
    "refunds.md": "no such file in KB. The nearest is 'returns.md'.",
    "../../etc/passwd": "refused: the name leads out of KB. Name a file inside it.",
}


@pytest.mark.parametrize("expected", GOLDEN)
def test_a_golden_entry_that_names_nothing(kb: Kb, expected: str) -> None:
    kb.expect({"expected_document_id": "returns.md"}, {"query": "other?", "expected_document_id": expected})
    said = f"expected_document_id {expected!r}: {GOLDEN[expected]} Mend the entry."
    assert kb.errors() == [f"golden: golden.json:7: {said}"]


def test_golden_quotes_and_chunks(kb: Kb) -> None:
    kb.expect(
        {"expected_document_id": "returns.md#chunk_3", "evidence": "The label costs  €3.50."},
        {"query": "b?", "expected_document_id": ["shipping.md", "returns.md"], "evidence": ["The label costs €3.50."]},
        {"query": "c?", "expected_document_id": "shipping.md", "evidence": ["Nowhere."]},
    )
    assert kb.errors() == [
        "golden: golden.json:19: quote 'Nowhere.' is not in shipping.md. Copy the words of the page."
    ]
    assert len(kb.notes()) == 1
    golden = next(check for check in kb.validate().checks if check.name == "golden")
    assert golden.how == "1 chunks are named by number, which only a run with its chunk settings can check"


def test_a_golden_file_that_cannot_be_read(kb: Kb) -> None:
    kb.golden = '[\n{"query": 1},\n]'
    [error] = kb.errors()
    assert error.startswith("golden: golden.json:")
    kb.golden = json.dumps([{"query": "a?"}])
    assert all(error.startswith("golden: golden.json: entry 1 ('a?'): ") for error in kb.errors())
    assert kb.errors()


def test_expectations_are_looked_at_with_file_and_line(kb: Kb) -> None:
    kb.ask(
        query(expect=[{"contains": "€3.50"}, {"cites": "returns.md"}, {"context_contains": "label costs"}]),
        query(2, expect=[{"contians": "€3.50"}, {"max_words": -1}, {"cites": "retruns.md"}]),
        query(3, expect=[{"number": 4.5}]),
        negative(expect=[{"answers": True}]),
        query(4, expect="contains"),
    )
    assert [each for each in kb.errors() if each.startswith("expect")] == [
        "expectations: queries.jsonl:2: q_direct_002: expect: 0: Unknown kind of expectation 'contians'. Did you mean "
        "'contains'?",
        "expectations: queries.jsonl:2: q_direct_002: expect: 1: max_words: a number of 0 or more was expected; found "
        "-1.",
        "expectations: queries.jsonl:2: q_direct_002: expect: cites “retruns.md”: no document is called 'retruns.md'. "
        "Mend the name.",
        "expectations: queries.jsonl:3: q_direct_003: expect: number 4.5: the ground truth does not keep to it: its "
        "numbers are 3.50. Mend one of the two.",
        "expectations: queries.jsonl:4: q_negative_001: expect: answers: no document answers the question, so a right "
        "answer declines. Mend one of the two.",
        "expectations: queries.jsonl:5: q_direct_004: expect: a list of objects was expected, e.g. [{\"contains\": "
        '"45 days"}]; found "contains".',
    ]  # fmt: skip
    check = next(each for each in kb.validate().checks if each.name == "expectations")
    assert check.checked == "6 expectations"


def test_turns_are_checked_like_questions_and_their_order_is(kb: Kb) -> None:
    turns = [
        {"query": "How long?", "ground_truth": "30 days", "context_reference": ["gone.md"]},
        {"query": "And then?"},
    ]
    kb.planned["queries"] = {"direct": 7}
    kb.ask({"conversation": "c1", "turns": turns}, {"conversation": "c2", "turn": 2, "query": "And lamps?"})
    found = kb.errors()
    assert "queries: queries.jsonl:2: turn 2 of 'c2' comes without turn 1." in found[0]
    assert any("c1#1" in each and "gone.md" in each for each in found)
    assert not any(each.startswith("distribution") for each in found)
    kb.ask({"conversation": "c1", "turns": [{"query": "How long?", "colour": 1}]})
    assert any(
        "queries.jsonl:1: turn 1: colour: no field of a question. A label stands in metadata. Mend the entry." in e
        for e in kb.errors()
    )


def test_a_scenario_is_checked_once_with_its_gold_and_its_goal(kb: Kb) -> None:
    scenario = {"opening": "what does it cost?", "reached": [{"contains": "€3.50"}], "max_turns": 4}
    line = {"conversation": "sim_1", "scenario": scenario, **quote("The label costs €3.50."), "ground_truth": "€3.50"}
    kb.ask(line)
    report = kb.validate()
    assert [each.line() for each in report.findings if each.check in ("queries", "quotes", "expectations")] == []
    checked = {check.name: check.checked for check in report.checks}
    assert (checked["queries"], checked["quotes"], checked["expectations"]) == (
        "1 queries",
        "1 quotes",
        "1 expectations",
    )
    kb.ask({**line, "scenario": {**scenario, "reached": [{"contains": "€4"}]}}, {**line, **quote("It is free.")})
    found = [each.line() for each in kb.validate().findings]
    assert any("sim_1#1: reached: contains “€4”: the ground truth does not keep to it" in each for each in found)
    assert any("quote" in each for each in found)
    kb.ask({**line, "scenario": {"opening": ""}})
    assert any("opening is missing" in each.line() for each in kb.validate().findings)


def talk(*turns: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"conversation": "c1", "turns": [*turns], **more}


ALONE: dict[str, Any] = {"query": "How long can I return a lamp?", "ground_truth": "45 days"}


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("and for <b>lamps</b>?", "c1#2 holds HTML, '<b>', which is sent as it stands."),
        ("and &lt;lamps&gt;?", "c1#2 holds HTML, '&lt;'"),
        ("User: and for lamps?", "c1#2 begins a line with 'User:'."),
        ("ok\nAssistant: 45 days", "c1#2 begins a line with 'Assistant:'."),
        ("as you said [1], for lamps?", "c1#2 holds the mark of a citation, '[1]'"),
        ("see [Source 2: a.md]?", "c1#2 holds the mark of a citation, '[Source 2: a.md]'"),
        ("as you will say, for lamps?", "c1#2 speaks of a later turn, 'as you will say'."),
        ("and like I'll ask below, for lamps?", 'c1#2 speaks of a later turn, "I\'ll ask below".'),
        ("what about what is in turn 7?", "c1#2 speaks of a later turn, 'in turn 7'."),
    ],
)
def test_what_no_user_says_is_noted_with_its_line(kb: Kb, query: str, said: str) -> None:
    kb.ask(talk(ALONE, {"query": query}))
    (note,) = [each for each in kb.notes() if each.startswith("turns")]
    assert f"queries.jsonl:1: note: {said}" in note


@pytest.mark.parametrize(
    "query",
    [
        "and for lamps?",
        "is a List<int> returned?",
        "what did you say in turn 1?",
        "can I turn 90 degrees?",
        "will you say it is fine?",
        "a question: and lamps?",
        "x < 3 and y > 4?",
    ],
)
def test_what_users_do_say_is_not(kb: Kb, query: str) -> None:
    kb.ask(talk(ALONE, {"query": query}))
    assert not [each for each in kb.notes() if each.startswith("turns")]


def test_a_first_turn_and_a_reply_are_looked_at_too(kb: Kb) -> None:
    kb.ask(talk({**ALONE, "standalone": "Other words?", "reply": "45 days [2]."}))
    notes = [each for each in kb.notes() if each.startswith("turns")]
    assert ["'[2]'" in each or "first turn" in each for each in notes] == [True, True]


def test_follow_ups_that_ask_alike_are_no_copies_and_what_stands_alone_is_compared(kb: Kb) -> None:
    price = {"query": "And the price?", "standalone": "What does the lamp cost?"}
    other = {**price, "standalone": "What does the chair cost?"}
    kb.ask(talk(ALONE, price), talk({"query": "Hello?"}, other) | {"conversation": "c2"})
    assert not [each for each in kb.notes() if "same words" in each]
    kb.ask(talk(ALONE, price), {"query_id": "q9", "query": "what does the  LAMP cost?"})
    assert [each for each in kb.notes() if "q9 asks the same words as line 1" in each]


def test_a_follow_up_that_nothing_answers_is_held_by_the_words_that_stand_alone(kb: Kb) -> None:
    said = "A lamp goes back within 45 days."
    page = next(page for page in kb.planned["pages"] if page["filename"] == "returns.md")
    page["facts"] = [{"id": "f1", "kind": "limit", "subject": "lamp", "value": "45 days", "statement": said}]
    bare = {"query": "And within days?", "query_type": "negative"}
    kb.ask(talk(ALONE, bare))
    assert not [each for each in kb.errors() if each.startswith("negative")]
    kb.ask(talk(ALONE, {**bare, "standalone": "Does a lamp go back within 45 days?"}))
    assert [each for each in kb.errors() if each.startswith("negative") and "c1#2 is negative, but" in each]


@pytest.mark.parametrize("number", [101, 200])
def test_a_conversation_of_too_many_turns_is_named_in_either_form(kb: Kb, number: int) -> None:
    turns = [{"query": f"{n}?"} for n in range(number)]
    kb.ask(talk(*turns))
    assert any(f"queries.jsonl:1: turns: {number}; a conversation has 100 at most" in each for each in kb.errors())
    kb.ask(*({"conversation": "c1", "turn": n, **turn} for n, turn in enumerate(turns, 1)))
    (error,) = [each for each in kb.errors() if "turns at most" in each]
    assert "queries.jsonl:101: turn 101 of 'c1': a conversation has 100 turns at most." in error


def test_a_table_of_questions_is_checked_like_lines(kb: Kb) -> None:
    table = kb.folder.parent / "questions.csv"
    quoted = '"[{""filename"": ""returns.md"", ""quote"": ""Nobody wrote this.""}]"'
    table.write_text(f"id,question,documents,evidence,tools\nq1,Why?,returns.md,{quoted},\nq2,Who?,returns.md,,none\n")
    found = {(Path(each.where).name, each.check) for each in kb.validate(queries=table).findings}
    assert found >= {("questions.csv:2", "quotes"), ("questions.csv:3", "queries")}


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("q.json", '[{"query_id": "q1", "query": "Why?"}]', "is a JSON array"),
        ("q.csv", "frage\nWarum?\n", "no column is the question"),
    ],
)
def test_a_file_of_another_form_is_told_with_what_makes_lines_of_it(kb: Kb, name: str, text: str, said: str) -> None:
    file = kb.folder.parent / name
    file.write_text(text)
    with pytest.raises(DataError) as caught:
        kb.validate(queries=file)
    assert said in str(caught.value)
    assert f"rag-harness queries import {file}" in str(caught.value)
