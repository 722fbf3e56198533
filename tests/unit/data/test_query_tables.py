"""Tables of questions are read like lines; a file of another form is told with what makes lines of it."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from rag_harness.core.errors import DataError
from rag_harness.core.types import Case, Evidence, ExpectedTool
from rag_harness.data.datasets import asked_digest
from rag_harness.data.queries import read_queries


def cases(file: Path, text: str | bytes, **mapped: str) -> list[Case]:
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_queries(file, mapped=mapped)


def said(file: Path, text: str | bytes, **mapped: str) -> str:
    with pytest.raises(DataError) as caught:
        cases(file, text, **mapped)
    return str(caught.value).replace(str(file.parent), "")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "queries.csv"


HEADER = "id;question;answer;documents;quotes;answerable;expect;metadata.topic;team;inputs.lang\r\n"
ROW = 'q1;Why?;So.;a.md;["Just so."];yes;[{"contains": "So"}];money;shop;de\r\n'


@pytest.mark.parametrize("name", ["tools", "reference_tool_calls"])
def test_expected_tools_are_json(table: Path, name: str) -> None:
    rows = f'question;{name}\nWhy?;[{{"name": "price", "args": {{"sku": "T-18"}}}}]\nHow?;[]\nWhat?;\n'
    assert [case.tools for case in cases(table, rows)] == [(ExpectedTool("price", {"sku": "T-18"}),), (), None]


def test_a_row_is_a_line(table: Path) -> None:
    (case,) = cases(table, ("\ufeff" + HEADER + ROW).encode(), evidence="quotes")
    assert (case.query.query_id, case.query.text, case.query.inputs) == ("q1", "Why?", {"lang": "de"})
    assert (case.ground_truth, case.context_reference, case.answerable) == ("So.", ("a.md",), True)
    assert case.evidence == (Evidence("a.md", "Just so."),)
    assert case.metadata == {"topic": "money", "team": "shop"}
    assert [each.wanted for each in case.expect] == ["So"]


def test_the_same_questions_in_parquet(tmp_path: Path) -> None:
    rows = [
        {"user_input": "Why?", "reference": "So.", "documents": ["a.md", "b.md"], "score": float("nan"), "n": 3},
        {"user_input": "Who?", "reference": None, "documents": None, "score": 0.5, "n": None},
    ]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "q.parquet")
    first, second = read_queries(tmp_path / "q.parquet")
    assert (first.context_reference, first.metadata) == (("a.md", "b.md"), {"n": 3})
    assert (second.ground_truth, second.context_reference, second.metadata) == ("", (), {"score": 0.5})


def test_ids_are_digests_where_there_are_none(table: Path) -> None:
    first = cases(table, "question\nWhy?\nWho?\n")
    again = cases(table, "question\nWho?\nWhy?\n")
    assert {case.query.query_id for case in first} == {case.query.query_id for case in again}
    assert "stands already on line 2." in said(table, "question\nWhy?\nWhy?\n")


def test_turns_of_conversations_stand_in_rows(table: Path) -> None:
    text = "conversation,turn,query,ground_truth\nc1,1,Why?,So.\nc1,2,And then?,Thus.\n"
    second = cases(table, text)[1]
    assert second.query.query_id == "c1#2"
    assert [each["content"] for each in second.query.inputs["history"]] == ["Why?", "So."]


def test_columns_are_mapped(table: Path) -> None:
    (case,) = cases(
        table, 'frage,daten\nWarum?,"{""antwort"": ""Darum.""}"\n', query="frage", ground_truth="daten.antwort"
    )
    assert (case.query.text, case.ground_truth) == ("Warum?", "Darum.")


@pytest.mark.parametrize(
    ("text", "mapped", "message"),
    [
        ("frage\nWarum?\n", {}, "/queries.csv: no column is the question: frage. Say which: --rag-map question=frage"),
        ("query,question\na,b\n", {}, "columns 'query' and 'question' are both query. Say which one counts: "),
        ("query,query\na,b\n", {}, "/queries.csv:1: column 'query' stands there twice. Rename one."),
        ("query\na\n", {"ground_truth": "x"}, "rag_map says ground_truth=x, and there is no such column"),
        ("query,expect\na,{\n", {}, "/queries.csv:2: expect: no JSON"),
        ("query,answerable\na,perhaps\n", {}, "/queries.csv:2: answerable: yes or no was expected, found 'perhaps'"),
        ("query,evidence,documents\na,b,c.md|d.md\n", {}, "/queries.csv:2: evidence: quotes of 2 documents."),
        ("query,documents\na,\"['b' 'c']\"\n", {}, "/queries.csv:2: documents: no comma behind 'b'"),
        ("query,turn,conversation\na,x,c\n", {}, "/queries.csv:2: turn: invalid literal"),
        ("query,answer\n,So.\n", {}, "/queries.csv:2: query: Field required"),
        ("query\n", {}, "holds no query"),
        ("query\n\xe4\n".encode("latin-1"), {}, "/queries.csv:2: not UTF-8"),
    ],
)
def test_what_cannot_be_meant_is_named(table: Path, text: str | bytes, mapped: dict[str, str], message: str) -> None:
    assert message in said(table, text, **mapped)


def test_a_bad_row_may_be_skipped(table: Path) -> None:
    table.write_text("query,answerable\nWhy?,yes\nWho?,perhaps\n")
    skipped: list[str] = []
    assert [case.query.text for case in read_queries(table, skipped=skipped)] == ["Why?"]
    assert len(skipped) == 1
    assert ":3: answerable: " in skipped[0]


def test_of_two_columns_for_a_field_the_mapped_one_counts(table: Path) -> None:
    (case,) = cases(table, "query,question\na,b\n", query="question")
    assert (case.query.text, case.metadata) == ("b", {"query": "a"})


def test_the_digest_is_of_what_is_asked(table: Path) -> None:
    table.write_text('query,expect\nWhy?,"{""contains"": ""a""}"\n')
    first = asked_digest(table)
    table.write_text('query,expect\nWhy?,"{""contains"": ""b""}"\n')
    assert asked_digest(table) == first
    table.write_text('query,expect\nWho?,"{""contains"": ""b""}"\n')
    assert asked_digest(table) != first
    assert asked_digest(table, {"query": "expect"}) != asked_digest(table)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (json.dumps([{"query": "Why?"}]), "queries.jsonl is a JSON array. It is to have one JSON object a line."),
        ("[\n  {\n", "is a JSON array"),
        (json.dumps({"query": "Why?"}, indent=2), "is one JSON object over several lines"),
        ("question,answer\nWhy?,So.\n", "looks like CSV, which is read where its name ends in .csv"),
        ("id;user_input\n1;Why?\n", "looks like CSV"),
    ],
)
def test_a_file_of_another_form_is_told_what_it_is(tmp_path: Path, text: str, message: str) -> None:
    found = said(tmp_path / "queries.jsonl", text)
    assert message in found
    assert "rag-harness queries import" in found
    assert len(found.splitlines()) == 1


@pytest.mark.parametrize(
    ("field", "near"),
    [("question", "query"), ("user_input", "query"), ("expected_output", "ground_truth"), ("evidnce", "evidence")],
)
def test_an_unknown_field_names_the_nearest(tmp_path: Path, field: str, near: str) -> None:
    found = said(tmp_path / "queries.jsonl", json.dumps({"query_id": "a", "query": "b", field: "c"}))
    assert found.endswith(f":1: {field}: no field of a question. Did you mean {near!r}?")


@pytest.mark.parametrize(
    "columns", ["metadata;topic;metadata.team", "topic;metadata;metadata.team", "topic;metadata.team;metadata"]
)
def test_labels_of_an_object_and_of_columns_stand_beside_each_other(table: Path, columns: str) -> None:
    cells = {"metadata": '{"hard": true, "topic": "old"}', "topic": "money", "metadata.team": "shop"}
    row = ";".join(cells[each] for each in columns.split(";"))
    (case,) = cases(table, f"question;{columns}\nWhy?;{row}\n")
    assert case.metadata == {"hard": True, "topic": "money", "team": "shop"}  # a column says it of this row alone


@pytest.mark.parametrize("columns", ["inputs;inputs.lang", "inputs.lang;inputs"])
def test_inputs_of_an_object_and_of_columns_stand_beside_each_other(table: Path, columns: str) -> None:
    cells = {"inputs": '{"tenant": "shop"}', "inputs.lang": "de"}
    row = ";".join(cells[each] for each in columns.split(";"))
    (case,) = cases(table, f"question;{columns}\nWhy?;{row}\n")
    assert case.query.inputs == {"tenant": "shop", "lang": "de"}


@pytest.mark.parametrize(("name", "cell", "label"), [("metadata", "easy", "easy"), ("tags", '["a"]', ["a"])])
@pytest.mark.parametrize("other", ["", ";metadata.team"])
def test_labels_that_are_no_object_are_a_label(table: Path, name: str, cell: str, label: object, other: str) -> None:
    row = f"Why?;{cell}{';shop' if other else ''}"
    (case,) = cases(table, f"question;{name}{other}\n{row}\n")
    assert case.metadata == {name: label, **({"team": "shop"} if other else {})}


def test_inputs_and_labels_that_are_broken_are_named(table: Path) -> None:
    assert "queries.csv:2: inputs: an object was expected, found 'de'" in said(table, "question;inputs\nWhy?;de\n")
    assert "inputs: an object was expected, found [1]" in said(table, "question;inputs;inputs.a\nWhy?;[1];b\n")
    assert "queries.csv:2: metadata: no JSON" in said(table, 'question;metadata\nWhy?;{"a": \n')
