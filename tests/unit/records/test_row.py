"""A row survives the way to its line and back, whatever a model said."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from rag_harness.records.row import Candidate, ExperimentResult, parse_row, row_schema, rows_among, rows_in
from tests.unit.rows import failed_row, make_chunk, make_row

SCHEMA_FILE = Path(__file__).parents[3] / "docs" / "schemas" / "result.schema.json"


VALIDATOR = jsonschema.Draft202012Validator(row_schema())

any_text = st.text(st.characters(exclude_categories=[]))  # lone surrogates too
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | any_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=8,
)


@given(text=any_text, metadata=st.dictionaries(any_text, json_values, max_size=3))
def test_a_row_survives_its_line(text: str, metadata: dict[str, Any]) -> None:
    chunks = [make_chunk(text, text=text)]
    row = make_row(query_id=text, llm_answer=text, reasoning_steps=[text], retrieved_chunks=chunks, metadata=metadata)
    line = row.line()
    assert line.count("\n") == 1
    assert line.endswith("\n")
    assert parse_row(line.encode()) == row
    VALIDATOR.validate(json.loads(line))


@given(st.text())
def test_text_that_can_be_stored_is_not_touched(text: str) -> None:
    assert make_row(llm_answer=text).llm_answer == text


@pytest.mark.parametrize(
    ("given_", "kept"),
    [("a\ud800b", "a\ufffdb"), ("\udc00", "\ufffd"), ("\ud83d\ude00", "\U0001f600"), ("\ufeffa", "\ufeffa")],
)
def test_a_lone_surrogate_becomes_a_replacement_character(given_: str, kept: str) -> None:
    row = make_row(llm_answer=given_, metadata={given_: [given_]}, retrieved_chunks=[make_chunk("c", text=given_)])
    assert (row.llm_answer, row.metadata, row.retrieved_chunks[0].text) == (kept, {kept: [kept]}, kept)


def test_metadata_that_json_has_no_word_for_is_stored_as_text() -> None:
    row = make_row(metadata={"path": Path("a"), "nan": math.nan, 3: (1, True)})
    assert row.metadata == {"path": "a", "nan": None, "3": [1, True]}


def test_scores_are_shared_where_they_are_right_and_refused_where_not() -> None:
    scores = {"dense": 0.5}
    assert Candidate(chunk_id="c", score=0.5, scores=scores).scores is scores
    assert Candidate(chunk_id="c", score=0.5, scores={"dense": 1}).scores == {"dense": 1.0}
    wrong: list[Any] = [{"dense": math.nan}, {"dense": "much"}, {1: 0.5}]
    for each in wrong:
        with pytest.raises(ValidationError):
            Candidate(chunk_id="c", score=0.5, scores=each)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("name", ["total_time_ms", "retrieval_time_ms", "score", "rerank_score"])
def test_nan_and_infinity_are_refused(name: str, number: float) -> None:
    changes: dict[str, Any] = {name: number}
    if "score" in name:
        changes = {"retrieved_chunks": [make_chunk("a.md#chunk_0", **changes)]}
    with pytest.raises(ValidationError):
        make_row(**changes)


def test_a_negative_time_is_refused() -> None:
    with pytest.raises(ValidationError):
        make_row(llm_time_ms=-1)


def test_unknown_keys_are_ignored() -> None:
    row = make_row()
    newer = json.loads(row.line()) | {"from_a_newer_release": {"x": 1}}
    newer["usage"]["audio_tokens"] = 5
    assert parse_row(json.dumps(newer)) == row


def test_missing_keys_are_not_ignored() -> None:
    older = json.loads(make_row().line())
    del older["llm_answer"]
    with pytest.raises(ValidationError, match="llm_answer"):
        parse_row(json.dumps(older))


@pytest.mark.parametrize("torn", [0, 1, 40, -2])
def test_a_torn_last_line_is_passed_over(tmp_path: Path, torn: int) -> None:
    rows = [make_row(query_id="q1"), make_row(query_id="q2", llm_answer="\u2028")]
    file = tmp_path / "rows.jsonl"
    file.write_bytes("".join(row.line() for row in rows).encode() + make_row(query_id="q3").line().encode()[:torn])
    assert list(rows_in(file)) == rows


def test_a_whole_last_line_without_its_newline_is_read(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(make_row().line().rstrip("\n"))
    assert list(rows_in(tmp_path / "rows.jsonl")) == [make_row()]


def test_what_only_looks_for_rows_passes_over_every_line_that_is_none(tmp_path: Path) -> None:
    first, second, file = make_row(query_id="q1"), make_row(query_id="q2"), tmp_path / "e1.jsonl"
    file.write_text(f"{first.line()}no row\n\n{second.line()}{first.line()[:20]}")
    assert list(rows_in(file)) == [first, second]
    assert list(rows_in(tmp_path / "none.jsonl")) == []


def test_a_missing_file_has_no_rows(tmp_path: Path) -> None:
    assert list(rows_in(tmp_path / "rows.jsonl")) == []


def test_what_a_row_says_of_itself() -> None:
    good, bad = make_row(), failed_row()
    assert (good.trial_id, good.ok, good.why) == ("e3-q1", True, "")
    assert (bad.ok, bad.why) == (False, "generate: ModelCallError: 503")


@pytest.mark.parametrize(
    "row",
    [
        make_row(),
        failed_row(),
        make_row(reasoning_steps=["one"]),
        make_row(retrieved_chunks=[], candidates=[], retrieval_time_ms=None, rerank_time_ms=None, llm_time_ms=None),
        make_row(candidates=[{"chunk_id": "a", "score": 1, "rerank_score": None}], query_type="negative"),
    ],
)
def test_the_schema_fits_every_kind_of_row(row: ExperimentResult) -> None:
    VALIDATOR.validate(json.loads(row.line()))


@pytest.mark.parametrize("change", [{"status": "fine"}, {"query_type": 3}, {"total_time_ms": -1}, {"error": 3}])
def test_the_schema_refuses_what_is_no_row(change: dict[str, Any]) -> None:
    assert not VALIDATOR.is_valid(json.loads(make_row().line()) | change)


def test_the_schema_says_of_every_null_what_it_means() -> None:
    schema = row_schema()
    models = [schema, *schema["$defs"].values()]
    fields = {name: each for model in models for name, each in model.get("properties", {}).items()}
    nullable = {name: each for name, each in fields.items() if {"type": "null"} in each.get("anyOf", [])}
    assert set(nullable) == {
        *("reasoning_steps", "retrieval_time_ms", "rerank_time_ms", "llm_time_ms", "ttft_ms", "error", "rerank_score"),
        *("cost_usd", "ranking", "confidence", "value", "threshold", "version", "date", "markup", "page", "last_page"),
        *("module", "chapter", "url", "score", "user", "retrieves", "correct"),
    }
    assert all(
        "null where" in each["description"] or "absent where" in each["description"] for each in nullable.values()
    )


def test_the_published_schema_is_that_of_the_code() -> None:
    """Write it anew: rag-harness schema result -o docs/schemas/result.schema.json."""
    assert json.loads(SCHEMA_FILE.read_text(encoding="utf-8")) == row_schema()


@pytest.mark.parametrize(("kind", "answerable"), [("negative", False), ("direct", True)])
def test_whether_an_older_row_s_query_can_be_answered_is_told_by_its_type(kind: str, answerable: bool) -> None:
    says_nothing_of_it = json.loads(make_row(query_type=kind).line())
    del says_nothing_of_it["answerable"]
    assert parse_row(json.dumps(says_nothing_of_it)).answerable is answerable
    assert json.loads(parse_row(json.dumps(says_nothing_of_it)).text)["answerable"] is answerable
    assert parse_row(json.dumps({**says_nothing_of_it, "answerable": not answerable})).answerable is not answerable


def test_rows_of_some_queries_are_found_however_their_lines_are_written(tmp_path: Path) -> None:
    file, said = tmp_path / "e3.jsonl", make_row(query_id="q3").model_dump(mode="json")
    others = json.dumps({"experiment": "e3", **{key: said[key] for key in reversed(said)}})
    escaped = make_row(query_id='q"4').line()
    file.write_text(make_row(query_id="q1").line() + make_row(query_id="ü2").line() + others + "\n" + escaped + "{}\n")
    assert [row.query_id for row in rows_among(file, {"ü2", "q3", 'q"4', "q9"})] == ["ü2", "q3", 'q"4']
