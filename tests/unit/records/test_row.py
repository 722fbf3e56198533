"""A row survives the way to its line and back, with its scores, its case and why it failed."""

from __future__ import annotations

import json
import math
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from rag_harness.core.errors import DataError
from rag_harness.core.types import Case, ExpectedTool, Query
from rag_harness.evaluation.measures import measure_named
from rag_harness.records.cases import CaseFile, SaidMessage, chat_before, inputs_beside, stored_case, write_cases
from rag_harness.records.expectations import expectations_of
from rag_harness.records.files import ScoreFile, take_over_scores
from rag_harness.records.row import Candidate, ExperimentResult, parse_row, row_schema, rows_among, rows_in
from rag_harness.records.scores import BEGIN, Author, ScoreLine, parse_score, read_scores, row_digest, text_digest
from tests.unit.rows import failed_row, make_chunk, make_row

# A row survives the way to its line and back, whatever a model said.

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


# What a row says of its failure, or of its wrong answer: what was expected, and what came.

BY_TRUTH = {"correct": False, "correct_by": "ground_truth"}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, ""),
        ({"correct": True, "correct_by": "ground_truth"}, ""),
        ({**BY_TRUTH, "ground_truth": "45 days"}, "wrong: expected '45 days'; found '30 days [Source 1].'"),
        ({**BY_TRUTH, "ground_truth": "vrátit do\n45 dní"}, "wrong: expected 'vrátit do 45 dní'; found '30 days [S"),
        ({**BY_TRUTH, "ground_truth": " "}, "wrong: expected an answer; found '30 days [Source 1].'"),
        (
            {"correct": False, "correct_by": "declined", "answerable": False, "ground_truth": ""},
            "wrong: expected to decline, because the documents do not answer it; found '30 days [Source 1].'",
        ),
        (
            {"correct": False, "correct_by": "expectations", "ground_truth": ""},
            "wrong: expected what the question's expectations say; found '30 days [Source 1].'",
        ),
        (
            {"correct": False, "correct_by": "expectations"},
            "wrong: expected what the question's expectations say, and '30 days'; found '30 days [Source 1].'",
        ),
    ],
)
def test_why(changes: dict[str, Any], said: str) -> None:
    why = make_row(**changes).why
    assert why.startswith(said)
    assert bool(why) == bool(said)


def test_a_failure_is_said_first() -> None:
    assert failed_row().why == "generate: ModelCallError: 503"


def test_a_long_answer_is_cut() -> None:
    assert len(make_row(**BY_TRUTH, llm_answer="word " * 4000).why) < 700


# Lines and files of judged scores.

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


# Cases that are kept beside rows, and what is damaged in them.

# Cases that are kept beside rows, and what is damaged in them.


@pytest.mark.parametrize(
    "damage",
    [
        {"labels": None},
        {"labels": {"a": 1}},
        {"qrels": {"a.md": "x"}},
        {"qrels": {"a.md": True}},
        {"answerable": {}},
        {"case_id": {"a": 1}},
        {"evidence": [{"filename": "a.md", "quote": 7}]},
    ],
)
def test_a_field_of_another_type_is_a_damaged_case(tmp_path: Path, damage: dict[str, object]) -> None:
    write_cases(tmp_path, "data", [stored_case(Case(Query("q1", "How long?"), qrels={"a.md": 1}))])
    file = CaseFile.place(tmp_path, "data")
    file.write_text(json.dumps({**json.loads(file.read_text()), **damage}) + "\n")
    with (
        pytest.raises(DataError, match=r"data.jsonl:1: no case: TypeError"),
        closing(CaseFile(tmp_path, "data")) as cases,
    ):
        _ = cases[0]


@pytest.mark.parametrize("damage", [{"query_id": []}, {"detail": [1]}, {"row": None}, {"reason": {}}, {"judge": 3}])
def test_a_score_with_a_field_of_another_type_is_none(damage: dict[str, object]) -> None:
    assert parse_score(json.dumps({**json.loads(LINE.line()), **damage})) is None


