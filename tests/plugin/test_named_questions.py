"""Questions that the command line or the environment names are asked; else the run says that they are not, or stops."""

from __future__ import annotations

import json

import pytest

from tests.plugin.conftest import QUERIES, Suite
from tests.plugin.test_golden import ENTRIES, TEST, write_golden

INI = "[pytest]\nrag_kb_dir = kb\nrag_profile = mock\nrag_k = 1\nrag_queries = asked.jsonl\nrag_golden = {}\n"
# With workers, what tests ask is known to the workers, and what the run says is said by another process.
IN_WORKERS = pytest.mark.parametrize("workers", [pytest.param("-n0", marks=pytest.mark.long), "-n2"])
IN_ONE_PROCESS = pytest.mark.parametrize("workers", ["-n0", pytest.param("-n2", marks=pytest.mark.long)])


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


@IN_ONE_PROCESS
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


@IN_WORKERS
def test_the_golden_suite_asks_them_where_it_asks_the_file_of_questions(golden: Suite, workers: str) -> None:
    result = golden.run(workers, "--rag-queries=others.jsonl", "--rag-gate=recall@k >= 0.1")
    result.assert_outcomes(passed=1)
    assert "no test of this run asks" not in result.stdout.str()
    assert {row["query_id"] for row in golden.rows("golden")} == {"q_direct_001"}


@IN_WORKERS
def test_a_question_that_names_no_page_is_told_where_golden_looks_nothing_up_for_it(
    golden: Suite, workers: str
) -> None:
    bare = [{"query_id": "bare", "query": "skis?"}, {"query_id": "no", "query": "boats?", "query_type": "negative"}]
    rows = "".join(json.dumps(each) + "\n" for each in [*QUERIES[:2], *bare])
    (golden.path / "asked.jsonl").write_text(rows)
    golden.pytester.makeini(INI.format("asked.jsonl"))
    result = golden.run(workers)
    result.assert_outcomes(passed=2)
    said = "1 question of asked.jsonl names no page in context_reference, so the golden suite does not ask it: bare"
    result.stdout.fnmatch_lines([said])
    assert "note     1 question of asked.jsonl names no page" in result.stdout.str()
    (golden.path / "asked.jsonl").write_text(json.dumps(QUERIES[0]) + "\n")
    assert "names no page" not in golden.run().stdout.str()


def test_a_golden_set_that_is_named_counts_more(golden: Suite) -> None:
    golden.run("--rag-queries=others.jsonl", "--rag-golden=asked.jsonl").assert_outcomes(passed=3)


@IN_WORKERS
def test_the_run_says_where_no_test_asks_them(golden: Suite, workers: str) -> None:
    golden.pytester.makeini(INI.format("golden.json"))
    said = (
        "rag: no test of this run asks others.jsonl (--rag-queries, RAG_QUERIES): the golden suite asks golden.json.*"
    )
    golden.run(workers, "--rag-queries=others.jsonl").stdout.fnmatch_lines([said])
    assert "no test of this run asks" not in golden.run().stdout.str()


def test_a_misspelt_option_is_told_with_what_was_meant(golden: Suite) -> None:
    result = golden.run("--rag-kbb=kb")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*unrecognized arguments: --rag-kbb=kb", "*did you mean: --rag-kb"])
    result = golden.run("--rag-kb=kb", "--unknown-of-others")
    assert "did you mean" not in result.stderr.str()


def test_an_option_that_was_renamed_is_told_with_its_name(golden: Suite) -> None:
    result = golden.run("--rag-inconclusive=fail")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert result.stderr.str().strip() == "ERROR: --rag-inconclusive is no option any more: it is called undecided."
    golden.pytester.makeini("[pytest]\nrag_kb_dir = kb\nrag_inconclusive = fail\n")
    golden.run().stderr.fnmatch_lines(["*tox.ini: rag_inconclusive is no option any more: it is called undecided."])


PIPELINE = """
import pytest
from rag_harness import Answer, Chunk, Hit, PipelineOutput

class Mine:
    async def answer(self, query):
        hit = Hit(Chunk("returns.md#0", "returns.md", "Lamps: 45 days."), score=1.0, rank=1)
        return PipelineOutput(Answer("45 days"), retrieved=(hit,), context=(hit,))

@pytest.fixture(scope="session")
def rag_pipeline():
    return Mine()

@pytest.mark.rag_experiment("mine")
def test_answers(rag_result):
    assert rag_result.ok, rag_result.why
"""


@IN_ONE_PROCESS
def test_a_pipeline_that_has_the_documents_needs_no_folder_of_them(suite: Suite, workers: str) -> None:
    for file in suite.path.glob("test_*.py"):
        file.unlink()
    suite.pytester.makepyfile(test_mine=PIPELINE)
    suite.pytester.makeini("[pytest]\n")
    pages = [["returns.md"], ["delivery.md"]]
    rows = [{"query_id": f"q{n}", "query": "How long?", "context_reference": page} for n, page in enumerate(pages)]
    (suite.path / "asked.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = suite.run(workers, "--rag-queries=asked.jsonl", "--rag-gate=mine: recall@1 >= 0.5")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        ["note     no folder data/kb: pages in context_reference are taken as written, and", "*0.500*"]
    )
    stopped = suite.run(workers, "--rag-queries=asked.jsonl", "--rag-kb=kb")
    assert "context_reference 'delivery.md' is no page of" in stopped.stdout.str() + stopped.stderr.str()
    nothing = suite.run(workers)
    assert "name the questions alone: --rag-queries FILE" in nothing.stdout.str() + nothing.stderr.str()
