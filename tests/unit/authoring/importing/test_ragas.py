"""The documented samples of ragas 0.4 become questions, with evidence in the documents."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest

from rag_harness.core.types import Evidence, ExpectedTool
from tests.unit.authoring.importing.conftest import Importing

# ragas/docs/concepts/components/eval_dataset.md, version 0.4.3, as EvaluationDataset.to_jsonl and .to_csv write it.
SAMPLES: list[dict[str, Any]] = [
    {
        "user_input": "What is the capital of Germany?",
        "retrieved_contexts": ["Berlin is the capital and largest city of Germany."],
        "response": "The capital of Germany is Berlin.",
        "reference": "Berlin",
    },
    {
        "user_input": "Who wrote 'Pride and Prejudice'?",
        "retrieved_contexts": ["'Pride and Prejudice' is a novel by Jane Austen."],
        "response": "'Pride and Prejudice' was written by Jane Austen.",
        "reference": "Jane Austen",
    },
    {
        "user_input": "What's the chemical formula for water?",
        "retrieved_contexts": ["Water has the chemical formula H2O."],
        "response": "The chemical formula for water is H2O.",
        "reference": "H2O",
    },
]
# ragas/docs/concepts/components/eval_sample.md, version 0.4.3.
CONVERSATION = {
    "user_input": [
        {"content": "What's the weather like in New York City today?", "type": "human"},
        {
            "content": "Let me check the current weather in New York City for you.",
            "type": "ai",
            "tool_calls": [{"name": "WeatherAPI", "args": {"location": "New York City"}}],
        },
        {"content": "It's sunny with a temperature of 75°F in New York City.", "type": "tool"},
        {"content": "It's sunny and 75 degrees Fahrenheit in New York City today.", "type": "ai"},
    ],
    "reference": "Provide the current weather in New York City to the user.",
}


def as_csv(rows: list[dict[str, Any]]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, rows[0])
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def as_jsonl(rows: list[dict[str, Any]]) -> str:
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)


@pytest.mark.parametrize(("name", "written"), [("dataset.jsonl", as_jsonl), ("dataset.csv", as_csv)])
def test_the_documented_data_set(importing: Importing, name: str, written: Any) -> None:
    found = importing(name, written(SAMPLES))
    assert [(case.query.text, case.ground_truth) for case in found.cases] == [
        (sample["user_input"], sample["reference"]) for sample in SAMPLES
    ]
    assert found.status == 0
    assert "read as ragas: its fields user_input." in found.said
    assert "3 × answers and what they were made of" in found.said
    assert len({case.query.query_id for case in found.cases}) == 3
    assert all("reviewed" not in line["metadata"] for line in found.lines)


def test_the_documented_conversation_has_one_question(importing: Importing) -> None:
    found = importing("samples.jsonl", as_jsonl([CONVERSATION]))
    (case,) = found.cases
    assert case.query.text == "What's the weather like in New York City today?"
    assert case.ground_truth == CONVERSATION["reference"]
    assert "1 × messages of the system or of tools" in found.said
    assert "1 × calls of tools in a conversation" in found.said


@pytest.mark.parametrize(("name", "written"), [("samples.jsonl", as_jsonl), ("samples.csv", as_csv)])
def test_reference_tool_calls_are_the_tools_of_the_last_question(importing: Importing, name: str, written: Any) -> None:
    calls = [{"name": "WeatherAPI", "args": {"location": "New York City"}}, {"name": "say", "args": {}}]
    found = importing(name, written([{**CONVERSATION, "reference_tool_calls": calls}]))
    assert found.cases[0].tools == (ExpectedTool("WeatherAPI", {"location": "New York City"}), ExpectedTool("say", {}))
    assert "reference_tool_calls" not in found.said.partition("wrote")[2]


@pytest.mark.parametrize(("name", "written"), [("samples.jsonl", as_jsonl), ("samples.csv", as_csv)])
def test_turns_become_a_conversation(importing: Importing, name: str, written: Any) -> None:
    messages = [
        {"content": "Hello, how can I help?", "type": "ai", "metadata": None},
        {"content": "Can I return a lamp?", "type": "human", "metadata": None},
        {"content": "I bought it in May.", "type": "human", "metadata": None},
        {"content": "Yes, within 45 days.", "type": "ai", "metadata": None},
        {"content": "And what does express cost?", "type": "human", "metadata": None},
    ]
    found = importing(name, written([{"user_input": messages, "reference": "€9.90"}]))
    first, second = found.cases
    assert first.query.text == "Can I return a lamp?\n\nI bought it in May."
    assert (second.query.text, second.ground_truth) == ("And what does express cost?", "€9.90")
    assert [each.content for each in second.query.history] == [first.query.text, "Yes, within 45 days."]
    assert second.query.query_id == f"{found.lines[0]['conversation']}#2"
    assert "what the assistant said before the first question" in found.said
    assert "1 question, 1 of them conversations, with 2 turns" in found.said


def test_a_test_set_is_of_drafts_whose_contexts_are_placed(importing: Importing) -> None:
    row = {
        "user_input": "When do I get my money back, and what did express cost?",
        "reference_contexts": [
            "<1-hop>\n\nReturns\n\nYou can return a lamp within 45 days of delivery.",
            "<2-hop>\n\nExpress delivery costs €9.90 in Zone 1 and takes one day.",
            "<3-hop>\n\nA page that nobody has ever written down.",
        ],
        "reference": "Within 45 days; €9.90.",
        "persona_name": "Shopper",
        "query_style": "MISSPELLED",
        "query_length": "LONG",
        "synthesizer_name": "multi_hop_specific_query_synthesizer",
    }
    found = importing("testset.csv", as_csv([row]))
    (case,) = found.cases
    assert case.query_type == "multi_hop"
    assert case.evidence == (
        Evidence("returns.md", "You can return a lamp within **45 days** of delivery."),
        Evidence("delivery/fees.md", "Express delivery costs €9.90 in [Zone 1](zones.md) and takes one day."),
    )
    assert case.metadata["reviewed"] == "no"
    assert case.metadata["persona_name"] == "Shopper"
    assert case.metadata["not_placed"] == [row["reference_contexts"][2]]
    assert found.status == 1
    assert "1 × a context that no document has, or several have (testset.csv:2)" in found.said
    assert importing("testset.csv", as_csv([row]), "--reviewed", "yes").cases[0].metadata.get("reviewed") is None


def test_what_has_no_counterpart_is_named(importing: Importing) -> None:
    row = {
        "user_input": "Why?",
        "reference": "So.",
        "rubrics": {"score1_description": "bad"},
        "reference_topics": ["shop"],
        "reference_context_ids": ["fees.md", "gone.md"],
    }
    found = importing("samples.jsonl", as_jsonl([row]))
    assert found.status == 1
    assert found.cases[0].context_reference == ("delivery/fees.md",)
    for said in ("rubrics: a scale of scores", "reference_topics: what an assistant", "e.g. 'gone.md'"):
        assert said in found.said


def test_without_documents_contexts_are_counted_and_kept(importing: Importing) -> None:
    row = {"user_input": "Why?", "reference_contexts": ["You can return a lamp within 45 days of delivery."]}
    found = importing("samples.jsonl", as_jsonl([row]), kb=False)
    assert found.status == 1
    assert (
        "1 × contexts or documents that were not looked for: name the folder of the documents, --kb DIR" in found.said
    )
    assert found.lines[0]["metadata"]["not_placed"] == row["reference_contexts"]
