"""Tables of no tool in particular: columns by name or by --map, ids, labels, what cannot be read."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from tests.unit.authoring.importing.conftest import Importing


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
