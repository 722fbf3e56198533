"""`rag-harness traces score`: traces of a file are judged, written as rows, and named where they cannot be read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rag_harness.__main__ import main
from rag_harness.data.queries import read_queries
from rag_harness.records.row import parse_row
from tests.unit.pipelines.otel.exported.files import BEGIN, LAMP, QUESTION, RUG, SAID, langfuse, otlp, phoenix, written

SCORE = ["traces", "score", "t.jsonl", "-o", "scores.jsonl", "--rows", "rows.jsonl", "--profile=mock"]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def broken() -> dict[str, Any]:
    """Return a trace whose search tells nothing."""
    names = ("document__id", "document__content", "document__score")
    return otlp(9, **{f"retrieval__documents__{n}__{name}": None for n in (0, 1) for name in names})


def without_question() -> dict[str, Any]:
    """Return a trace of nothing but a search."""
    request = otlp(8)
    scope = request["resourceSpans"][0]["scopeSpans"][0]
    scope["spans"] = [scope["spans"][1]]
    return request


def test_traces_of_several_tools_become_rows_and_scores(capsys: pytest.CaptureFixture[str]) -> None:
    Path("data/kb").mkdir(parents=True)
    Path("data/kb/returns.md").write_text(f"# Returns\n\n{LAMP}\n")
    written(Path("t.jsonl"), otlp(1), *phoenix(2), langfuse(3))
    assert main(SCORE) == 0
    assert "t.jsonl: 3 traces, 3 answered, 0 failed, 0 not read" in capsys.readouterr().out
    scores = [json.loads(line) for line in Path("scores.jsonl").read_text().splitlines()]
    assert [line["id"][-4:] for line in scores] == ["0001", "0002", "lf-3"]
    assert all(line["scores"]["faithfulness"] is not None for line in scores)
    rows = [parse_row(line) for line in Path("rows.jsonl").read_text().splitlines()]
    for row in rows:
        assert (row.experiment, row.query, row.llm_answer, row.ok) == ("traces", QUESTION, SAID, True)
        assert [stage.does for stage in row.stages] == ["retrieve", "generate"]
        assert [chunk.text for chunk in row.retrieved_chunks] == [LAMP]
        assert row.candidates[0].chunk_id.startswith("returns.md#")
        assert row.cost_usd is not None
    assert rows[2].cost_usd == 0.002


def test_what_cannot_be_read_is_named_and_the_status_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    written(Path("t.jsonl"), otlp(1), broken(), without_question())
    assert main(SCORE) == 1
    said = capsys.readouterr().out
    assert "3 traces, 1 answered, 0 failed, 2 not read" in said
    assert "9: Span 'RETRIEVER' is one of a search or a reranker, and does not tell what it returned" in said
    assert "8: Its root span 'RETRIEVER' tells no question" in said
    assert len(Path("rows.jsonl").read_text().splitlines()) == 1


def test_a_trace_that_failed_is_a_row_with_its_error(capsys: pytest.CaptureFixture[str]) -> None:
    failed = {
        **{"id": "root", "traceId": "lf-1", "type": "SPAN", "name": "shop", "input": QUESTION},
        **{"startTime": "2023-11-14T22:13:20Z", "level": "ERROR", "statusMessage": "no model"},
    }
    written(Path("t.jsonl"), failed, otlp(2))
    assert main(SCORE) == 0
    assert "2 traces, 1 answered, 1 failed, 0 not read" in capsys.readouterr().out
    row, _ = (parse_row(line) for line in Path("rows.jsonl").read_text().splitlines())
    assert row.why == "pipeline: Error: no model"


@pytest.mark.parametrize("says_itself", [True, False])
def test_a_root_span_that_failed_is_no_answer_whatever_its_model_has_said(
    says_itself: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    request = otlp(1)
    root = request["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    root["status"] = {"code": 2, "message": "the reply was not sent"}
    if not says_itself:
        root["attributes"] = [each for each in root["attributes"] if each["key"] != "output.value"]
    written(Path("t.jsonl"), request, otlp(2))
    assert main(SCORE) == 0
    assert "2 traces, 1 answered, 1 failed, 0 not read" in capsys.readouterr().out
    row, _ = (parse_row(line) for line in Path("rows.jsonl").read_text().splitlines())
    assert (row.why, row.llm_answer) == ("pipeline: Error: the reply was not sent", "")
    assert len(Path("scores.jsonl").read_text().splitlines()) == 1


def test_the_time_is_that_of_the_root_span_though_another_has_lost_its_parent() -> None:
    request = otlp(1)
    scope = request["resourceSpans"][0]["scopeSpans"][0]
    root, search, model = scope["spans"]
    # An orphan, by a clock that is late, that stands before the root.
    search |= {"parentSpanId": "f" * 16, "startTimeUnixNano": str(BEGIN - 10**9), "endTimeUnixNano": str(BEGIN)}
    scope["spans"] = [search, model, root]
    written(Path("t.jsonl"), request)
    assert main(SCORE) == 0
    (row,) = (parse_row(line) for line in Path("rows.jsonl").read_text().splitlines())
    assert (row.total_time_ms, row.query, row.llm_answer) == (100, QUESTION, SAID)


def test_nothing_read_writes_no_scores() -> None:
    written(Path("t.jsonl"), broken())
    assert main(SCORE) == 1
    assert not Path("scores.jsonl").exists()


def test_a_file_that_is_none_ends_with_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    written(Path("t.jsonl"), otlp(1), "nonsense")
    assert main(SCORE) == 2
    assert "t.jsonl:2: This is not JSON" in capsys.readouterr().err


def test_questions_of_a_file_are_cases_to_label(capsys: pytest.CaptureFixture[str]) -> None:
    written(Path("t.jsonl"), otlp(1), *phoenix(2), broken())
    assert main(["queries", "from-traces", "--file", "t.jsonl", "-o", "asked.jsonl"]) == 0
    assert "1 of 1 questions (3 traces of t.jsonl, 0 not read) -> asked.jsonl" in capsys.readouterr().out
    (line,) = Path("asked.jsonl").read_text().splitlines()
    row = json.loads(line)
    assert (row["query"], row["query_type"], row["metadata"]["asked"]) == (QUESTION, "unlabelled", 3)
    seen = row["metadata"]["seen"]
    assert seen["answer_given"] == SAID
    assert len(seen["trace_ids"]) == 3
    assert [case.query.text for case in read_queries(Path("asked.jsonl"))] == [QUESTION]


def test_a_file_has_no_collection_and_no_state(capsys: pytest.CaptureFixture[str]) -> None:
    written(Path("t.jsonl"), without_question())
    assert main(["queries", "from-traces", "--file", "t.jsonl", "--since", "7d", "-o", "asked.jsonl"]) == 2
    assert "--since is about the traces of a service" in capsys.readouterr().err
    assert main(["queries", "from-traces", "--file", "t.jsonl", "-o", "asked.jsonl"]) == 1
    said = capsys.readouterr().out
    assert "not read: 00000000000000000000000000000008: Its root span" in said
    assert "nothing is written" in said


def test_the_search_s_texts_are_those_of_the_sources() -> None:
    written(Path("t.jsonl"), otlp(1))
    main(["queries", "from-traces", "--file", "t.jsonl", "-o", "asked.jsonl"])
    (line,) = Path("asked.jsonl").read_text().splitlines()
    assert [each["text"] for each in json.loads(line)["metadata"]["seen"]["sources_shown"]] == [LAMP]
    assert RUG not in line
