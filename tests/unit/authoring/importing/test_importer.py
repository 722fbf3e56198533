"""Records of other tools become lines of questions: every field, named files, known forms, own lines."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from random import Random
from time import perf_counter
from typing import Any

import pytest

from rag_harness.authoring.importing.field_mapping import SourceFields, likely_gold, likely_question
from rag_harness.authoring.importing.importer import FIELDS, LineWriting, PlacedGold, guessed_source, import_questions
from rag_harness.authoring.importing.records import ImportedQuestion, Notes
from rag_harness.core.errors import DataError
from rag_harness.core.types import Evidence
from tests.unit.authoring.importing.conftest import Importing

# No field of a record is lost in silence: it is in the line, or the screen names it.

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
        (
            {"contexts": [RETURNS, {"foo": 1}]},
            [],
            {},
            "1 × contexts: items that are neither a text nor an object with one",
        ),
        ({"context": {"texts": [RETURNS]}}, [], {}, "--map evidence=context.texts"),
        ({"type": ["a"]}, [], {}, "1 × type: expected a text, found a list or an object"),
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


# Lines of ``queries.jsonl`` that are imported are the lines that they were.

QUOTE = "You can return a lamp within **45 days** of delivery."
ALONE: dict[str, Any] = {
    "query_id": "q1",
    "query_type": "direct",
    "query": "How long?",
    "inputs": {"tenant": "shop", "history": [{"role": "user", "content": "Hello"}]},
    "qrels": {"returns.md": 3, "delivery/fees.md": 1},
    "evidence": [{"filename": "returns.md", "quote": QUOTE}],
    "tools": [],
    "metadata": {"topic": "returns", "reviewed": "no"},
}
TURNS: list[dict[str, Any]] = [
    {"conversation": "c1", "turn": 1, "query": "Can I return it?", "reply": "Yes.", "metadata": {}},
    {"conversation": "c1", "turn": 2, "query": "When?", "standalone": "When can I return it?", "metadata": {}},
]
WHOLE: dict[str, Any] = {
    "conversation": "c2",
    "turns": [{"query": "Can I return it?", "reply": "Yes."}, {"query": "When?", "qrels": {"returns.md": 2}}],
    "metadata": {"topic": "returns"},
}
LINES = [ALONE, *TURNS, WHOLE]


def as_lines(*values: dict[str, Any]) -> str:
    return "".join(f"{json.dumps(each)}\n" for each in values)


@pytest.mark.parametrize("kb", [True, False])
@pytest.mark.parametrize("name", ["old.jsonl", "old.json"])
def test_lines_of_ours_lose_nothing(importing: Importing, name: str, kb: bool) -> None:
    found = importing(name, as_lines(*LINES) if name.endswith("l") else json.dumps(LINES), kb=kb)
    assert (found.lines, found.status) == (LINES, 0)
    graded, *_, last = found.cases
    assert graded.qrels == {"returns.md": 3, "delivery/fees.md": 1}
    assert (graded.tools, graded.query.inputs["tenant"]) == ((), "shop")
    assert (last.query.query_id, len(last.query.history)) == ("c2#2", 2)


def test_a_file_that_begins_with_a_conversation_is_read(importing: Importing) -> None:
    assert importing("old.jsonl", as_lines(WHOLE, ALONE)).lines == [WHOLE, ALONE]


def test_a_table_with_our_columns_is_read_as_a_run_reads_it(importing: Importing) -> None:
    text = 'query_id,query,qrels,inputs\nq1,How long?,"{""returns.md"": 2}","{""tenant"": ""shop""}"\n'
    (line,) = importing("old.csv", text).lines
    assert (line["qrels"], line["inputs"]) == ({"returns.md": 2}, {"tenant": "shop"})
    broken = importing("old.csv", "query_id,query,qrels\nq1,How long?,{}\nq2,Why?,returns.md\n")
    assert [line["query_id"] for line in broken.lines] == ["q1"]
    assert "1 × a record that makes no line: qrels: no JSON" in broken.said


def test_ids_that_are_there_already_and_pages_that_are_not_are_named(importing: Importing) -> None:
    other = {**ALONE, "query": "How much?"}
    found = importing("old.jsonl", as_lines(ALONE, ALONE, other, TURNS[0], {**TURNS[0], "query": "And?"}), kb=False)
    assert [line.get("query_id") for line in found.lines] == ["q1", "q1-2", None]
    assert "1 × a record that is there already, word for word (old.jsonl:2)" in found.said
    assert "1 × a turn that is there already (old.jsonl:5)" in found.said
    assert found.status == 1


def test_a_page_that_the_folder_lacks_is_named(importing: Importing, capsys: pytest.CaptureFixture[str]) -> None:
    from rag_harness.__main__ import main

    importing("old.jsonl", as_lines(ALONE))
    Path("old.jsonl").write_text(as_lines({**ALONE, "qrels": {"gone.md": 1}}))
    assert main(["queries", "import", "old.jsonl", "--kb", "kb", "--force"]) == 1
    assert "1 × a document that the folder does not have, e.g. 'gone.md' (old.jsonl:1)" in capsys.readouterr().out


def test_who_has_read_them_may_be_said_anew(importing: Importing) -> None:
    assert importing("old.jsonl", as_lines(ALONE), "--reviewed", "yes").lines[0]["metadata"] == {"topic": "returns"}
    drafts = importing("old.jsonl", as_lines(WHOLE), "--reviewed", "no").lines[0]["metadata"]
    assert drafts == {"topic": "returns", "reviewed": "no"}


@pytest.mark.parametrize(
    ("record", "line"),
    [
        ({"query_id": "A 1"}, {"query_id": "A-1"}),
        ({"query_id": "q1", "ground_truth": 45}, {"ground_truth": "45"}),
        ({"query_id": "q1", "answerable": "UNANSWERABLE"}, {"answerable": False}),
    ],
)
def test_a_record_that_is_no_line_is_read_as_that_of_any_tool(
    importing: Importing, record: dict[str, Any], line: dict[str, Any]
) -> None:
    found = importing("q.json", json.dumps([{"query": "Why?", **record}]))
    assert found.status == 0
    assert found.lines[0].items() >= line.items()


def test_a_line_that_only_ours_could_be_and_that_is_wrong_is_named(importing: Importing) -> None:
    wrong: list[dict[str, Any]] = [{"qrels": {"returns.md": "high"}}, {"context_reference": 7}, {"turns": 3}]
    found = importing("old.jsonl", as_lines(ALONE, *({**ALONE, "query_id": f"w{n}", **w} for n, w in enumerate(wrong))))
    assert "1 × a record that makes no line: qrels.returns.md: " in found.said
    assert "1 × a record that makes no line: context_reference: " in found.said
    assert found.said.count("(old.jsonl:4)") >= 1
    assert [line["query_id"] for line in found.lines] == ["q1"]


def test_grades_among_fields_of_others_are_not_lost_in_silence(importing: Importing) -> None:
    found = importing("old.jsonl", as_lines({**ALONE, "difficulty": "hard"}))
    assert "1 × qrels: grades are imported where all fields of a record are ours" in found.said
    assert found.status == 1


def test_one_id_on_every_line_costs_no_more_than_others() -> None:
    writing, started = LineWriting("csv", "", Notes()), perf_counter()
    made = [writing.line_of(ImportedQuestion("q.csv", f"Why {n}?", "x"), PlacedGold()) for n in range(12_000)]
    assert perf_counter() - started < 8, "0.6 s when the machine is idle"
    assert [line["query_id"] for line in made if line][:3] == ["x", "x-2", "x-3"]
    assert len({line["query_id"] for line in made if line}) == 12_000


# Nested forms of well-known files become questions with their gold; what of them is not gold is counted.

FEES = "Express delivery costs €9.90 in Zone 1 and takes one day."
PUBLISHED_QUOTE = Evidence("returns.md", "You can return a lamp within **45 days** of delivery.")
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
    assert (first.query.query_id, first.ground_truth, first.evidence) == ("1", "45 days", (PUBLISHED_QUOTE,))
    assert (second.answerable, second.evidence, second.query_type) == (False, (), "negative")
    assert found.lines[1]["metadata"]["paragraph_without_answer"] == RETURNS
    assert {line["metadata"]["title"] for line in found.lines} == {"Shop"}
    assert "1 × answer_start: it is beside the ground truth" in found.said
    assert "1 × further right answers" in found.said
    assert ("1 × version: it is beside the records" in found.said) == is_published


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
    assert (found.cases[0].evidence, found.status) == ((PUBLISHED_QUOTE,), 0)
    assert "1 × paragraphs that do not support the answer" in found.said


def test_what_hotpot_does_not_have_is_named(importing: Importing) -> None:
    row = {"question": ASKED, "answer": "45 days", "context": [["Rugs", ["No."]]]}
    found = importing("hotpot.json", json.dumps([row]))
    assert (found.status, "1 × context: items that are neither" in found.said) == (1, True)
    found = importing("hotpot.json", json.dumps([{**row, "supporting_facts": [["Rugs", 7], ["Gone", 0]]}]))
    assert (found.status, "2 × a supporting fact that no paragraph" in found.said) == (1, True)


def test_musique_has_its_supporting_paragraphs_as_evidence(importing: Importing) -> None:
    paragraphs = [
        {"idx": 0, "title": "Returns", "paragraph_text": RETURNS, "is_supporting": True},
        {"idx": 1, "title": "Rugs", "paragraph_text": FEES, "is_supporting": False},
    ]
    row = {"id": "2hop", "question": ASKED, "answer": "45 days", "answerable": True, "paragraphs": paragraphs}
    found = importing("musique.jsonl", json.dumps(row))
    assert found.cases[0].evidence == (PUBLISHED_QUOTE,)


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
    assert found.cases[0].evidence == (PUBLISHED_QUOTE,)
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


# What a file of somebody else names is read from its own folder, whatever names it and however it leads elsewhere.

CANARY = "private-canary"
CARD = "---\nconfigs:\n- config_name: default\n  data_files:\n  - {split: test, path: %s}\n---\n"
QUESTION = "- vars: {question: Why?}\n"
PLACES = {
    "default": "defaultTest: NAMED\ntests:\n" + QUESTION,
    "tests": "tests: NAMED\n",
    "listed tests": "tests:\n- NAMED\n" + QUESTION,
    "path of tests": "tests:\n- {path: 'NAMED'}\n" + QUESTION,
    "scenario": "scenarios:\n- config: NAMED\n  tests:\n  - vars: {question: Why?}\n",
    "variables": "tests:\n- vars: NAMED\n" + QUESTION,
    "listed variables": "tests:\n- vars: [NAMED]\n" + QUESTION,
    "variable": "tests:\n- vars: {question: Why?, order: NAMED}\n",
    "assertion": "tests:\n- vars: {question: Why?}\n  assert: [{type: is-json, value: NAMED}]\n",
    "assertion list": "tests:\n- vars: {question: Why?}\n  assert: [{type: icontains-any, value: [NAMED]}]\n",
}
"""Each place of a config of promptfoo that may name a file."""
TEXTS = ("variable", "assertion", "assertion list")
FILE = "file://"


@pytest.fixture
def outside(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder beside that of the config, and in that one what leads there."""
    folder = tmp_path_factory.mktemp("outside")
    said = {"question": CANARY, "vars": {"question": CANARY, "private": CANARY}, "metadata": {"k": CANARY}}
    (folder / "secret.json").write_text(json.dumps(said))
    beside = tmp_path / "set"
    beside.mkdir()
    (beside / "link.json").symlink_to(folder / "secret.json")
    (beside / "linked").symlink_to(folder)
    (beside / "circle.json").symlink_to("circle.json")
    (beside / "device.json").symlink_to("/dev/zero")
    os.mkfifo(beside / "pipe.json")
    return folder


