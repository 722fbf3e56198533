"""Lines and files of judged scores."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rag_harness.records.files import ScoreFile, take_over_scores
from rag_harness.records.scores import BEGIN, Author, ScoreLine, parse_score, read_scores, row_digest, text_digest
from tests.unit.rows import make_chunk, make_row

LINE = ScoreLine("faithfulness", 1, "e3", "q1", "row", "gold", Author("mock", "m", "1"), 0.5, detail={"claims": []})
FAILED = replace(LINE, value=None, reason="the judge is away")


def test_a_score_comes_back_as_it_was() -> None:
    for line in (LINE, FAILED, replace(LINE, value=None, undefined=True, reason="no context")):
        assert parse_score(line.line()) == line
        assert line.line().startswith(BEGIN)


@pytest.mark.parametrize("detail", [{"a": float("nan")}, {"a": object}, {"a": "\ud800"}])
def test_a_detail_that_json_cannot_hold_loses_no_score(detail: dict[str, Any]) -> None:
    back = parse_score(replace(LINE, detail=detail).line())
    assert back is not None
    assert back.value == 0.5


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b"3", b'{"measure": "f"}', LINE.line()[:-9]])
def test_what_is_no_score_is_none(line: bytes) -> None:
    assert parse_score(line) is None


@pytest.mark.parametrize("value", ["NaN", "Infinity", "1e999", "1" + "0" * 400, '"half"', "[]"])
def test_a_value_that_is_no_finite_number_makes_no_score(value: str) -> None:
    assert parse_score(LINE.line().replace(b'"value":0.5', f'"value":{value}'.encode())) is None


def test_a_reader_ignores_keys_of_a_newer_release() -> None:
    assert parse_score(json.dumps({**json.loads(LINE.line()), "more": 1})) == LINE


@pytest.mark.parametrize(
    "changed",
    [
        {"query": "Another?"},
        {"llm_answer": "31 days"},
        {"abstained": True},
        {"ground_truth": "31 days"},
        {"retrieved_chunks": [make_chunk("returns.md#chunk_0", text="31 days.")]},
        {"retrieved_chunks": []},
    ],
)
def test_the_digest_of_a_row_changes_with_what_is_judged(changed: dict[str, Any]) -> None:
    assert row_digest(make_row(**changed)) != row_digest(make_row())


def test_the_digest_of_a_row_is_that_of_nothing_else() -> None:
    assert row_digest(make_row(total_time_ms=99.0, fingerprint="bbbb", model="other")) == row_digest(make_row())
    assert text_digest(["ab", "c"]) != text_digest(["a", "bc"])


def test_a_file_takes_each_score_once_and_a_failure_gives_way(tmp_path: Path) -> None:
    file = ScoreFile(tmp_path / "scores" / "e3.jsonl")
    assert file.append(FAILED.line()) == FAILED
    assert file.append(FAILED.line()) is None
    file.close()
    again = ScoreFile(file.file)
    assert again.append(LINE.line()) == LINE
    again.close()
    assert list(read_scores(file.file)) == [LINE]


def test_scores_of_another_judge_stay_and_those_of_an_older_row_go(tmp_path: Path) -> None:
    path = tmp_path / "scores" / "e3.jsonl"
    other, older = replace(LINE, author=Author("mock", "m", "2")), replace(LINE, row="older")
    first = ScoreFile(path)
    for line in (older, replace(older, query_id="q2")):
        first.append(line.line())
    first.close()
    second = ScoreFile(path)
    for line in (LINE, other):
        second.append(line.line())
    second.close()
    assert set(map(str, read_scores(path))) == set(map(str, (replace(older, query_id="q2"), LINE, other)))
    assert list(read_scores(tmp_path / "previous" / "scores-e3.jsonl")) == [older]


def test_a_torn_line_swallows_no_score(tmp_path: Path) -> None:
    path = tmp_path / "scores" / "e3.jsonl"
    path.parent.mkdir()
    path.write_bytes(LINE.line()[:40])
    file = ScoreFile(path)
    file.append(LINE.line())
    file.close()
    assert list(read_scores(path)) == [LINE]
    path.write_bytes(LINE.line()[:40])
    assert take_over_scores(path, [(LINE, LINE.line())]) == 1
    assert list(read_scores(path)) == [LINE]


def test_what_is_added_leaves_what_was_there_to_the_byte(tmp_path: Path) -> None:
    path = tmp_path / "scores" / "e3.jsonl"
    path.parent.mkdir()
    path.write_bytes(LINE.line())
    file = ScoreFile(path)
    file.append(replace(LINE, query_id="q2").line())
    assert path.read_bytes().splitlines(keepends=True) == [LINE.line(), replace(LINE, query_id="q2").line()]
    file.close()
    assert take_over_scores(path, [(each := replace(LINE, query_id="q3"), each.line())]) == 1
    assert path.read_bytes().count(b"\n") == 3


def test_overwriting_starts_anew(tmp_path: Path) -> None:
    for query in ("q1", "q2"):
        file = ScoreFile(tmp_path / "e3.jsonl", overwrite=True)
        file.append(replace(LINE, query_id=query).line())
        file.close()
    assert [line.query_id for line in read_scores(tmp_path / "e3.jsonl")] == ["q2"]


def test_what_a_journal_had_is_taken_over_where_it_is_new(tmp_path: Path) -> None:
    path = tmp_path / "scores" / "e3.jsonl"
    assert take_over_scores(path, [(FAILED, FAILED.line())]) == 1
    assert take_over_scores(path, [(LINE, LINE.line())]) == 1
    assert take_over_scores(path, [(FAILED, FAILED.line()), (LINE, LINE.line())]) == 0
    assert list(read_scores(path)) == [FAILED, LINE]  # of the same key the last one holds


TOLD: dict[str, Any] = {"conversation": "c1", "turn": 2, "history": [{"role": "user", "content": "Do you sell lamps?"}]}


def test_what_was_said_before_a_turn_is_a_part_of_what_was_judged() -> None:
    row = make_row()
    chunks = [chunk.text for chunk in row.retrieved_chunks]
    alone = text_digest([row.query, row.llm_answer, "", row.ground_truth, *chunks])
    # Rows without a history keep the digest that their stored scores have.
    assert row_digest(row) == row_digest(make_row(inputs={"conversation": "c1", "turn": 1})) == alone
    # A service is asked with a history, and nobody numbers its turns.
    assert row_digest(make_row(inputs={"history": TOLD["history"]})) == row_digest(make_row(inputs=TOLD))
    turn = row_digest(make_row(inputs=TOLD))
    other = {**TOLD, "history": [{"role": "assistant", "content": "Do you sell lamps?"}]}
    assert len({turn, alone, row_digest(make_row(inputs=other))}) == 3
