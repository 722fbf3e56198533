"""What a run leaves beside its rows comes back as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_harness.core.errors import DataError
from rag_harness.core.settings import Settings, masked
from rag_harness.core.types import Case, Evidence, Query
from rag_harness.records.cases import CaseFile, StoredCase, stored_case, write_cases
from rag_harness.records.files import check_results
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
from tests.unit.rows import make_row
from tests.unit.tables import golden_row

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