FILES_NAMED_NAMES = [
    "file://OUTSIDE/secret.json", "OUTSIDE/secret.json", "file://../../BESIDE/secret.json", "file://./../../BESIDE/secret.json",
    "file://linked/../BESIDE/secret.json", "file://link.json", "file://linked/secret.json", "file://circle.json",
    "file://device.json", "file://pipe.json", "file:///dev/zero.json", "file://..\\\\..\\\\BESIDE\\\\secret.json",
]  # fmt: skip


@pytest.mark.parametrize(
    ("place", "name"),
    # A variable or a value that does not begin with file:// is a text.
    [(place, name) for place in PLACES for name in FILES_NAMED_NAMES if FILE in name or place not in TEXTS],
)
def test_a_config_reads_nothing_outside_of_its_folder(
    importing: Importing, outside: Path, place: str, name: str
) -> None:
    named = name.replace("OUTSIDE", str(outside)).replace("BESIDE", outside.name)
    found = importing("set/c.yaml", PLACES[place].replace("NAMED", json.dumps(named).strip('"')), "--from", "promptfoo")
    assert CANARY not in json.dumps(found.lines) + found.said
    assert found.status, found.said  # nothing is left out in silence
    assert Path(named.replace("\\", "/")).name.removeprefix("..") in found.said


