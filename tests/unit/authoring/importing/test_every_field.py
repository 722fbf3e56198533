"""No field of a record is lost in silence: it is in the line, or the screen names it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from rag_harness.authoring.importing.field_mapping import SourceFields, likely_gold, likely_question
from rag_harness.authoring.importing.importer import FIELDS, guessed_source, import_questions
from rag_harness.core.errors import DataError
from tests.unit.authoring.importing.conftest import Importing

RETURNS = "You can return a lamp within 45 days of delivery."
WHY = {"question": "Why is it so?", "ground_truth": "So."}


@pytest.mark.parametrize("source", FIELDS, ids=lambda source: source.name)
def test_each_field_of_each_tool_is_kept_or_named(importing: Importing, source: SourceFields) -> None:
    names = [*source.scored, *source.unmatched, *source.unread, "a_name_of_ones_own", "created_by"]
    row: dict[str, Any] = {source.names_of("query")[0]: "Why?", "expected_output": "So."}
    row |= {name: f"said {number}" for number, name in enumerate(names) if name not in row}
    found = importing("q.json", json.dumps([row]), "--from", source.name)
    for name, value in row.items():
        assert value in json.dumps(found.lines) or name in found.said, name


@pytest.mark.parametrize("value", [["a text"], {"a": "b"}, "my words", 7654321, [{"deep": ["x"]}], [["n"]]])
@pytest.mark.parametrize(
    "name",
    ["contexts", "documents", "type", "id", "tools", "expect", "conversation", "answerable", "metadata", "qrels"],
)
def test_a_value_of_any_form_is_kept_or_named(importing: Importing, name: str, value: object) -> None:
    found = importing("q.json", json.dumps([{**WHY, name: value}]))
    kept = json.dumps(found.lines)
    is_named = found.status == 2 or name in found.said or "a document that the folder does not have" in found.said
    assert is_named or json.dumps(value).strip('[]{}"') in kept


@pytest.mark.parametrize(
    ("row", "arguments", "kept", "said"),
    [
        ({"meta": {"id": "7", "by": "me"}}, ["id=meta.id"], {"meta.by": "me"}, ""),
        ({"a": {"b": {"id": "7"}, "c": 1}}, ["id=a.b.id"], {"a.c": 1}, ""),
        ({"topic": "a", "metadata": {"topic": "b"}}, [], {"topic": "a", "metadata.topic": "b"}, ""),
        ({"metadata": {"imported_from": "x"}}, [], {"source.imported_from": "x", "imported_from": "csv"}, ""),
        ({"gold": "x"}, [], {"gold": "x"}, ""),
        ({"contexts": [{"text": RETURNS, "score": 3}]}, [], {}, "1 × contexts: score beside the texts"),
        ({"contexts": [RETURNS, {"foo": 1}]}, [], {}, "1 × contexts: items that are no text, and no object with one"),
        ({"context": {"texts": [RETURNS]}}, [], {}, "--map evidence=context.texts"),
        ({"type": ["a"]}, [], {}, "1 × type: a text was expected, and a list or an object stands there"),
    ],
)
def test_what_stands_beside_is_kept_or_named(
    importing: Importing, row: dict[str, Any], arguments: list[str], kept: dict[str, Any], said: str
) -> None:
    found = importing("q.json", json.dumps([{**WHY, **row}]), *(["--map", *arguments] if arguments else []))
    assert kept.items() <= found.lines[0]["metadata"].items()
    assert said in found.said


def test_texts_and_objects_may_stand_mixed(importing: Importing) -> None:
    fee = {"text": "Express delivery costs €9.90 in Zone 1 and takes one day."}
    found = importing("q.json", json.dumps([{**WHY, "contexts": [RETURNS, fee]}]))
    assert found.cases[0].context_reference == ("returns.md", "delivery/fees.md")


def test_what_stands_beside_messages_is_sent(importing: Importing) -> None:
    asked = {"messages": [{"role": "user", "content": "Why?"}], "locale": "de"}
    found = importing("q.json", json.dumps([{"input": asked, "expected_output": "So."}]))
    assert (found.lines[0]["query"], found.lines[0]["inputs"]) == ("Why?", {"locale": "de"})


@pytest.mark.parametrize(("row", "status"), [({"response": "x"}, 1), ({"topic": "x"}, 0)])
def test_strict_makes_fields_that_are_left_out_an_error(importing: Importing, row: dict[str, str], status: int) -> None:
    text = json.dumps([{"user_input": "Why?", "reference": "So.", **row}])
    assert importing("q.json", text).status == 0
    assert importing("q.json", text, "--strict").status == status


@pytest.mark.parametrize(
    ("rows", "status", "said"),
    [
        ([{"loesung": "45 Tage sind es"}, {"loesung": "9,90 Euro kostet es"}], 1, "Is it loesung? Then say so: --map"),
        ([{"my_gold": "a"}, {"my_gold": "a"}], 1, "--map ground_truth=my_gold"),
        ([{"response": "a"}, {"response": "b"}], 1, "--map ground_truth=response"),
        ([{"topic": "a"}, {"topic": "a"}], 0, "no record has a ground truth. Labels now: topic"),
        ([{}, {}], 0, ""),
        ([{"my_gold": "a", "expect": {"contains": "a"}}, {"my_gold": "a"}], 0, ""),
    ],
)
def test_where_no_record_has_a_ground_truth_columns_are_proposed(
    importing: Importing, rows: list[dict[str, Any]], status: int, said: str
) -> None:
    found = importing("q.json", json.dumps([{"id": n, "question": f"Why {n}?", **row} for n, row in enumerate(rows)]))
    assert (found.status, said in found.said) == (status, True)
    assert ("no record has a ground truth" in found.said) == bool(said)


def test_the_question_is_told_by_what_stands_in_a_column() -> None:
    rows = [
        {"id": f"row-{n}", "kind": "a long kind?", "page": "word " * 900, "frage": f"Wie lange dauert es {n}", "n": n}
        for n in range(9)
    ]
    assert likely_question(rows) == "frage"
    assert likely_question([{"id": 1, "body": {"text": "Why?", "by": "me"}}]) == "body.text"
    assert likely_question([{"id": 1, "flag": True}, {"id": 2, "flag": None}]) == ""


def test_gold_is_told_by_names_before_contents() -> None:
    rows = [{"id": f"answer {n}", "notes": f"It takes {n} days", "my_answer": str(n), "kind": "x"} for n in range(4)]
    assert likely_gold(rows) == ["my_answer", "notes"]


def test_without_a_question_the_hint_names_a_column_that_has_some(importing: Importing) -> None:
    found = importing("q.csv", "id,category,frage\n1,a,Wie lange?\n2,a,Wie teuer?\n")
    assert (found.status, "--map question=frage" in found.said) == (2, True)
    found = importing("q.csv", "id,flag\n1,\n2,\n")
    assert "--map question=COLUMN" in found.said


@pytest.mark.parametrize(
    "text", ['[{"question": "a b?", "answer": "c"},\n {"question": "d', '{"data": [{"question": "']
)
def test_nothing_is_written_of_a_file_that_is_cut(importing: Importing, text: str) -> None:
    found = importing("q.json", text)
    assert (found.status, "q.json:" in found.said, "Was the file cut short?" in found.said) == (2, True, True)
    assert found.lines == []


def test_names_that_no_charset_has_are_said_and_written(importing: Importing) -> None:
    found = importing("q.json", '[{"question": "Why?", "answer": "So.", "\\ud800x": "\\udc00"}]')
    assert found.lines[0]["metadata"]["\ufffdx"] == "\ufffd"
    assert importing("q.json", '[{"\\ud800x": "a b c?"}]').status == 2


NAMES = [
    "answer",
    "answers",
    "context",
    "contexts",
    "supporting_facts",
    "paragraphs",
    "qas",
    "data",
    "annotations",
    "fields",
    "responses",
    "suggestions",
    "inputs",
    "expectations",
    "metadata",
    "documents",
    "id",
    "ideal",
    "retrieval_gt",
    "results",
    "row",
    "output",
    "value",
    "type",
    "expect",
    "tools",
    "conversation",
    "topic",
    "gold",
    "reference",
    "input",
    "expected_output",
    "datasetId",
    "createdAt",
    "source",
    "text",
    "title",
    "content",
    "name",
]


def random_value(random: Random, depth: int = 0) -> Any:
    """Return a text that stands nowhere else, or a list or an object of some."""
    kind = random.randrange(6 if depth < 3 else 2)
    if kind < 2:
        return f"said {random.getrandbits(60):x}"
    if kind == 2:
        return [random_value(random, depth + 1) for _ in range(2)]
    inner = [{random.choice(NAMES): random_value(random, depth + 1) for _ in range(2)} for _ in range(2)]
    return inner[0] if kind == 3 else inner


def texts_in(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each text with the names above it."""
    if isinstance(value, str):
        yield value, path
    elif isinstance(value, dict):
        for name, each in value.items():
            yield from texts_in(each, (*path, name))
    else:
        for each in value:
            yield from texts_in(each, path)


@pytest.mark.parametrize("seed", range(8))
def test_no_text_of_any_record_is_lost_in_silence(tmp_path: Path, seed: int) -> None:
    random, file, read = Random(seed), tmp_path / "q.json", 0
    for _ in range(100):
        row = {"question": "Why?", **{random.choice(NAMES): random_value(random) for _ in range(3)}}
        file.write_text(json.dumps([row]))
        try:
            found = import_questions(file, guessed_source(file)[0], {})
        except DataError:
            continue
        kept, said, read = json.dumps([*found.lines]), "\n".join(found.notes.lines()), read + 1
        if "further right answers" not in said and "a record without a question" not in said:
            lost = [path for text, path in texts_in(row) if text not in kept and not any(name in said for name in path)]
            assert not lost, (lost, row, said)
    assert read > 50
