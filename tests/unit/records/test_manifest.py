"""What a run leaves beside its rows comes back as it was."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rag_harness.core.errors import DataError
from rag_harness.core.settings import Settings, masked
from rag_harness.core.types import Case, Evidence, Query
from rag_harness.records.cases import CaseFile, StoredCase, stored_case, write_cases
from rag_harness.records.manifest import (
    RunManifest,
    SuiteRecord,
    chooser_of,
    commit_of,
    ids_or_all,
    of_run,
    read_manifest,
    write_manifest,
)
from rag_harness.records.row import ExperimentResult
from rag_harness.records.scores import Author, ScoreLine, row_digest
from rag_harness.records.validation import check_results
from tests.unit.rows import failed_row, make_row
from tests.unit.suite_tables import golden_row

CASE = Case(
    Query("q1", "Größe?\u2028", {"selected_text": "a"}),
    "multi_hop",
    "30 days",
    {"a.md": 2, "b.md": 1},
    (Evidence("a.md", "30"),),
    False,
    {"difficulty": "hard", "n": 3},
)


def test_a_manifest_comes_back_and_shows_no_key(tmp_path: Path) -> None:
    record = SuiteRecord(data="queries", file="e3.jsonl", fingerprints=["a"], total=3, selected="all", lost=["q1"])
    settings = masked(Settings(openai_api_key="sk-secret", gates_elsewhere=(("e3: recall@5 >= 1", "why"),)))
    write_manifest(tmp_path, RunManifest(date="2026-01-01", settings=settings, suites={"e3": record}))
    assert read_manifest(tmp_path).suites == {"e3": record}
    assert "sk-secret" not in (tmp_path / "run.json").read_text()


def test_ids_are_all_where_none_is_missing() -> None:
    assert ids_or_all(["a", "b"], 2) == "all"
    assert ids_or_all(["a"], 2) == ["a"]
    assert ids_or_all([], 0) == []
    assert chooser_of("all")("x")
    assert [chooser_of(["a"])(name) for name in "ab"] == [True, False]


@pytest.mark.parametrize("gone", ["lost", "not_run", "settled"])
def test_a_row_is_of_a_run_that_has_made_it_and_waited_for_its_case(gone: str) -> None:
    record = SuiteRecord(
        data="queries", file="e1.jsonl", fingerprints=["aaaa"], total=3, selected=["q1", "q2"], **{gone: ["q2"]}
    )
    rows = [make_row(query_id=query_id, fingerprint="aaaa") for query_id in ("q1", "q2", "q3")]
    rows.append(make_row(query_id="q1", fingerprint="bbbb"))
    assert [of_run(record)(row) for row in rows] == [True, False, False, False]


def test_the_commit_is_empty_where_there_is_none(tmp_path: Path) -> None:
    assert commit_of(tmp_path / "nowhere") == ""


def test_cases_come_back_one_by_one_with_their_gold(tmp_path: Path) -> None:
    golden = Case(Query("g1", "?"), qrels={"b.md": 1}, metadata={"kind": "plain"})
    entry = StoredCase(golden, {"kind": "plain"}, ("b.md#x",), "why", "passage")
    write_cases(tmp_path, "mixed", [stored_case(CASE), entry])
    cases = CaseFile(tmp_path, "mixed")
    assert (cases.ids, cases.position) == (["q1", "g1"], {"q1": 0, "g1": 1})
    assert cases.labels == [{"difficulty": "hard", "n": "3", "query_type": "multi_hop"}, {"kind": "plain"}]
    assert cases[1] == entry
    first = cases[0].case
    assert (first.query, first.query_type, first.ground_truth) == (CASE.query, "multi_hop", "30 days")
    assert (first.qrels, first.evidence, first.answerable) == (CASE.qrels, CASE.evidence, False)
    cases.close()


def test_a_line_that_is_no_case_is_named(tmp_path: Path) -> None:
    write_cases(tmp_path, "queries", [stored_case(CASE)])
    with (tmp_path / "cases" / "queries.jsonl").open("a") as file:
        file.write("[]\n")
    with pytest.raises(DataError, match=r"queries\.jsonl:2: no case"):
        CaseFile(tmp_path, "queries")


def test_the_text_of_a_row_is_written_once_and_is_its_own() -> None:
    row = make_row()
    assert row.line() == row.text + "\n"
    assert row.text is row.text
    assert row == make_row()
    changed = row.model_copy(update={"query_id": "q2"})
    assert '"query_id":"q2"' in changed.line()
    assert '"query_id":"q1"' in row.line()


def test_a_retrieval_without_an_answer_is_a_whole_row(tmp_path: Path) -> None:
    (tmp_path / "golden.jsonl").write_text(golden_row("g1", ["a.md"]).line())
    (check,) = check_results(tmp_path)
    assert check.problems == []
    (tmp_path / "golden.jsonl").write_text(golden_row("g1", ["a.md"], experiment="e3").line())
    assert "no answer" in check_results(tmp_path)[0].problems[0]


# ``rag-harness results validate`` finds what is wrong with a result file.


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "e3.jsonl"


def problems(file: Path, *rows: ExperimentResult, wanted: tuple[str, ...] = ()) -> list[str]:
    file.write_text("".join(row.line() for row in rows))
    (check,) = check_results(file, wanted)
    assert check.line().endswith("ok" if not check.problems else f"{len(check.problems)} problems")
    return [each.removeprefix(f"{file}: ") for each in check.problems]


def test_a_whole_file_has_no_problem(file: Path) -> None:
    assert problems(file, make_row(query_id="q1"), failed_row(query_id="q2"), wanted=("q1", "q2")) == []
    assert check_results(file)[0].line() == f"{file}: 2 rows, 1 with status error: ok"


def test_lines_that_are_no_rows_are_named(file: Path) -> None:
    file.write_text(make_row().line() + "{}\nnonsense\n" + make_row().line()[:50])
    (check,) = check_results(file)
    assert check.rows == 1
    assert check.problems == [
        f"{file}:2: query_id: Field required",
        f"{file}:3: Invalid JSON: expected ident at line 1 column 2",
        f"{file}:4: the line is torn, as a killed run leaves it",
    ]


def test_a_query_with_two_rows(file: Path) -> None:
    assert problems(file, make_row(), make_row()) == ["e3-q1 has 2 rows"]


def test_mixed_fingerprints(file: Path) -> None:
    rows = [make_row(query_id=each, fingerprint=each) for each in "ba"]
    assert problems(file, *rows) == ["rows of 2 fingerprints are mixed: a, b"]


def test_another_schema_version(file: Path) -> None:
    assert problems(file, make_row(schema_version=2)) == ["e3-q1: schema_version 2, this release reads 1"]


def test_ok_without_an_answer_and_error_without_an_error(file: Path) -> None:
    rows = [make_row(query_id="q1", llm_answer=" "), make_row(query_id="q2", status="error")]
    assert problems(file, *rows) == ["e3-q1: status ok but no answer", "e3-q2: status error but no error"]


def test_queries_without_a_row(file: Path) -> None:
    wanted = tuple(f"q{n}" for n in range(1, 9))
    assert problems(file, make_row(), wanted=wanted[:2]) == ["1 of 2 queries have no row: q2"]
    expected = ["7 of 8 queries have no row: q2, q3, q4, q5, q6 and 2 more"]
    assert problems(file, make_row(), wanted=wanted) == expected
    assert problems(file, wanted=wanted[:1]) == ["1 of 1 queries have no row: q1"]


def test_a_folder_is_checked_file_by_file(tmp_path: Path) -> None:
    for name in ("e2.jsonl", "e1.jsonl", "notes.txt", "previous/e1-a.jsonl"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(make_row().line())
    assert [check.file.name for check in check_results(tmp_path)] == ["e1.jsonl", "e2.jsonl"]


@pytest.mark.parametrize("name", ["", "gone", "gone.jsonl"])
def test_nothing_to_check_is_an_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match=r"run pytest first, or name a \.jsonl file or its folder"):
        check_results(tmp_path / name)


def test_scores_beside_the_rows_are_checked_with_them(file: Path) -> None:
    row = make_row(query_id="q1")
    file.write_text(row.line() + "{}\n")
    good = ScoreLine("faithfulness", 1, "e3", "q1", row_digest(row), "", Author("mock", "m", "1"), 0.5)
    lines = [good, replace(good, value=None, reason="away"), replace(good, row="older"), replace(good, query_id="q2")]
    scores = tmp_scores(file, *(line.line() for line in lines), b"{}\n", good.line()[:30])
    check = check_results(file.parent)[1]
    assert check.line() == f"{scores}: 4 scores, 1 without a value, 2 of rows that are not there: 2 problems"
    assert [problem.removeprefix(f"{scores}:") for problem in check.problems] == [
        "5: no score",
        "6: the line is torn",
    ]


def tmp_scores(file: Path, *lines: bytes) -> Path:
    scores = file.parent / "scores" / file.name
    scores.parent.mkdir()
    scores.write_bytes(b"".join(lines))
    return scores


def test_turns_that_a_user_never_came_to_need_no_row(tmp_path: Path) -> None:
    file, turns = tmp_path / "e3-sim.jsonl", ["s#1", "s#2", "s#3", "s#4"]
    file.write_text("".join(make_row(query_id=turn, experiment="e3-sim").line() for turn in turns[:2]))

    def found(*ended: str) -> list[str]:
        record = SuiteRecord(
            data="queries+scenarios",
            file=file.name,
            fingerprints=["aaaa"],
            total=4,
            selected="all",
            ended=dict.fromkeys(ended, "after turn 2: all is asked"),
        )
        write_manifest(tmp_path, RunManifest(date="2026-01-01", settings={}, suites={"e3-sim": record}))
        return [each.removeprefix(f"{file}: ") for each in check_results(file, ["q1"], turns)[0].problems]

    assert check_results(file, ["q1"], turns)[0].problems == [f"{file}: 2 of 4 queries have no row: s#3, s#4"]
    assert found("s#4") == ["1 of 3 queries have no row: s#3"]
    assert found("s#3", "s#4") == []