@pytest.mark.parametrize("pattern", ["linked/*.json", "../../outside*/secret.json", "*.json", "/*/secret.json"])
def test_no_pattern_leads_out_of_the_folder(importing: Importing, outside: Path, pattern: str) -> None:
    found = importing("set/c.yaml", f"tests: file://{pattern}\n", "--from", "promptfoo")
    assert CANARY not in json.dumps(found.lines) + found.said
    assert found.status == 2


@pytest.mark.parametrize(
    "path",
    ["../../BESIDE/secret.json", "OUTSIDE/secret.json", "link.json", "linked/*.json", "pipe.json", "hf://a/b.json"],
)
def test_a_data_set_reads_nothing_outside_of_its_folder(importing: Importing, outside: Path, path: str) -> None:
    named = path.replace("OUTSIDE", str(outside)).replace("BESIDE", outside.name)
    found = importing("set/README.md", CARD % named, "--from", "hf", kb=False)
    found = importing("set", None, "--from", "hf")
    assert CANARY not in json.dumps(found.lines) + found.said
    assert found.status == 2
    assert named.replace("*", "secret") in found.said or named in found.said


def test_a_data_set_without_a_card_is_not_led_out_by_links(importing: Importing, outside: Path) -> None:
    found = importing("set", None, "--from", "hf")
    assert found.status == 2
    assert CANARY not in found.said
    assert "Name one of its files: none that is read" in found.said


def test_a_snapshot_of_the_hub_has_links_to_its_own_blobs(importing: Importing, tmp_path: Path) -> None:
    blobs, snapshot = tmp_path / "repo" / "blobs", tmp_path / "repo" / "snapshots" / "abc"
    blobs.mkdir(parents=True)
    snapshot.mkdir(parents=True)
    (blobs / "1f").write_text('{"question": "Why?", "answer": "So."}\n')
    (snapshot / "q.jsonl").symlink_to("../../blobs/1f")
    (snapshot / "README.md").write_text(CARD % "q.jsonl")
    assert [line["query"] for line in importing("repo/snapshots/abc", None, "--from", "hf").lines] == ["Why?"]


def test_a_link_within_the_folder_is_followed(importing: Importing, outside: Path, tmp_path: Path) -> None:
    (tmp_path / "set" / "deep").mkdir()
    (tmp_path / "set" / "deep" / "tests.yaml").write_text(QUESTION)
    (tmp_path / "set" / "near.yaml").symlink_to("deep/tests.yaml")
    found = importing("set/c.yaml", "tests: file://near.yaml\n", "--from", "promptfoo")
    assert [line["query"] for line in found.lines] == ["Why?"]
