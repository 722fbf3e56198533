"""The golden suite and gates, as a user and a CI see them."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree

import pytest
from _pytest.pytester import LineMatcher

from tests.plugin.conftest import Suite

TEST = "def test_finds_what_is_expected(rag_retrieval):\n    assert rag_retrieval.found\n"
ENTRIES = [
    {"query": "return a lamp", "expected_document_id": "returns.md", "justification": "j"},
    {"query": "express delivery costs", "expected_document_id": "shipping.md", "justification": "j"},
    {"query": "warranty lasts", "expected_document_id": "warranty.md", "justification": "j"},
    {"query": "refund within working days", "expected_document_id": "returns.md#refunds", "justification": "j"},
    {"query": "warranty lasts long", "expected_document_id": "shipping.md", "justification": "wrong on purpose"},
]
WORKERS = pytest.mark.parametrize("workers", ["-n0", "-n2"])


@pytest.fixture
def golden(suite: Suite) -> Suite:
    for file in suite.path.glob("test_*.py"):
        file.unlink()
    suite.pytester.makepyfile(test_golden=TEST)
    write_golden(suite, ENTRIES)
    suite.pytester.makeini("[pytest]\nrag_kb_dir = kb\nrag_profile = mock\nrag_golden = golden.json\nrag_k = 1\n")
    return suite


def write_golden(suite: Suite, entries: Any) -> None:
    (suite.path / "golden.json").write_text(json.dumps(entries))


@WORKERS
def test_a_miss_is_tolerated_and_shown(golden: Suite, workers: str) -> None:
    result = golden.run(workers)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*= rag golden =*", "all * 5 *", "miss *g005: expected shipping.md, rank *"])
    assert "4 passed, 1 missed" in result.stdout.str()


@WORKERS
def test_a_failed_gate_fails_the_run_and_is_named(golden: Suite, workers: str) -> None:
    result = golden.run(workers, "--rag-gate=recall@k >= 0.95", "--rag-gate=golden: mrr@10 >= 0.1", "-v")
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["*= rag gates =*", "failed *golden: recall@1 >= 0.95 *0.800*n=5", "passed *golden: mrr@10 >= 0.1 *"]
    )
    text = result.stdout.str()
    assert "105%" not in text
    assert "0::" not in text
    assert "1 failed, 4 passed, 1 missed" in text


@WORKERS
def test_gates_stand_in_junit_and_json(golden: Suite, workers: str) -> None:
    pytest.importorskip("pytest_jsonreport")
    gates = ["--rag-gate=recall@k >= 0.95", "--rag-gate=golden: mrr@10 >= 0.1"]
    golden.run(workers, *gates, "--junitxml=junit.xml", "--json-report", "--json-report-file=report.json")
    cases = {each.get("name"): each for each in ElementTree.parse(golden.path / "junit.xml").iter("testcase")}
    assert cases["golden: recall@1 >= 0.95"].find("failure") is not None
    assert cases["golden: mrr@10 >= 0.1"].find("failure") is None
    missed = cases["test_finds_what_is_expected[golden-g005]"]
    skipped = missed.find("skipped")
    assert skipped is not None
    assert str(skipped.get("message")).startswith("miss: g005")
    assert {each.get("name"): each.get("value") for each in missed.iter("property")} == {"rag_outcome": "miss"}
    report = json.loads((golden.path / "report.json").read_text())
    outcomes = {test["nodeid"].partition("::")[2]: test["outcome"] for test in report["tests"]}
    assert outcomes["golden: recall@1 >= 0.95"] == "failed"
    assert outcomes["golden: mrr@10 >= 0.1"] == "gates passed"


@WORKERS
def test_a_gate_never_passes_on_a_part(golden: Suite, workers: str) -> None:
    result = golden.run(workers, "-k", "g001 or g002", "--rag-gate=recall@k >= 0.5")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["not judged *golden: recall@1 >= 0.5 *2 of 5 cases selected*"])
    result = golden.run(workers, "-k", "g001 or g002", "--rag-gate=recall@k >= 0.5", "--rag-gate-partial")
    result.stdout.fnmatch_lines(["passed *golden: recall@1 >= 0.5 *n=2 *2 of 5 cases selected"])


def test_a_gate_whose_experiment_has_no_test_fails_a_whole_run_and_is_not_judged_in_a_part(golden: Suite) -> None:
    whole = golden.run("--rag-gate=e3: recall@5 >= 0.9")
    assert whole.ret == 1
    whole.stdout.fnmatch_lines(["failed *e3: recall@5 >= 0.9", " *e3 has no trial, though all tests were asked for*"])
    part = golden.run("--rag-gate=e3: recall@5 >= 0.9", "-k", "golden")
    assert part.ret == 0
    part.stdout.fnmatch_lines(["not judged *e3: recall@5 >= 0.9 *e3 is not in this run: -m e3"])


def test_strict_makes_a_miss_a_failure_that_explains_itself(golden: Suite) -> None:
    result = golden.run("--rag-strict")
    result.assert_outcomes(passed=4, failed=1)
    result.stdout.fnmatch_lines(
        [
            "asked    warranty lasts long",
            "found    warranty.md",
            "why      shipping.md: * top 1",
            "command  pytest -vv 'test_golden.py::test_finds_what_is_expected[[]*g005]'",
        ],
        consecutive=True,
    )
    assert "Traceback" not in result.stdout.str()
    whole = golden.run("--rag-strict", "-vv")
    whole.stdout.fnmatch_lines(
        ["query      warranty lasts long", "expected   shipping.md: rank *", "found *rank*score*"]
    )
    assert all(len(line) <= 100 for line in whole.outlines if line.startswith(("query", "expected", "found", "  ")))


@WORKERS
def test_last_failed_runs_misses_again(golden: Suite, workers: str) -> None:
    golden.run(workers)
    result = golden.run("--lf", "-v")
    result.stdout.fnmatch_lines(["*golden-g005* MISS *"])
    assert "g001" not in result.stdout.str().partition("rag golden")[0]


@pytest.mark.parametrize(
    ("gate", "says"),
    [
        ("golden: recal@5 >= 0.9", "*Unknown measure 'recal'. Did you mean 'recall'*"),
        ("goldne: recall@5 >= 0.9", "*Unknown experiment*'goldne'*Did you mean 'golden'*"),
        ("golden: recall@5 >= goldn", "*goldn*"),
        ("golden: recall@5 >= ninety%", "*ninety%*"),
    ],
)
def test_a_gate_that_cannot_be_is_a_usage_error(golden: Suite, gate: str, says: str) -> None:
    result = golden.run(f"--rag-gate={gate}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([says])
    assert "passed" not in result.stdout.str()


@WORKERS
def test_a_sabotaged_index_fails_the_gate(golden: Suite, workers: str) -> None:
    golden.pytester.makeconftest(
        """
        import numpy as np
        import pytest
        from rag_harness.pipelines.parts import RunParts
        from rag_harness.models.embedders.cached import CachedEmbedder

        embed = CachedEmbedder.embed_queries
        def shuffled(self, texts):
            return np.roll(embed(self, texts), 100, axis=1)
        CachedEmbedder.embed_queries = shuffled
        """
    )
    result = golden.run(workers, "--rag-gate=recall@k >= 0.75")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["failed *golden: recall@1 >= 0.75 *"])


@WORKERS
def test_vectors_that_do_not_match_are_one_error_and_no_green_gate(golden: Suite, workers: str) -> None:
    golden.pytester.makeconftest(
        """
        import numpy as np
        from rag_harness.retrieval.indexes.qdrant_edge import EdgeIndex

        upsert = EdgeIndex.upsert
        def shuffled(self, chunks, vectors):
            return upsert(self, chunks, vectors[::-1].copy())
        EdgeIndex.upsert = shuffled
        """
    )
    result = golden.run(workers, "--rag-gate=recall@k >= 0.75")
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        [
            "*Index and embedder do not match: *",
            "failed *golden: recall@1 >= 0.75",
            "*cannot be judged: 5 cases not run: Index and embedder do not match: *",
        ]
    )
    assert "crash" not in result.stdout.str()
    assert result.parseoutcomes()["failed"] <= (2 if workers == "-n0" else 5)


def test_summary_misses_and_trec_files(golden: Suite) -> None:
    golden.run("--rag-misses=misses.jsonl", "--rag-export=trec:trec").assert_outcomes(passed=4)
    summary = json.loads((golden.path / "output" / "summary.json").read_text())
    assert summary["golden"]["n"] == 5
    assert summary["golden"]["recall@1"] == pytest.approx(0.8)
    (miss,) = (golden.path / "misses.jsonl").read_text().splitlines()
    assert json.loads(miss)["case_id"] == "g005"
    assert "u0000" not in miss
    assert None in json.loads(miss)["ranked"]
    assert json.loads(miss)["measures"]["recall@1"] == 0.0
    run = json.loads((golden.path / "output" / "run.json").read_text())
    assert run["suites"]["golden"]["selected"] == "all"
    kept = [json.loads(line) for line in (golden.path / "output" / "cases" / "golden.jsonl").read_text().splitlines()]
    assert kept[4]["expected"] == ["shipping.md"]
    assert kept[4]["justification"] == "wrong on purpose"
    assert kept[4]["qrels"] == {"shipping.md": 1}
    assert len((golden.path / "trec" / "qrels.trec").read_text().splitlines()) == 5
    assert (golden.path / "trec" / "run.trec").read_text().startswith("g001 Q0 returns.md 1 ")


def test_saved_runs_are_compared_and_gate(golden: Suite) -> None:
    golden.run("--rag-save=main")
    result = golden.run("--rag-compare=main", "--rag-gate=golden: recall@k >= baseline - 0.02")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*= rag comparison =*", "passed *golden: recall@1 >= baseline - 0.02*"])
    write_golden(golden, [*ENTRIES[:3], {**ENTRIES[3], "query": "something else"}])
    result = golden.run("--rag-compare=main")
    assert result.ret != 0
    assert "Traceback" not in result.stdout.str()


def test_retrievers_by_name(golden: Suite) -> None:
    for name in ("bm25", "hybrid", "reranked", "e3"):
        result = golden.run(f"--rag-retriever={name}")
        result.stdout.fnmatch_lines([f"profile mock, retriever {name}*, k = *", "all * 5 *"])
    result = golden.run("--rag-retriever=e1")
    result.stderr.fnmatch_lines(["*Experiment 'e1' retrieves nothing that could be tested.*"])
    result = golden.run("--rag-retriever=dens")
    result.stderr.fnmatch_lines(["*Unknown retriever 'dens'. Did you mean 'dense'?*"])


@pytest.mark.parametrize(
    ("entries", "args", "says"),
    [
        ({"a": 1}, [], "*golden.json*"),
        ([{**ENTRIES[0], "query": " "}], [], "*golden.json*query is empty*"),
        (
            [{**ENTRIES[0], "expected_document_id": "retuns.md"}],
            [],
            "*golden.json: entry 1 ('return a lamp'): expected_document_id 'retuns.md' is no page of *. Did you mean "
            "'returns.md'?",
        ),
        (ENTRIES, ["--rag-k=0"], "*k is '0'*greater than or equal to 1*"),
        (ENTRIES, ["--rag-k=-1"], "*k is '-1'*"),
        (ENTRIES, ["--rag-k=99"], "*k is 99, but the knowledge base has 4 chunks*"),
    ],
)
def test_bad_input(golden: Suite, entries: Any, args: list[str], says: str) -> None:
    write_golden(golden, entries)
    result = golden.run(*args)
    assert result.ret != 0
    (result.stderr if "k is " in says else result.stdout).fnmatch_lines([says])
    assert "Traceback" not in result.stdout.str() + result.stderr.str()


@WORKERS
@pytest.mark.parametrize(
    ("args", "says"),
    [
        (
            ["--rag-golden=asked.jsonl"],
            "*asked.jsonl:1: q1: context_reference 'retuns.md' is no page of *'returns.md'?",
        ),
        (
            ["--rag-golden=parts.jsonl"],
            "*parts.jsonl:2: q2: context_reference 'returns.md#refnds' is no *#refunds'*",
        ),
        (["-o", "rag_kb_dir=kbs"], "*No folder *kbs. Did you mean 'kb'?*"),
        (["--rag-retriever=dens"], "*Unknown retriever 'dens'.*"),
    ],
)
def test_what_cannot_be_run_stops_the_run_and_is_said(golden: Suite, args: list[str], says: str, workers: str) -> None:
    for name, pages in (("asked", ["retuns.md", "waranty.md"]), ("parts", ["returns.md", "returns.md#refnds"])):
        lines = [{"query_id": f"q{n}", "query": "a lamp", "context_reference": page} for n, page in enumerate(pages, 1)]
        (golden.path / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    result = golden.run(workers, *args, "--rag-gate=recall@k >= 0.5")
    said = result.stdout.str() + result.stderr.str()
    LineMatcher(said.splitlines()).fnmatch_lines([says])
    assert ("'waranty.md'" in said) == ("--rag-golden=asked.jsonl" in args), "all problems are said at once"
    assert result.ret != 0
    assert not golden.rows("golden")
    assert "crash" not in said
    assert "its test is gone" not in said
    assert "passed" not in result.stdout.str()


def test_beir_folder(golden: Suite) -> None:
    folder = golden.path / "beir"
    (folder / "qrels").mkdir(parents=True)
    docs = [{"_id": f"d{n}", "title": f"t{n}", "text": f"word{n} " * 3} for n in range(5)]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(doc) + "\n" for doc in docs))
    queries = [{"_id": f"q{n}", "text": f"word{n}"} for n in range(5)]
    (folder / "queries.jsonl").write_text("".join(json.dumps(query) + "\n" for query in queries))
    lines = ["query-id\tcorpus-id\tscore", *(f"q{n}\td{n}\t1" for n in range(5))]
    (folder / "qrels" / "test.tsv").write_text("\n".join(lines))
    result = golden.run("--rag-dataset=beir:beir")
    result.assert_outcomes(passed=5)
    result.stdout.fnmatch_lines(["all * 5 *1.000*"])
    (folder / "qrels" / "test.tsv").unlink()
    result = golden.run("--rag-dataset=beir:beir")
    assert result.ret != 0
    assert "Traceback" not in result.stdout.str()


def test_experiment_gates_by_slice_and_against_each_other(suite: Suite) -> None:
    suite.pytester.makepyfile(
        """
        import pytest
        @pytest.mark.e2
        @pytest.mark.e3
        def test_both(rag_result): assert rag_result.ok
        """
    )
    gates = ["e3: recall@5 >= e2", "e3[query_type=direct]: recall@5 >= 0.5", "e2: error_rate <= 0.05"]
    result = suite.run(*(f"--rag-gate={gate}" for gate in gates))
    assert result.ret == 0
    result.stdout.fnmatch_lines([f"passed *{gate.replace('[', '[[]')}*" for gate in gates])


def test_a_crashed_worker_never_leaves_a_gate_green(suite: Suite) -> None:
    suite.write_queries([{"query_id": f"q_{n:02}", "query": f"question {n}"} for n in range(12)])
    suite.pytester.makeconftest(
        """
        import os, signal
        import pytest
        class Mine:
            async def answer(self, query):
                if query.query_id == "q_05":
                    os.kill(os.getpid(), signal.SIGKILL)
                return "fine"
        @pytest.fixture(scope="session")
        def rag_pipeline(): return Mine()
        """
    )
    result = suite.run("-n2", "--rag-concurrency=2", "--max-worker-restart=1", "--rag-gate=e3: error_rate <= 0.01")
    assert result.ret != 0
    assert "passed e3: error_rate" not in result.stdout.str()


@WORKERS
def test_gates_of_an_experiment_that_only_a_marker_names(suite: Suite, workers: str) -> None:
    suite.pytester.makepyfile(
        """
        import pytest
        class Mine:
            async def answer(self, query): return "fine"
        @pytest.fixture
        def rag_pipeline(): return Mine()
        @pytest.mark.rag_experiment("mine-own")
        def test_mine(rag_result): assert rag_result.ok
        """
    )
    result = suite.run(workers, "--rag-gate=mine-own: error_rate <= 0.05")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["passed *mine-own: error_rate <= 0.05*n=4"])
    assert "profile mock, mode auto, answers by a pipeline of your own" in result.stdout.str()
    assert "baseline reader" not in result.stdout.str()
    result = suite.run(workers, "--rag-gate=mine-own: error_rate >= 0.5", "--rag-gate=nobody: error_rate <= 1")
    assert result.ret == 1
    result.stdout.fnmatch_lines([" *nobody has no trial, though all tests were asked for*"])


def golden_rows(suite: Suite) -> list[dict[str, Any]]:
    return suite.rows("golden")


@WORKERS
def test_entries_are_rows_and_are_not_looked_up_again(golden: Suite, workers: str) -> None:
    first = golden.run(workers)
    rows = golden_rows(golden)
    assert {row["query_id"] for row in rows} == {"g001", "g002", "g003", "g004", "g005"}
    assert {(row["experiment"], row["status"], row["llm_answer"]) for row in rows} == {("golden", "ok", "")}
    assert all(len(row["retrieved_chunks"]) == 1 < len(row["candidates"]) and row["ranking"] for row in rows)
    assert [stage["name"] for stage in rows[0]["stages"]] == ["retrieve"]
    golden.pytester.makeconftest(
        """
        from rag_harness.engine.golden.pipeline import GoldenPipeline
        async def answer(self, query):
            raise AssertionError("looked up again")
        GoldenPipeline.answer = answer
        """
    )
    again = golden.run(workers)
    assert outcome(again) == outcome(first) == "4 passed, 1 missed"
    again.stdout.fnmatch_lines(["answers: 5 resumed from the run of * UTC; 0 new"])
    first.stdout.fnmatch_lines(["answers: 5 looked up now"])
    assert golden_rows(golden) == rows


def outcome(result: pytest.RunResult) -> str:
    return result.outlines[-1].strip("= ").partition(" in ")[0]


def test_what_changes_a_result_makes_it_be_looked_up_again(golden: Suite) -> None:
    golden.run()
    before = {row["fingerprint"] for row in golden_rows(golden)}
    for change in (["--rag-k=2"], ["--rag-retriever=bm25"], ["--rag-chunk-size=64", "--rag-chunk-overlap=0"]):
        golden.run(*change)
        after = {row["fingerprint"] for row in golden_rows(golden)}
        assert len(after) == 1
        assert not after & before, change
        before |= after
    write_golden(golden, [*ENTRIES[:4], {**ENTRIES[4], "query": "something else"}])
    golden.run()
    assert not {row["fingerprint"] for row in golden_rows(golden)} & before


def test_result_files_of_the_golden_suite_are_whole(golden: Suite) -> None:
    golden.run()
    from rag_harness.results.check import check_results

    (found,) = check_results(golden.path / "output", ["q_direct_001"])
    assert (found.rows, found.problems) == (5, [])


@WORKERS
def test_a_limit_holds_for_the_golden_suite_too(golden: Suite, workers: str) -> None:
    result = golden.run(workers, "--rag-limit=2", "--rag-gate=recall@k >= 0.5")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["not judged *golden: recall@1 >= 0.5 *2 of 5 cases selected*"])
