"""Queries and golden entries against the pages, and what their answers owe."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rag_harness.__main__ import CANNOT_RUN, main
from rag_harness.authoring.kb.embedded_planner import planned
from rag_harness.authoring.kb.page_grammar import compose
from rag_harness.authoring.kb.plan import PlanRequest, briefs, mark_superseded, plan_text
from rag_harness.authoring.kb.plan_checks import NO_FACTS
from rag_harness.authoring.kb.query_checks import wrongly_expected
from rag_harness.authoring.kb.validation import validate
from rag_harness.core.errors import DataError
from rag_harness.frontends.cli import FOUND
from rag_harness.records.expectations import expectations_of, kind_of, known_kinds
from tests.plugin.counting_server import counting_server
from tests.unit.authoring.kb.killed_writer import AT_ONCE
from tests.unit.authoring.kb.small_plan import plan_of
from tests.unit.authoring.kb.test_page_writing import asked_for
from tests.unit.data.kb_builder import Kb, query

# Queries and golden entries against the pages.


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
        "selections: queries.jsonl:1: q_direct_001 selects words that are in no page: 'words of no page'. "
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
    what = "is there with other white space, which is accepted. Copy the quote as it is to silence this."
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
        "queries.jsonl:1: turn 1: colour: no field of a question. A label is in metadata. Mend the entry." in e
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


# What a question demands of its answers, set against its own gold and the documents.

DOCUMENTS = {"returns.md": "# Returns\n\nSend items back within\n45 days.", "club.md": "# Club\n\nA fee of €12."}
TRUTH = "Send it back within 45 days, by 3 June 2026 at the latest."


def said(
    *expect: dict[str, Any], truth: str = TRUTH, answerable: bool = True, documents: Mapping[str, str] = DOCUMENTS
) -> list[str]:
    found, problems = expectations_of(list(expect))
    assert problems == []
    return list(wrongly_expected(found, truth, answerable, documents))


BROKEN: list[tuple[dict[str, Any], str]] = [
    ({"contains": "30 days"}, "contains “30 days”: the ground truth does not keep to it: the nearest is “45 days,”."),
    ({"contains_any": ["30 days"]}, "contains_any [\"30 days\"]: the ground truth does not keep to it: the nearest is"),
    ({"contains_all": ["45", "x9"]}, "contains_all [\"45\", \"x9\"]: the ground truth does not keep to it: “x9” is"),
    ({"equals": "45 days"}, "equals “45 days”: the ground truth does not keep to it: it says “Send it back"),
    ({"one_of": ["45 days"]}, "one_of [\"45 days\"]: the ground truth does not keep to it: it says “Send it back"),
    ({"starts_with": "Yes"}, "starts_with “Yes”: the ground truth does not keep to it: it begins with “Send it"),
    ({"ends_with": "days."}, "ends_with “days.”: the ground truth does not keep to it: it ends with “"),
    ({"regex": "4[6-9]"}, "regex “4[6-9]”: the ground truth does not keep to it: it says “Send it back"),
    ({"not": {"regex": "4[5-9]"}}, "not regex “4[5-9]”: the ground truth does not keep to it: it says “45”."),
    ({"number": 30, "unit": "days"}, "number 30, unit “days”: the ground truth does not keep to it: its numbers with"),
    ({"date": "2026-06-04"}, "date “2026-06-04”: the ground truth does not keep to it: its dates are 3 June 2026."),
    ({"max_words": 3}, "max_words 3: the ground truth does not keep to it: it has 13 words."),
    ({"min_words": 30}, "min_words 30: the ground truth does not keep to it: it has 13 words."),
    ({"max_chars": 9}, "max_chars 9: the ground truth does not keep to it: it has 58 characters."),
    ({"cites": "return.md"}, "cites “return.md”: no document is called 'return.md'. Mend the name."),
    ({"not": {"cites": "old.md"}}, "not cites “old.md”: no document is called 'old.md'. Mend the name."),
    ({"cites_all": ["club.md", "x*.md"]}, "cites_all [\"club.md\", \"x*.md\"]: no document is called 'x*.md'."),
    ({"retrieves": "gone.md"}, "retrieves “gone.md”: no document is called 'gone.md'. Mend the name."),
    ({"context_contains": "fee of €13"}, "context_contains “fee of €13”: no document has these words."),
    ({"declines": True}, "declines: the question has an answer, its ground truth. Mend one of the two."),
    ({"not": {"answers": True}}, "not answers: the question has an answer, its ground truth."),
]  # fmt: skip


@pytest.mark.parametrize(("expectation", "message"), BROKEN, ids=lambda each: str(each)[:40])
def test_an_expectation_that_no_right_answer_keeps(expectation: dict[str, Any], message: str) -> None:
    (found,) = said(expectation)
    assert found.startswith(message)
    assert found.endswith(".")


@pytest.mark.parametrize(
    "expectation",
    [
        {"contains": "45 days"},
        {"not": {"contains": "refund"}},
        {"number": 45, "unit": "days"},
        {"date": "2026-06-03"},
        {"max_words": 13},
        {"cites": "returns.md"},
        {"cites_only": ["ret*.md"]},
        {"not": {"cites": "club.md"}},
        {"context_contains": "within 45 days"},
        {"answers": True},
        {"not": {"declines": True}},
        # Of the form that a pipeline gives to its answers, which a person who writes the truth need not give it.
        {"is_json": True},
        {"links": True},
        {"language": "de"},
        # Of what stands beside the answer: a ground truth has none of it.
        {"cited": True},
        {"max_ms": 1},
        {"finishes": "stop"},
    ],
    ids=str,
)
def test_an_expectation_that_a_right_answer_can_keep(expectation: dict[str, Any]) -> None:
    assert said(expectation) == []


def test_a_question_that_no_document_answers_is_declined() -> None:
    for each in ({"answers": True}, {"not": {"declines": True}}):
        (found,) = said(each, truth="Nothing is said of it.", answerable=False)
        assert found.endswith("no document answers the question, so a right answer declines. Mend one of the two.")
    assert said({"declines": True}, truth="Nothing is said of it.", answerable=False) == []


def test_without_a_ground_truth_words_are_not_looked_at() -> None:
    assert said({"contains": "30 days"}, {"declines": True}, truth=" ") == []


def test_words_that_a_document_has_may_be_forbidden_in_a_prompt() -> None:
    assert said({"not": {"context_contains": "fee of €12"}}) == []


def test_words_are_not_missed_where_a_document_could_not_be_read() -> None:
    assert said({"context_contains": "a cake"}, documents={"a.md": "tea", "b.pdf": ""}) == []
    assert len(said({"context_contains": "a cake"}, documents={"a.md": "tea"})) == 1


def test_which_kinds_are_set_against_the_ground_truth() -> None:
    assert [kind for kind in known_kinds() if kind_of(kind).of_words] == [
        "contains", "contains_all", "contains_any", "date", "ends_with", "equals", "max_chars", "max_sentences",
        "max_words", "min_chars", "min_words", "number", "one_of", "regex", "rouge_l", "starts_with",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("demand", "truth", "why"),
    [
        ({"rubric": "says that a lamp can be returned within 60 days"}, "A lamp can be returned within 45 days.", "60"),
        ({"rubric": "must not say that a lamp can be returned"}, "A lamp can be returned within 45 days.", "itself"),
        ({"not": {"rubric": "says that a lamp can be returned"}}, "A lamp can be returned within 45 days.", "itself"),
        ({"rubric": "says that a lamp can be returned within 45 days"}, "A lamp can be returned within 45 days.", ""),
        ({"rubric": "says that the sender pays for the parcel"}, "A lamp can be returned within 45 days.", ""),
        ({"rubric": "must not say that refunds take a month"}, "A lamp can be returned within 45 days.", ""),
        ({"rubric": "is polite about 60 days"}, "A lamp can be returned within 45 days.", ""),
        ({"rubric": "says that a lamp can be returned within 60 days"}, "", ""),
    ],
)
def test_a_rubric_that_the_ground_truth_fails_is_named(demand: dict[str, Any], truth: str, why: str) -> None:
    found = said(demand, truth=truth)
    assert [why in each for each in found] == [True] * bool(why), found


# Queries whose answer a superseded page gives otherwise are found by their evidence.

# Queries whose answer a superseded page gives otherwise are found by their evidence.

SHIPPED = Path(__file__).parents[4] / "data" / "kb"
OLD, NEW = "Return it within 30 days.", "Return it within 45 days."
PLAN = {
    "pages": [{"id": "new", "filename": "new.md"}, {"id": "old", "filename": "old.md"}],
    "version_pairs": [
        {"outdated": "old", "current": "new", "conflicts": [{"outdated_statement": OLD, "current_statement": NEW}]}
    ],
}


def planned_kb(folder: Path, *queries: dict[str, Any], plan: Any = PLAN) -> Path:
    (folder / "structure.json").write_text(json.dumps(plan))
    (folder / "queries.jsonl").write_text("".join(json.dumps(query) + "\n" for query in queries))
    return folder


def quoting(text: str, filename: str = "new.md", **metadata: Any) -> dict[str, Any]:
    return {"query_id": "q1", "evidence": [{"filename": filename, "quote": text}], "metadata": metadata}


@pytest.mark.parametrize("quote", [NEW, f"So: **{NEW}** Or not.", "within 45\ndays."])
def test_a_quote_of_the_current_statement_is_marked(tmp_path: Path, quote: str) -> None:
    found = mark_superseded(planned_kb(tmp_path, quoting(quote, topic="returns", version_pair="stale")))
    assert found.marked == 1
    assert json.loads(found.lines[0])["metadata"] == {
        "topic": "returns",
        "version_pair": "old",
        "superseded": [{"outdated_statement": OLD, "current_statement": NEW}],
    }


@pytest.mark.parametrize(
    "query",
    [quoting(NEW, "other.md"), quoting("Pay in cash."), quoting(" "), {"query_id": "q2"}, quoting("", superseded=[1])],
)
def test_what_asks_for_something_else_is_kept_as_it_is(tmp_path: Path, query: dict[str, Any]) -> None:
    found = mark_superseded(planned_kb(tmp_path, query))
    assert found.marked == 0
    assert "superseded" not in json.loads(found.lines[0]).get("metadata", {})


def test_the_shipped_queries_that_turn_on_a_version(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    marked = tmp_path / "queries.jsonl"
    assert main(["kb", "superseded", str(SHIPPED), "-o", str(marked)]) == 0
    assert capsys.readouterr().out.startswith("23 of 200 queries")
    queries = [json.loads(line) for line in marked.read_text().splitlines()]
    assert all(query["metadata"]["version_conflict"] for query in queries if "superseded" in query["metadata"])


@pytest.mark.parametrize(
    ("plan", "queries", "message"),
    [
        ({"pages": []}, "", "no version_pairs"),
        ("nonsense", "", "expected an object"),
        (PLAN, "{", "queries.jsonl:1: no JSON"),
        (PLAN, "7\n", "queries.jsonl:1: no query"),
        (PLAN, '{"metadata": 3}\n', "queries.jsonl:1: no query"),
    ],
)
def test_what_cannot_be_read_says_where(tmp_path: Path, plan: Any, queries: str, message: str) -> None:
    folder = planned_kb(tmp_path, plan=plan)
    (folder / "queries.jsonl").write_text(queries)
    with pytest.raises(DataError, match=message):
        mark_superseded(folder)


@pytest.mark.parametrize(("name", "said"), [("q.csv", "is a table"), ("q.json", "is a JSON array")])
def test_a_table_is_told_with_what_makes_lines_of_it(tmp_path: Path, name: str, said: str) -> None:
    file = planned_kb(tmp_path) / name
    file.write_text("question\nWhy?\n" if name.endswith("csv") else "[{}]")
    with pytest.raises(DataError, match=f"{said}.*rag-harness queries import .*{name} -o queries.jsonl"):
        mark_superseded(tmp_path, file)


def test_without_queries_it_says_so(tmp_path: Path) -> None:
    (planned_kb(tmp_path) / "queries.jsonl").unlink()
    assert main(["kb", "superseded", str(tmp_path), "-o", str(tmp_path / "out.jsonl")]) == CANNOT_RUN


def test_turns_are_marked_where_they_stand(tmp_path: Path) -> None:
    turns = [{"query": "How?", **quoting("Pay in cash.", kind="a")}, {"query": "When?", **quoting(NEW, kind="b")}]
    turns = [{key: value for key, value in turn.items() if key != "query_id"} for turn in turns]
    talk = {"conversation": "c1", "metadata": {"part": "fit"}, "turns": turns}
    found = mark_superseded(planned_kb(tmp_path, talk, quoting(NEW)))
    assert (found.marked, found.queries) == (2, 3)
    whole = json.loads(found.lines[0])
    assert [sorted(turn["metadata"]) for turn in whole["turns"]] == [["kind"], ["kind", "superseded", "version_pair"]]
    assert whole["metadata"] == {"part": "fit"}
    assert main(["kb", "superseded", str(tmp_path), "-o", str(tmp_path / "out.jsonl")]) == 0
    bad = planned_kb(tmp_path, {"conversation": "c1", "turns": 3})
    with pytest.raises(DataError, match=r"queries\.jsonl:1: no conversation: turns: a list of objects"):
        mark_superseded(bad)


# A run that is killed goes on where it was: no page that was written is paid for again.

KILLS = 3


def test_killed_three_times_no_page_that_was_written_is_asked_for_again(tmp_path: Path) -> None:
    plan = planned(PlanRequest("retail support", 24))
    (tmp_path / "warm").mkdir()
    (tmp_path / "structure.json").write_text(plan_text(plan), encoding="utf-8")
    good = {brief.page.filename: compose(brief, 0) for brief in briefs(plan)}
    others = {brief.page.filename: compose(brief, 0) for brief in briefs(plan_of())}
    asked: Counter[str] = Counter()

    def reply(body: Any) -> str:
        name = asked_for(body["messages"])
        asked[name] += name in good
        return {**others, **good}[name]

    with counting_server(delay=0.05, reply=reply) as server:
        command = [sys.executable, "-m", "tests.unit.authoring.kb.killed_writer", str(tmp_path), server.url, str(KILLS)]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    said = json.loads(ran.stdout.splitlines()[-1])
    assert said["status"] == 0
    assert [len(seen) for seen in said["seen"]] == sorted(len(seen) for seen in said["seen"])
    assert said["seen"][0]
    # What was on the wire, or being checked, when the process died may be asked for once more; what was on disk, never.
    assert {asked[name] for name in said["seen"][0]} == {1}
    assert len(good) <= asked.total() <= len(good) + KILLS * 2 * AT_ONCE
    assert max(asked.values()) <= 1 + KILLS
    assert validate(tmp_path / "kb").ok
    assert not list((tmp_path / "kb").glob(".*"))
