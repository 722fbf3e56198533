"""Files of deepeval, Langfuse, LangSmith, Hugging Face and ragas, and tables of no tool, become questions."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from rag_harness.core.types import Evidence, ExpectedTool
from tests.unit.authoring.importing.conftest import Importing

# Documented files of deepeval, Langfuse, LangSmith and Hugging Face become questions.

FILES = Path(__file__).parent / "files"


@pytest.mark.parametrize("name", ["deepeval_goldens.json", "deepeval_goldens.csv"])
def test_goldens_of_deepeval(importing: Importing, name: str) -> None:
    found = importing(name, (FILES / name).read_bytes())
    (line,) = found.lines
    assert "read as deepeval: its fields expected_output, actual_output" in found.said
    assert line["query_id"] == "shoes"
    assert line["query"] == "What if these shoes don't fit?"
    assert line["ground_truth"] == "We offer a 30-day full refund at no extra cost."
    assert found.cases[0].evidence == (
        Evidence("returns.md", "You can return a lamp within **45 days** of delivery."),
        Evidence("delivery/fees.md", "Express delivery costs €9.90 in [Zone 1](zones.md) and takes one day."),
    )
    assert line["expect"] == [{"rubric": "Names the refund"}, {"not": {"rubric": "Promises a voucher"}}]
    assert line["metadata"] == {
        "evolutions": ["Reasoning"],
        "topic": "returns",
        "team": "shop",
        "imported_from": "deepeval",
        "reviewed": "no",
    }
    assert line["tools"] == [{"name": "WebSearch"}]
    assert found.cases[0].tools == (ExpectedTool("WebSearch", None),)
    assert found.status == 0


CALLS = [
    # ToolCall of deepeval 4.3, as its goldens are saved, and in its API.
    {"name": "price", "description": "Looks up a price", "reasoning": None, "input_parameters": {"sku": "T-18"}},
    {"name": "stock", "inputParameters": {"sku": "T-18", "zone": 1}, "output": None},
    {"name": "say", "input_parameters": None},
]


@pytest.mark.parametrize("field", ["expected_tools", "expectedTools"])
def test_expected_tools_of_deepeval(importing: Importing, field: str) -> None:
    golden = {"input": "What does the lamp cost?", "expected_output": "9 euros", field: CALLS}
    found = importing("goldens.json", json.dumps([golden]))
    assert found.status == 0
    assert found.cases[0].tools == (
        ExpectedTool("price", {"sku": "T-18"}),
        ExpectedTool("stock", {"sku": "T-18", "zone": 1}),
        ExpectedTool("say", None),
    )


@pytest.mark.parametrize("stated", [None, [], "", "[]"])
def test_no_expected_tools_say_nothing(importing: Importing, stated: str | list[str] | None) -> None:
    golden = {"input": "What does the lamp cost?", "expected_output": "9 euros", "expected_tools": stated}
    found = importing("goldens.json", json.dumps([golden]))
    assert (found.status, found.cases[0].tools) == (0, None)
    assert ("1 × expected_tools: an empty list is left out" in found.said) == (stated not in (None, ""))


@pytest.mark.parametrize(
    ("calls", "said"),
    [
        ([{"name": "price"}, {"input_parameters": {}}], "expected_tools: call 2: name is missing"),
        ([{"name": "price", "input_parameters": ["T-18"]}], "expected_tools: call 1: args: an object was expected"),
        ([{"name": "price", "parameters": {"type": "object"}}], "expected_tools: call 1:"),
        ([7], "expected_tools: call 1: an object was expected"),
    ],
)
def test_expected_tools_that_cannot_be_read_are_named(importing: Importing, calls: object, said: str) -> None:
    golden = {"input": "What does the lamp cost?", "expected_output": "9 euros", "expected_tools": calls}
    found = importing("goldens.json", json.dumps([golden]))
    assert found.status == 1
    assert f"1 × {said}" in found.said
    assert found.cases[0].tools is None


def test_results_of_expected_tools_are_not_demanded(importing: Importing) -> None:
    calls = [{"name": "price", "output": "9 euros"}]
    golden = {"input": "What does the lamp cost?", "expected_output": "9 euros", "expected_tools": calls}
    found = importing("goldens.json", json.dumps([golden]))
    assert "1 × expected_tools: what a tool is to return" in found.said
    assert (found.status, found.cases[0].tools) == (1, (ExpectedTool("price", None),))


def test_conversational_goldens_of_deepeval(importing: Importing) -> None:
    found = importing("c.json", (FILES / "deepeval_conversations.json").read_text())
    first, second = found.cases
    assert [first.query.text, second.query.text] == ["Is there a VIP ticket?", "Then I take it."]
    assert [each.content for each in second.query.history][1] == "There is one left."
    assert [(each.kind, each.wanted) for each in second.expect] == [("rubric", "Successful purchase of a ticket.")]
    assert first.expect == ()
    assert found.lines[0]["metadata"]["scenario"].startswith("Andy Byron wants")
    assert "1 × a scenario without turns: write what its user says first" in found.said


def test_items_of_langfuse(importing: Importing) -> None:
    found = importing("items.json", (FILES / "langfuse_items.json").read_text())
    assert "read as langfuse: its fields" in found.said
    assert [(line["query_id"], line["query"], line["ground_truth"]) for line in found.lines] == [
        ("cm1a2b3c", "hello world", "hello world"),
        ("cm1a2b3d", "What is the capital of France?", "Paris"),
        ("cm1a2b3e", "And of Italy?", "Rome"),
    ]
    assert found.lines[0]["metadata"] == {"model": "llama3", "sourceTraceId": "8d2c", "imported_from": "langfuse"}
    assert "1 × an archived item (items.json:" in found.said
    assert found.status == 0


def test_items_of_langfuse_as_csv_have_objects_in_cells(importing: Importing) -> None:
    text = 'id,status,input,expectedOutput,metadata\n1,ACTIVE,"{""q"": ""Why?"", ""locale"": ""de""}","""So.""",\n'
    found = importing("items.csv", text)
    assert found.status == 2
    assert "items.csv:2: input is an object with 'q', 'locale'. Say where the question is: --map question=input.q" in (
        found.said
    )
    line = importing("items.csv", text, "--map", "question=input.q").lines[0]
    assert (line["query"], line["inputs"]) == ("Why?", {"locale": "de"})


def test_examples_of_langsmith(importing: Importing) -> None:
    found = importing("examples.jsonl", (FILES / "langsmith_examples.jsonl").read_text())
    assert "read as langsmith: its fields outputs" in found.said
    assert [(line["query_id"], line["query"]) for line in found.lines] == [
        ("9c1f", "What is LangChain?"),
        ("9c20", "What is LangSmith?"),
    ]
    assert found.lines[0]["ground_truth"] == "A framework for building LLM applications"
    assert found.lines[0]["metadata"]["dataset_split"] == ["base"]


def test_examples_of_langsmith_with_several_fields_ask_for_a_mapping(importing: Importing) -> None:
    row = {"inputs": {"question": "Why?", "user": "x"}, "outputs": {"answer": "So.", "score": 1}}
    found = importing("e.jsonl", json.dumps(row))
    assert "--map question=inputs.question" in found.said
    found = importing("e.jsonl", json.dumps(row), "--map", "question=inputs.question", "ground_truth=outputs.answer")
    assert found.lines[0]["inputs"] == {"user": "x"}
    assert "1 × score: it is beside the ground truth, and is left out (e.jsonl:1)" in found.said


CARD = """---
license: mit
configs:
- config_name: default
  data_files:
  - split: train
    path: "data.csv"
  - split: test
    path: ["data/test-*.parquet"]
