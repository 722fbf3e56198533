"""Nested forms of well-known files become questions with their gold; what of them is no gold is counted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rag_harness.core.types import Evidence
from tests.unit.authoring.importing.conftest import Importing

RETURNS = "You can return a lamp within 45 days of delivery."
FEES = "Express delivery costs €9.90 in Zone 1 and takes one day."
QUOTE = Evidence("returns.md", "You can return a lamp within **45 days** of delivery.")
ASKED = "How long can I return a lamp?"


def squad(is_published: bool) -> Any:
    if is_published:
        answers = [{"text": "45 days", "answer_start": 29}, {"text": "within 45 days", "answer_start": 22}]
        asked = [
            {"id": "1", "question": ASKED, "answers": answers, "is_impossible": False},
            {"id": "2", "question": "Who won?", "answers": [], "is_impossible": True},
        ]
        return {"version": "v2.0", "data": [{"title": "Shop", "paragraphs": [{"context": RETURNS, "qas": asked}]}]}
    found = {"text": ["45 days", "within 45 days"], "answer_start": [29, 22]}
    above = {"title": "Shop", "context": RETURNS}
    return [
        {"id": "1", "question": ASKED, "answers": found, **above},
        {"id": "2", "question": "Who won?", "answers": {"text": [], "answer_start": []}, **above},
    ]


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("is_published", [True, False])
def test_squad_as_published_and_as_on_the_hub(importing: Importing, is_published: bool, indent: int | None) -> None:
    found = importing("squad.json", json.dumps(squad(is_published), indent=indent))
    first, second = found.cases
    assert (first.query.query_id, first.ground_truth, first.evidence) == ("1", "45 days", (QUOTE,))
    assert (second.answerable, second.evidence, second.query_type) == (False, (), "negative")
    assert found.lines[1]["metadata"]["paragraph_without_answer"] == RETURNS
    assert {line["metadata"]["title"] for line in found.lines} == {"Shop"}
    assert "1 × answer_start: it stands beside the ground truth" in found.said
    assert "1 × further right answers" in found.said
    assert ("1 × version: it stands beside the records" in found.said) == is_published


@pytest.mark.parametrize(
    ("context", "facts"),
    [
        ([["Returns", [RETURNS, " Bye."]], ["Rugs", ["No."]]], [["Returns", 0]]),
        ({"title": ["Returns", "Rugs"], "sentences": [[RETURNS], ["No."]]}, {"title": ["Returns"], "sent_id": [0]}),
    ],
)
def test_hotpot_has_its_supporting_sentences_as_evidence(importing: Importing, context: Any, facts: Any) -> None:
    row = {"_id": "h", "question": ASKED, "answer": "45 days", "context": context, "supporting_facts": facts}
    found = importing("hotpot.json", json.dumps([row]))
    assert (found.cases[0].evidence, found.status) == ((QUOTE,), 0)
    assert "1 × paragraphs that do not support the answer" in found.said


def test_what_hotpot_does_not_have_is_named(importing: Importing) -> None:
    row = {"question": ASKED, "answer": "45 days", "context": [["Rugs", ["No."]]]}
    found = importing("hotpot.json", json.dumps([row]))
    assert (found.status, "1 × context: items that are no text" in found.said) == (1, True)
    found = importing("hotpot.json", json.dumps([{**row, "supporting_facts": [["Rugs", 7], ["Gone", 0]]}]))
    assert (found.status, "2 × a supporting fact that no paragraph" in found.said) == (1, True)


def test_musique_has_its_supporting_paragraphs_as_evidence(importing: Importing) -> None:
    paragraphs = [
        {"idx": 0, "title": "Returns", "paragraph_text": RETURNS, "is_supporting": True},
        {"idx": 1, "title": "Rugs", "paragraph_text": FEES, "is_supporting": False},
    ]
    row = {"id": "2hop", "question": ASKED, "answer": "45 days", "answerable": True, "paragraphs": paragraphs}
    found = importing("musique.jsonl", json.dumps(row))
    assert found.cases[0].evidence == (QUOTE,)


def test_a_row_of_mlflow(importing: Importing) -> None:
    expected = {
        "expected_response": "45 days",
        "expected_facts": ["the period is 45 days"],
        "guidelines": ["Is polite"],
        "expected_retrieved_context": [{"doc_uri": "returns.md"}],
        "expected_tone": "plain",
    }
    rows = [
        {"inputs": {"question": ASKED, "locale": "de"}, "expectations": expected, "tags": {"team": "shop"}},
        {"inputs": {"messages": [{"role": "user", "content": "Fee?"}]}, "expectations": {"expected_response": "9.90"}},
    ]
    found = importing("mlflow.json", json.dumps(rows))
    line = found.lines[0]
    assert (line["query"], line["inputs"], line["ground_truth"]) == (ASKED, {"locale": "de"}, "45 days")
    assert line["expect"] == [{"rubric": "The answer says: the period is 45 days"}, {"rubric": "Is polite"}]
    assert line["context_reference"] == ["returns.md"]
    assert line["metadata"] == {"expected_tone": "plain", "tags": {"team": "shop"}, "imported_from": "csv"}
    assert (found.lines[1]["query"], found.lines[1]["ground_truth"]) == ("Fee?", "9.90")


def test_a_task_of_label_studio(importing: Importing) -> None:
    said = [
        {"id": "z", "from_name": "answer", "to_name": "q", "type": "textarea", "value": {"text": ["45 days"]}},
        {"from_name": "ease", "type": "choices", "value": {"choices": ["easy"]}},
        {"from_name": "question", "type": "rating", "value": {"rating": 4}},
    ]
    kept = {"id": 7, "completed_by": 1, "result": said, "was_cancelled": False}
    annotations = [{"was_cancelled": True, "result": []}, kept, {**kept, "result": []}]
    task = {"id": 1, "data": {"question": ASKED, "context": RETURNS}, "annotations": annotations, "project": 3}
    found = importing("tasks.json", json.dumps([task]))
    assert (found.cases[0].query.query_id, found.cases[0].ground_truth) == ("1", "45 days")
    assert found.cases[0].evidence == (QUOTE,)
    labels = found.lines[0]["metadata"]
    assert (labels["ease"], labels["annotation.question"], labels["project"]) == ("easy", 4, 3)
    for text in ("annotations.result: id, to_name", "annotations that were cancelled", "further annotations of one"):
        assert f"1 × {text}" in found.said


RESPONDED = [{"value": "45 days", "user_id": "u"}]
RECORDS: list[dict[str, Any]] = [
    {
        "fields": {"question": ASKED},
        "responses": {"answer": RESPONDED},
        "suggestions": {"answer": {"value": "44", "agent": "m"}},
    },
    {
        "fields": {"question": ASKED},
        "responses": [
            {"user_id": "v", "status": "discarded", "values": {"answer": {"value": "1"}}},
            {"user_id": "u", "status": "submitted", "values": {"answer": {"value": "45 days"}}},
        ],
        "suggestions": [{"question_name": "answer", "value": "44"}],
    },
    {"question": ASKED, "answer.responses": ["45 days"], "answer.suggestion": "44"},
]


@pytest.mark.parametrize("record", RECORDS)
def test_a_record_of_argilla_has_what_people_responded_as_gold(importing: Importing, record: Any) -> None:
    found = importing("records.json", json.dumps([record]))
    (line,) = found.lines
    assert (line["query"], line["ground_truth"]) == (ASKED, "45 days")
    assert line["metadata"]["answer.suggestion"] == "44"
    assert ("responses: user_id" in found.said) == ("responses" in record)


GOLD: list[dict[str, Any]] = [
    {"input": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": ASKED}], "ideal": "45 days"},
    {"input": ASKED, "ideal": ["45 days", "45"]},
    {"query": ASKED, "gt_answer": "45 days", "response": "44", "retrieved_context": [{"doc_id": "1", "text": FEES}]},
    {"qid": "1", "query": ASKED, "generation_gt": ["45 days", "45"], "retrieval_gt": [["returns.md"], ["fees.md"]]},
    {"question": ASKED, "answer": "44", "ground_truths": ["45 days"]},
    {"user_input": ASKED, "response": "44", "Reference Answer": "45 days"},
    {"input": ASKED, "actual_output": "44", "expectedOutput": "45 days"},
    {"inputs": {"question": ASKED}, "reference_outputs": {"answer": "45 days"}},
    {"input": {"question": ASKED}, "expectedOutput": {"answer": "45 days"}, "datasetId": "d"},
    {"id": "e", "input": {"question": ASKED}, "output": {"answer": "45 days"}, "metadata": {}},
    {"query": ASKED, "reference_contexts": [RETURNS], "reference_answer": "45 days"},
    {"question": ASKED, "answers": [{"text": "45 days", "start": 3}]},
    {"Question": ASKED, "Expected answer": "45 days"},
    {"messages": [{"role": "user", "content": ASKED}], "ideal": "45 days"},
]


@pytest.mark.parametrize("name", ["q.json", "q.jsonl"])
@pytest.mark.parametrize("row", GOLD)
def test_a_ground_truth_is_found_under_any_of_its_names(importing: Importing, row: dict[str, Any], name: str) -> None:
    found = importing(name, json.dumps(row))
    (line,) = found.lines
    assert (line["query"], line["ground_truth"]) == (ASKED, "45 days")
    several = [each for key in ("ideal", "generation_gt") if isinstance(each := row.get(key), list)]
    assert ("further right answers" in found.said) == bool(several)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"paragraphs": [{"context": RETURNS, "qas": []}]}, "1 × a record that holds no question"),
        ({"paragraphs": [{"context": RETURNS, "qas": [7]}]}, "1 × a record without a question"),
        ({"question": ASKED, "answers": {"text": None, "answer_start": None}}, "answers is an object with 'text'"),
        ({"data": {"question": ASKED}, "annotations": [None, {"result": None}]}, "1 question"),
        ({"fields": {"question": ASKED}, "responses": None, "suggestions": None}, "1 question"),
        ({"question": ASKED, "paragraphs": [{"paragraph_text": None, "is_supporting": 1}]}, "1 × evidence: items"),
        ({"inputs": {"a": "b", "c": "d"}, "expectations": {}}, "1 × a record without a question"),
        ({"question": ASKED, "context": [["t", [None]]], "supporting_facts": [["t", 0], [1, "x"]]}, "2 × a supporting"),
    ],
)
def test_what_is_broken_in_a_form_is_named(importing: Importing, row: dict[str, Any], said: str) -> None:
    text = json.dumps([row, {"question": "Why?"}])
    found = importing("q.json", text if said != "1 question" else json.dumps([row]))
    assert said in found.said


def test_ids_of_passages_are_gold_pages(importing: Importing) -> None:
    found = importing("q.json", json.dumps([GOLD[3]]))
    assert found.cases[0].context_reference == ("returns.md", "delivery/fees.md")
