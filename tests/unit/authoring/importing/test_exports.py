"""Documented files of deepeval, Langfuse, LangSmith and Hugging Face become questions."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from rag_harness.core.types import Evidence, ExpectedTool
from tests.unit.authoring.importing.conftest import Importing

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
    assert "1 × score: it stands beside the ground truth, and is left out (e.jsonl:1)" in found.said


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
    assert "1 × a reply to a question that stands alone: it is no ground truth unless you say so" in found.said
    mapped = importing(
        "items.json", json.dumps([{"input": said, "datasetId": "d"}]), "--map", "reference=input.1.content"
    )
    assert mapped.lines[0]["ground_truth"] == "So."
    assert "a reply to a question" not in mapped.said