def test_what_a_case_demands_of_its_answers_comes_back_as_it_was_written(tmp_path: Path) -> None:
    raw = [{"not": {"contains": "refund", "case": True}, "weight": 2, "must": True}, {"number": 9, "unit": "days"}]
    (snapshot,) = expectations_of([{"snapshot": True, "case": True}])[0]
    answers = [None, "", "x" * 100_000]
    expected = (*expectations_of(raw)[0], *(replace(snapshot, was=was) for was in answers))
    case = Case(Query("q1", "How long?"), expect=expected)
    write_cases(tmp_path, "data", [stored_case(case), stored_case(Case(Query("q2", "Why?")))])
    lines = [json.loads(line) for line in CaseFile.place(tmp_path, "data").read_text().splitlines()]
    said = [{"snapshot": True, "case": True, **({} if was is None else {"was": was})} for was in answers]
    assert [each.get("expect") for each in lines] == [[{**raw[0], "weight": 2.0}, raw[1], *said], None]
    with closing(CaseFile(tmp_path, "data")) as cases:
        assert [each.case.expect for each in (cases[0], cases[1])] == [case.expect, ()]


def test_the_question_that_stands_alone_is_kept_with_its_case(tmp_path: Path) -> None:
    case = Case(Query("c1#2", "And the price?"), standalone="What does the lamp cost?")
    write_cases(tmp_path, "data", [stored_case(case), stored_case(Case(Query("q2", "Why?")))])
    lines = [json.loads(line) for line in CaseFile.place(tmp_path, "data").read_text().splitlines()]
    assert [each.get("standalone") for each in lines] == ["What does the lamp cost?", None]
    with closing(CaseFile(tmp_path, "data")) as cases:
        assert [each.case.standalone for each in (cases[0], cases[1])] == ["What does the lamp cost?", ""]


def test_a_case_keeps_what_its_metadata_say_in_short(tmp_path: Path) -> None:
    told = {"conversation": "c1", "turn": 2, "history": [{"role": "user", "content": "Hi"}]}
    metadata = {"turn_kind": "correction", "long": ["a", "list"], "part": "fit"}
    write_cases(
        tmp_path, "queries", [stored_case(Case(Query("c1#2", "?", told), ground_truth="No.", metadata=metadata))]
    )
    with closing(CaseFile(tmp_path, "queries")) as cases:
        back = cases[0]
    assert back.case.metadata == {"turn_kind": "correction", "part": "fit"}
    assert back.case.labels == back.labels
    # Measures that ask what a turn is must find it here: tables read their cases from this file.
    assert measure_named("correction").applies(back.case) == ""


def test_the_calls_that_a_case_expects_come_back_and_none_is_not_unsaid(tmp_path: Path) -> None:
    said = (ExpectedTool("price", {"sku": "T-18", "n": [1, None]}), ExpectedTool("page"), ExpectedTool("stop", {}))
    cases = [Case(Query(f"q{n}", "?"), tools=tools) for n, tools in enumerate((said, (), None))]
    write_cases(tmp_path, "data", map(stored_case, cases))
    with closing(CaseFile(tmp_path, "data")) as file:
        assert [file[n].case.tools for n in range(3)] == [said, (), None]
    place = CaseFile.place(tmp_path, "data")
    place.write_text(place.read_text().replace('"price"', "7"))
    with (
        pytest.raises(DataError, match=r"data.jsonl:1: no case: ValueError: tools: call 1: name is missing"),
        closing(CaseFile(tmp_path, "data")) as file,
    ):
        _ = file[0]


# What was said before a turn, of rows that this package wrote and of others.

PLACE = {"conversation": "c1", "turn": 2}
SAID = [{"role": "user", "content": "How long?"}, {"role": "assistant", "content": "Sorry.", "failed": True}]


def test_a_turn_has_what_was_said_before_it_and_which_reply_failed() -> None:
    query = Query("c1#2", "?", {**PLACE, "history": SAID, "plan": "gold"})
    assert chat_before(query) == [SaidMessage("user", "How long?"), SaidMessage("assistant", "Sorry.", failed=True)]
    assert inputs_beside(query) == {"plan": "gold"}


@pytest.mark.parametrize(
    "history", ["a text", [1], [{"role": "user"}], [{"role": 1, "content": "x"}], {"role": "user"}]
)
def test_what_is_no_list_of_messages_stays_an_input(history: Any) -> None:
    query = Query("c1#2", "?", {**PLACE, "history": history})
    assert chat_before(query) == []
    assert inputs_beside(query) == {"history": history}


@pytest.mark.parametrize("inputs", [{"history": SAID}, {"history": SAID, "conversation": "c1"}, {}])
def test_a_query_that_is_no_turn_keeps_all_its_inputs(inputs: dict[str, Any]) -> None:
    assert chat_before(Query("q1", "?", inputs)) == []
    assert inputs_beside(Query("q1", "?", inputs)) == inputs