- config_name: small
  data_files: small.jsonl
---
# Questions
"""


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    """A data set as the documentation of its card describes one."""
    folder = tmp_path / "set"
    (folder / "data").mkdir(parents=True)
    (folder / "README.md").write_text(CARD)
    (folder / "data.csv").write_text("question,answer\nTrained?,Yes.\n")
    (folder / "small.jsonl").write_text('{"question": "Small?", "answer": "Yes."}\n')
    for number, question in enumerate(("Why?", "Who?")):
        row = {"id": str(number), "question": question, "answers": {"text": ["So.", "Thus."], "answer_start": [1, 2]}}
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist([row]), folder / "data" / f"test-{number}.parquet")
    return folder


def test_a_folder_of_hugging_face(importing: Importing, dataset: Path) -> None:
    mapped = ("--map", "ground_truth=answers.text")
    found = importing("set", None, *mapped)
    assert "read as hf: a folder with data files" in found.said
    assert [(line["query"], line["ground_truth"]) for line in found.lines] == [("Why?", "So."), ("Who?", "So.")]
    assert "2 × further right answers" in found.said


@pytest.mark.parametrize(
    ("arguments", "questions"),
    [(("--split", "train"), ["Trained?"]), (("--subset", "small"), ["Small?"])],
)
def test_a_part_of_a_folder(importing: Importing, dataset: Path, arguments: list[str], questions: list[str]) -> None:
    assert [line["query"] for line in importing("set", None, *arguments).lines] == questions


@pytest.mark.parametrize(
    ("card", "arguments", "said"),
    [
        (CARD, ("--split", "dev"), "set: no 'dev' among train, test. Say which: --split train"),
        (CARD, ("--subset", "big"), "set: no 'big' among default, small."),
        (
            CARD.replace("default", "large"),
            (),
            "which of large, small. Say which: --subset large",
        ),
        (CARD.replace("test", "dev"), (), "set: it is to be said which of train, dev"),
        (CARD.replace("data/test-*", "../x-*"), (), "../x-*.parquet is not in the folder"),
        (CARD.replace("data/test-*", "data/no-*"), (), "no file matches data/no-*.parquet"),
        ("# no card", (), "no README.md that states configs. Name one of its files: data/test-0.parquet,"),
        ("---\na: [\n---\n", (), "README.md:"),
    ],
)
def test_what_a_folder_does_not_say_is_asked(
    importing: Importing, dataset: Path, card: str, arguments: list[str], said: str
) -> None:
    (dataset / "README.md").write_text(card)
    found = importing("set", None, *arguments)
    assert found.status == 2
    assert said in found.said


def test_a_part_of_a_file_is_refused(importing: Importing) -> None:
    found = importing("q.csv", "question\nWhy?\n", "--split", "test")
    assert "q.csv is a file. --subset and --split choose from a folder." in found.said


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        (["Names the refund", "Is short"], [{"rubric": "Names the refund"}, {"rubric": "Is short"}]),
        ('["Names the refund"]', [{"rubric": "Names the refund"}]),
        ("Names the refund", [{"rubric": "Names the refund"}]),
        ([{"must": ["a"], "must_not": "b"}, "c"], [{"rubric": "a"}, {"not": {"rubric": "b"}}, {"rubric": "c"}]),
    ],
)
def test_expectations_of_deepeval_may_be_a_list(importing: Importing, stated: object, expected: object) -> None:
    found = importing("g.json", json.dumps([{"input": "Why?", "expected_output": "So.", "expectations": stated}]))
    assert (found.lines[0]["expect"], found.status) == (expected, 0)


def test_a_list_of_expectations_that_cannot_be_read_is_named(importing: Importing) -> None:
    golden = {"input": "Why?", "expected_output": "So.", "expectations": {"must": "['a' 'b']"}}
    found = importing("g.json", json.dumps([golden]))
    assert found.status == 2
    assert "g.json:1: what is expected: no comma behind 'a'" in found.said


REPLY = {
    "data": [{"id": "i1", "input": "Why?", "expectedOutput": "So.", "datasetId": "d"}, {"id": "i2", "input": "Who?"}],
    "meta": {"page": 1, "totalItems": 2},
}


@pytest.mark.parametrize("end", ["", "\n"])
@pytest.mark.parametrize("indent", [None, 1])
def test_a_reply_of_the_api_of_langfuse_is_its_items(importing: Importing, indent: int | None, end: str) -> None:
    found = importing("items.json", json.dumps(REPLY, indent=indent) + end)
    assert "read as langfuse" in found.said
    assert [line["query_id"] for line in found.lines] == ["i1", "i2"]
    assert found.lines[0]["ground_truth"] == "So."


def test_a_line_with_a_list_of_objects_is_one_record(importing: Importing) -> None:
    golden = {"input": "What does the lamp cost?", "expected_output": "9 euros", "expected_tools": CALLS}
    assert len(importing("g.jsonl", json.dumps(golden)).lines) == 1
    assert len(importing("g.jsonl", f"{json.dumps({**golden, 'data': CALLS})}\n{json.dumps(golden)}").lines) == 2


def test_an_object_with_a_number_asks_what_it_means(importing: Importing) -> None:
    item = {"input": "What does it cost?", "expectedOutput": {"price": 5}, "datasetId": "d"}
    found = importing("items.json", json.dumps([item]))
    assert found.status == 2
    assert "expectedOutput is an object with 'price'" in found.said
    assert "--map ground_truth=expectedOutput.price" in found.said
    mapped = importing("items.json", json.dumps([item]), "--map", "ground_truth=expectedOutput.price")
    assert mapped.lines[0]["ground_truth"] == "5"


def test_a_reply_to_a_question_that_stands_alone_is_not_left_out_in_silence(importing: Importing) -> None:
    said = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "So."}]
    found = importing("items.json", json.dumps([{"input": said, "datasetId": "d"}]))
    assert [line["query"] for line in found.lines] == ["Why?"]
    assert "1 × a reply to a question that stands alone: it is not ground truth unless you say so" in found.said
    mapped = importing(
        "items.json", json.dumps([{"input": said, "datasetId": "d"}]), "--map", "reference=input.1.content"
    )
    assert mapped.lines[0]["ground_truth"] == "So."
    assert "a reply to a question" not in mapped.said


# The documented samples of ragas 0.4 become questions, with evidence in the documents.

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


# Tables of no tool in particular: columns by name or by --map, ids, labels, what cannot be read.


def test_columns_are_known_by_name_and_others_are_labels(importing: Importing) -> None:
    text = "\ufeffid;question;answer;documents;type;answerable;topic\r\nA 1;Why?;So.;fees.md;price;yes;money\r\n"
    found = importing("q.csv", text)
    (line,) = found.lines
    assert line == {
        "query_id": "A-1",
        "query_type": "price",
        "query": "Why?",
        "answerable": True,
        "ground_truth": "So.",
        "context_reference": ["delivery/fees.md"],
        "metadata": {"topic": "money", "imported_from": "csv", "source_id": "A 1"},
    }
    assert found.status == 0


@pytest.mark.parametrize(("written", "kept"), [("easy", "easy"), (["a", "b"], ["a", "b"]), ({"of": "a"}, None)])
def test_metadata_that_is_no_object_is_a_label(importing: Importing, written: object, kept: object) -> None:
    (line,) = importing("q.json", json.dumps([{"question": "Why?", "metadata": written}])).lines
    labels = {"metadata": kept} if kept else written
    assert line["metadata"] == {**labels, "imported_from": "csv"}  # type: ignore[dict-item]


def test_a_map_names_columns(importing: Importing) -> None:
    text = "key,frage,antwort,thema\n7,Warum?,Darum.,preis\n"
    arguments = ["--map", "id=key", "question=frage,reference=antwort", "metadata.topic=thema"]
    (line,) = importing("q.csv", text, *arguments).lines
    assert line == {
        "query_id": "7",
        "query_type": "direct",
        "query": "Warum?",
        "ground_truth": "Darum.",
        "metadata": {"topic": "preis", "imported_from": "csv"},
    }


def test_expectations_in_a_column_are_those_of_lines(importing: Importing) -> None:
    text = 'question;expect\nWhy?;[{"contains": "a"}]\nWho?;{"max_words": 9}\nWhat?;{"maxwords": 9}\nHow?;soon\n'
    found = importing("q.csv", text)
    assert [line.get("expect") for line in found.lines] == [[{"contains": "a"}], [{"max_words": 9}], None, None]
    assert found.said.count("× an expectation: ") == 2
    assert "expect" not in found.lines[3]["metadata"]


def test_what_a_map_names_and_nothing_has_is_said(importing: Importing) -> None:
    found = importing("q.csv", "question,answer\nWhy?,So.\n", "--map", "evidence=quotes", "metadata.topic=thema")
    assert found.status == 1
    assert "1 × --map evidence=quotes: no record has it (q.csv)" in found.said
    assert "1 × --map metadata.topic=thema: no record has it (q.csv)" in found.said


def test_without_a_question_the_columns_are_named(importing: Importing) -> None:
    found = importing("q.csv", "frage,antwort\nWarum?,Darum.\n")
    assert found.status == 2
    assert "none of its columns is the question: frage, antwort. Say which: --map question=frage" in found.said


def test_ids_are_those_of_the_file_or_digests_and_never_twice(importing: Importing) -> None:
    text = "id,question,answer\n,Why?,1\n,Why?,2\n,Why?,2\nx,Who?,3\nx,What?,4\n"
    found = importing("q.csv", text)
    again = importing("q.csv", text)
    ids = [line["query_id"] for line in found.lines]
    assert ids[1] == f"{ids[0]}-2"
    assert ids[2:] == ["x", "x-2"]
    assert "1 × a record that is there already, word for word (q.csv:4)" in found.said
    assert "2 × an id that is there already" in found.said
    assert again.lines == found.lines


def test_the_same_question_has_the_same_id_in_every_file(importing: Importing) -> None:
    one = importing("q.csv", "question\nWhy  not?\n").lines[0]["query_id"]
    assert (
        importing("q.json", json.dumps([{"input": "Why not?", "expected_output": "So."}])).lines[0]["query_id"] == one
    )


def test_rows_without_a_question_are_counted(importing: Importing) -> None:
    found = importing("q.csv", "question,answer\nWhy?,1\n,2\n ,3\n")
    assert found.status == 1
    assert "2 × a record without a question (first q.csv:3)" in found.said


def test_parquet_with_nan_null_and_lists(importing: Importing, tmp_path: Path) -> None:
    rows = [
        {"question": "Why?", "answer": float("nan"), "contexts": ["You can return a lamp within 45 days of delivery."]},
        {"question": None, "answer": 2.0, "contexts": None},
        {"question": "Who?", "answer": 42.0, "contexts": []},
    ]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "rows.parquet")
    found = importing("rows.parquet", (tmp_path / "rows.parquet").read_bytes())
    assert [line["query"] for line in found.lines] == ["Why?", "Who?"]
    assert "ground_truth" not in found.lines[0]
    assert found.lines[0]["context_reference"] == ["returns.md"]
    assert "rows.parquet, row 2" in found.said


def test_messages_with_passages_as_mtrag_has_them(importing: Importing) -> None:
    task = {
        "task_id": "18ef<::>2",
        "conversation_id": "18ef",
        "input": [
            {"speaker": "user", "text": "Can I return a lamp?"},
            {"speaker": "agent", "text": "Yes, within 45 days."},
            {"speaker": "user", "text": "What does express cost?"},
        ],
        "targets": [{"speaker": "agent", "text": "€9.90 in Zone 1."}],
        "contexts": [{"document_id": "x", "text": "Express delivery costs €9.90 in Zone 1 and takes one day."}],
        "answerability": ["ANSWERABLE"],
    }
    found = importing("tasks.jsonl", json.dumps(task))
    case = found.cases[1]
    assert (case.query.query_id, case.query.text) == ("18ef#2", "What does express cost?")
    assert case.query.history[1].content == "Yes, within 45 days."
    assert (case.ground_truth, case.context_reference) == ("€9.90 in Zone 1.", ("delivery/fees.md",))
    assert case.answerable


def test_what_is_not_answerable_is_negative(importing: Importing) -> None:
    rows = [{"question": "Who won?", "answerability": ["UNANSWERABLE"]}, {"question": "Why?", "answerable": "no"}]
    found = importing("q.json", json.dumps(rows))
    assert [case.query_type for case in found.cases] == ["negative", "negative"]
    assert not any(case.answerable for case in found.cases)


@pytest.mark.parametrize("said", ["n", "N", "f", "F", "no", "false", "0", "0.0", 0, 0.0, False])
def test_each_way_to_write_no_is_read(importing: Importing, said: object) -> None:
    found = importing("q.json", json.dumps([{"question": "Who won?", "answerable": said}]))
    assert [(case.query_type, case.answerable) for case in found.cases] == [("negative", False)]
    variables = {"question": "Who won?", "answerable": said}
    found = importing("q.json", json.dumps([{"vars": variables, "assert": [{"type": "is-refusal"}]}]))
    assert [(case.query_type, case.answerable) for case in found.cases] == [("negative", False)]


@pytest.mark.parametrize("said", ["y", "T", "1.0", 1.0, True, "yes"])
def test_each_way_to_write_yes_is_read(importing: Importing, said: object) -> None:
    assert importing("q.json", json.dumps([{"question": "Who?", "answerable": said}])).lines[0]["answerable"] is True


def test_what_says_neither_yes_nor_no_is_named(importing: Importing) -> None:
    found = importing("q.csv", "question,answerable\nWho won?,maybe\nWhy?,\n")
    assert "1 × answerable: 'maybe' is neither yes nor no (q.csv:2)" in found.said
    assert found.status == 1
    found = importing("t.json", json.dumps([{"vars": {"question": "Who?", "answerable": "maybe"}, "assert": []}]))
    assert "1 × answerable: 'maybe' is neither yes nor no" in found.said


def test_an_object_with_several_texts_asks_which(importing: Importing) -> None:
    row = {"input": {"ticket": "t", "body": "b"}, "expected": {"reply": "r"}}
    found = importing("q.json", json.dumps([row]))
    assert found.status == 2
    assert "q.json:1: " in found.said
    assert "is an object with 'ticket', 'body'. Say where the question is: --map question=input.ticket" in found.said
    mapped = importing("q.json", json.dumps([row]), "--map", "question=input.body")
    assert (mapped.lines[0]["query"], mapped.lines[0]["ground_truth"]) == ("b", "r")


def test_text_that_json_cannot_hold_is_replaced(importing: Importing) -> None:
    found = importing("q.json", '[{"question": "Why \\ud800?", "answer": "So.", "x": NaN, "y": [Infinity]}]')
    assert found.cases[0].query.text == "Why \ufffd?"
    assert "x" not in found.lines[0]["metadata"]


@pytest.mark.parametrize("name", ["queries.jsonl", "kb", "gone/queries.jsonl"])
def test_nothing_is_written_over(importing: Importing, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    from rag_harness.__main__ import main

    importing("q.csv", "question\nWhy?\n")
    before = Path("queries.jsonl").read_bytes()
    assert main(["queries", "import", "q.csv", "-o", name]) == 2
    assert capsys.readouterr().err
    assert Path("queries.jsonl").read_bytes() == before
