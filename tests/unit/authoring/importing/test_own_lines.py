"""Lines of ``queries.jsonl`` that are imported are the lines that they were."""

from __future__ import annotations

import json
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest

from rag_harness.authoring.importing.importer import LineWriting, PlacedGold
from rag_harness.authoring.importing.records import ImportedQuestion, Notes
from tests.unit.authoring.importing.conftest import Importing

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
