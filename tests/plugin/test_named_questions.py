"""Questions that the command line or the environment names are asked; else the run says that they are not, or stops."""

from __future__ import annotations

import json

import pytest

from tests.plugin.conftest import QUERIES, Suite
from tests.plugin.test_golden import ENTRIES, TEST, WORKERS, write_golden

INI = "[pytest]\nrag_kb_dir = kb\nrag_profile = mock\nrag_k = 1\nrag_queries = asked.jsonl\nrag_golden = {}\n"


@pytest.fixture
def golden(suite: Suite) -> Suite:
    """Return a suite of the golden tests alone, as ``rag-harness init`` writes it."""
    for file in suite.path.glob("test_*.py"):
        file.unlink()
    suite.pytester.makepyfile(test_golden=TEST)
    for name, queries in (("asked.jsonl", QUERIES), ("others.jsonl", QUERIES[:1])):
        (suite.path / name).write_text("".join(json.dumps(query) + "\n" for query in queries))
    write_golden(suite, ENTRIES)
    suite.pytester.makeini(INI.format("asked.jsonl"))
    return suite


@WORKERS
def test_a_file_that_is_not_there_stops_the_run(golden: Suite, workers: str) -> None:
    result = golden.run(workers, "--rag-queries", "aksed.jsonl")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*No file *aksed.jsonl. Did you mean 'asked.jsonl'? Name your questions with *"])
    assert "passed" not in result.stdout.str()


def test_so_does_one_that_the_environment_names(golden: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAG_QUERIES", "xyz.jsonl")
    result = golden.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*No file *xyz.jsonl. Name your questions with *"])


@WORKERS
def test_the_golden_suite_asks_them_where_it_asks_the_file_of_questions(golden: Suite, workers: str) -> None:
    result = golden.run(workers, "--rag-queries=others.jsonl", "--rag-gate=recall@k >= 0.1")
    result.assert_outcomes(passed=1)
    assert "no test of this run asks" not in result.stdout.str()
    assert {row["query_id"] for row in golden.rows("golden")} == {"q_direct_001"}


def test_a_golden_set_that_is_named_counts_more(golden: Suite) -> None:
    golden.run("--rag-queries=others.jsonl", "--rag-golden=asked.jsonl").assert_outcomes(passed=3)


@WORKERS
def test_the_run_says_where_no_test_asks_them(golden: Suite, workers: str) -> None:
    golden.pytester.makeini(INI.format("golden.json"))
    said = (
        "rag: no test of this run asks others.jsonl (--rag-queries, RAG_QUERIES): the golden suite asks golden.json.*"
    )
    golden.run(workers, "--rag-queries=others.jsonl").stdout.fnmatch_lines([said])
    assert "no test of this run asks" not in golden.run(workers).stdout.str()


def test_a_misspelt_option_is_told_with_what_was_meant(golden: Suite) -> None:
    result = golden.run("--rag-kbb=kb")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*unrecognized arguments: --rag-kbb=kb", "*did you mean: --rag-kb"])
    result = golden.run("--rag-kb=kb", "--unknown-of-others")
    assert "did you mean" not in result.stderr.str()
