"""``rag-harness results validate`` finds what is wrong with a result file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rag_harness.core.errors import DataError
from rag_harness.records.files import check_results
from rag_harness.records.manifest import RunManifest, SuiteRecord, write_manifest
from rag_harness.records.row import ExperimentResult
from rag_harness.records.scores import Author, ScoreLine, row_digest
from tests.unit.rows import failed_row, make_row


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
