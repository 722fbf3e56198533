"""The golden suite and gates, as a user and a CI see them."""

from __future__ import annotations

import asyncio
import json
import shutil
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import pytest
from _pytest.pytester import LineMatcher

from rag_harness.core.errors import SettingsError
from rag_harness.core.settings import Settings
from rag_harness.core.settings.profiles import BUILT_IN_PROFILES
from rag_harness.pipelines.experiments import experiment
from rag_harness.pipelines.parts import RunParts
from rag_harness.records.validation import check_results
from rag_harness.runs.fingerprint import fingerprint_of
from rag_harness.runs.golden_suite import GoldenSuite
from tests.plugin.conftest import Suite

TEST = "def test_finds_what_is_expected(rag_retrieval):\n    assert rag_retrieval.found\n"
ENTRIES = [
    {"query": "return a lamp", "expected_document_id": "returns.md", "justification": "j"},
    {"query": "express delivery costs", "expected_document_id": "shipping.md", "justification": "j"},
    {"query": "warranty lasts", "expected_document_id": "warranty.md", "justification": "j"},
    {"query": "refund within working days", "expected_document_id": "returns.md#refunds", "justification": "j"},
    {"query": "warranty lasts long", "expected_document_id": "shipping.md", "justification": "wrong on purpose"},
]
GATES = ["--rag-gate=recall@k >= 0.95", "--rag-gate=golden: mrr@10 >= 0.1", "--rag-gate=e3: recall@5 >= 0.9"]
LOOKS_UP_NOTHING = """
from rag_harness.runs.golden_suite import GoldenPipeline
async def answer(self, query):
    raise AssertionError("looked up again")
GoldenPipeline.answer = answer
"""


def both(first: str) -> list[Any]:
    """Return numbers of workers: one for each run of the tests, the other for the long ones."""
    return [first, *(pytest.param(each, marks=pytest.mark.long) for each in ("-n0", "-n2") if each != first)]


def prepare(suite: Suite) -> Suite:
    for file in suite.path.glob("test_*.py"):
        file.unlink()
    suite.pytester.makepyfile(test_golden=TEST)
    write_golden(suite, ENTRIES)
    suite.pytester.makeini("[pytest]\nrag_kb_dir = kb\nrag_profile = mock\nrag_golden = golden.json\nrag_k = 1\n")
    return suite


@pytest.fixture
def golden(suite: Suite) -> Suite:
    return prepare(suite)


def write_golden(suite: Suite, entries: Any) -> None:
    (suite.path / "golden.json").write_text(json.dumps(entries))


class LookedUp(NamedTuple):
    """What a run said and left; what the same one said that looks nothing up and compares, and one of what had failed.

    And what one said that compares other entries.
    """

    first: pytest.RunResult
    left: Path
    again: pytest.RunResult
    rows_again: list[dict[str, object]]
    failed: pytest.RunResult
    other: pytest.RunResult


@pytest.fixture(scope="module", params=both("-n0"))
def looked_up(
    shared_suite: Suite, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> LookedUp:
    golden, workers, folder = prepare(shared_suite), request.param, tmp_path_factory.mktemp("left")
    shutil.rmtree(golden.path / "output", ignore_errors=True)
    files = (f"--rag-misses={folder}/misses.jsonl", f"--rag-export=trec:{folder}/trec")
    first = golden.run(workers, "--rag-save=main", *files)
    shutil.copytree(golden.path / "output", folder / "output")
    golden.pytester.makeconftest(LOOKS_UP_NOTHING)
    again = golden.run(workers, "--rag-compare=main", "--rag-gate=golden: recall@k >= baseline - 0.02")
    rows = golden.rows("golden")
    (golden.path / "conftest.py").unlink()
    failed = golden.run("--lf", "-v")
    write_golden(golden, [*ENTRIES[:3], {**ENTRIES[3], "query": "something else"}])
    return LookedUp(first, folder, again, rows, failed, golden.run("--rag-compare=main"))


def test_a_miss_is_tolerated_and_shown(looked_up: LookedUp) -> None:
    result = looked_up.first
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*= rag golden =*", "all * 5 *", "miss *g005: expected shipping.md, rank *"])
    assert "4 passed, 1 missed" in result.stdout.str()


def test_last_failed_runs_misses_again(looked_up: LookedUp) -> None:
    looked_up.failed.stdout.fnmatch_lines(["*golden-g005* MISS *"])
    assert "g001" not in looked_up.failed.stdout.str().partition("rag golden")[0]


def test_summary_misses_and_trec_files(looked_up: LookedUp) -> None:
    looked_up.first.assert_outcomes(passed=4)
    output = looked_up.left / "output"
    summary = json.loads((output / "summary.json").read_text())
    assert summary["golden"]["n"] == 5
    assert summary["golden"]["recall@1"] == pytest.approx(0.8)
    (miss,) = (looked_up.left / "misses.jsonl").read_text().splitlines()
    assert json.loads(miss)["case_id"] == "g005"
    assert "u0000" not in miss
    assert None in json.loads(miss)["ranked"]
    assert json.loads(miss)["measures"]["recall@1"] == 0.0
    run = json.loads((output / "run.json").read_text())
    assert run["suites"]["golden"]["selected"] == "all"
    kept = [json.loads(line) for line in (output / "cases" / "golden.jsonl").read_text().splitlines()]
    assert kept[4]["expected"] == ["shipping.md"]
    assert kept[4]["justification"] == "wrong on purpose"
    assert kept[4]["qrels"] == {"shipping.md": 1}
    assert len((looked_up.left / "trec" / "qrels.trec").read_text().splitlines()) == 5
    assert (looked_up.left / "trec" / "run.trec").read_text().startswith("g001 Q0 returns.md 1 ")


def test_result_files_of_the_golden_suite_are_whole(looked_up: LookedUp) -> None:
    (found,) = check_results(looked_up.left / "output", ["q_direct_001"])
    assert (found.rows, found.problems) == (5, [])


def test_entries_are_rows(looked_up: LookedUp) -> None:
    rows = rows_of(looked_up)
    assert {row["query_id"] for row in rows} == {"g001", "g002", "g003", "g004", "g005"}
    assert {(row["experiment"], row["status"], row["llm_answer"]) for row in rows} == {("golden", "ok", "")}
    assert all(len(row["retrieved_chunks"]) == 1 < len(row["candidates"]) and row["ranking"] for row in rows)
    assert [stage["name"] for stage in rows[0]["stages"]] == ["retrieve"]


def test_entries_are_not_looked_up_again(looked_up: LookedUp) -> None:
    assert outcome(looked_up.first) == "4 passed, 1 missed"
    assert outcome(looked_up.again) == "4 passed, 1 missed, 1 gate passed"
    looked_up.again.stdout.fnmatch_lines(["answers: 5 reused from the run of * UTC; 0 new"])
    looked_up.first.stdout.fnmatch_lines(["answers: 5 looked up now"])
    assert looked_up.rows_again == rows_of(looked_up)


def rows_of(looked_up: LookedUp) -> list[dict[str, Any]]:
    lines = (looked_up.left / "output" / "golden.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def outcome(result: pytest.RunResult) -> str:
    return result.outlines[-1].strip("= ").partition(" in ")[0]


class Gated(NamedTuple):
    """A run with gates: what it said, and the folder with its reports."""

    result: pytest.RunResult
    folder: Path


@pytest.fixture(scope="module", params=both("-n2"))
def gated(shared_suite: Suite, request: pytest.FixtureRequest) -> Gated:
    reports = ("--junitxml=junit.xml", "--json-report", "--json-report-file=report.json", "--rag-overwrite")
    return Gated(prepare(shared_suite).run(request.param, *GATES, *reports, "-v"), shared_suite.path)


def test_a_failed_gate_fails_the_run_and_is_named(gated: Gated) -> None:
    assert gated.result.ret == 1
    lines = ["failed *golden: recall@1 >= 0.95 *0.800*n=5 on * pages", "passed *golden: mrr@10 >= 0.1 *"]
    gated.result.stdout.fnmatch_lines(["*= rag gates =*", *lines])
    text = gated.result.stdout.str()
    assert "105%" not in text
    assert "0::" not in text
    assert "2 failed, 4 passed, 1 missed" in text


def test_a_gate_whose_experiment_has_no_test_fails_a_whole_run(gated: Gated) -> None:
    said = ["failed *e3: recall@5 >= 0.9", " *e3 has no trial, though all tests were asked for*"]
    gated.result.stdout.fnmatch_lines(said)


def test_gates_stand_in_junit_and_json(gated: Gated) -> None:
    pytest.importorskip("pytest_jsonreport")
    cases = {each.get("name"): each for each in ElementTree.parse(gated.folder / "junit.xml").iter("testcase")}
    assert cases["golden: recall@1 >= 0.95"].find("failure") is not None
    assert cases["golden: mrr@10 >= 0.1"].find("failure") is None
    missed = cases["test_finds_what_is_expected[golden-g005]"]
    skipped = missed.find("skipped")
    assert skipped is not None
    assert str(skipped.get("message")).startswith("miss: g005")
    assert {each.get("name"): each.get("value") for each in missed.iter("property")} == {"rag_outcome": "miss"}
    report = json.loads((gated.folder / "report.json").read_text())
    outcomes = {test["nodeid"].partition("::")[2]: test["outcome"] for test in report["tests"]}
    assert outcomes["golden: recall@1 >= 0.95"] == "failed"
    assert outcomes["golden: mrr@10 >= 0.1"] == "gates passed"


@pytest.mark.parametrize("workers", both("-n0"))
def test_a_gate_never_passes_on_a_part(golden: Suite, workers: str) -> None:
    part = (workers, "-k", "g001 or g002", "--rag-gate=recall@k >= 0.5", "--rag-gate=e3: recall@5 >= 0.9")
    result = golden.run(*part)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["not judged *golden: recall@1 >= 0.5 *2 of 5 cases selected*"])
    result.stdout.fnmatch_lines(["not judged *e3: recall@5 >= 0.9 *e3 is not in this run: -m e3"])
    result = golden.run(*part, "--rag-gate-partial")
    result.stdout.fnmatch_lines(["passed *golden: recall@1 >= 0.5 *n=2 *2 of 5 cases selected"])


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


@pytest.mark.parametrize(
    ("gate", "says"),
    [
        ("goldne: recall@5 >= 0.9", "*Unknown experiment*'goldne'*Did you mean 'golden'*"),
        # Others take the same way, and tests/unit/runs/gates/test_gates.py has their words.
        pytest.param(
            "golden: recal@5 >= 0.9", "*Unknown measure 'recal'. Did you mean 'recall'*", marks=pytest.mark.long
        ),
        pytest.param("golden: recall@5 >= goldn", "*goldn*", marks=pytest.mark.long),
        pytest.param("golden: recall@5 >= ninety%", "*ninety%*", marks=pytest.mark.long),
    ],
)
def test_a_gate_that_cannot_be_is_a_usage_error(golden: Suite, gate: str, says: str) -> None:
    result = golden.run(f"--rag-gate={gate}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([says])
    assert "passed" not in result.stdout.str()


@pytest.mark.parametrize("workers", both("-n0"))
def test_a_sabotaged_index_fails_the_gate(golden: Suite, workers: str) -> None:
    golden.pytester.makeconftest(
        """
        import numpy as np
        import pytest
        from rag_harness.pipelines.parts import RunParts
        from rag_harness.models.array_store import CachedEmbedder

        embed = CachedEmbedder.embed_queries
        def shuffled(self, texts):
            return np.roll(embed(self, texts), 100, axis=1)
        CachedEmbedder.embed_queries = shuffled
        """
    )
    result = golden.run(workers, "--rag-gate=recall@k >= 0.75")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["failed *golden: recall@1 >= 0.75 *"])


@pytest.mark.parametrize("workers", both("-n2"))
def test_vectors_that_do_not_match_are_one_error_and_no_green_gate(golden: Suite, workers: str) -> None:
    shutil.rmtree(golden.path / ".rag_cache")
    golden.pytester.makeconftest(
        """
        import numpy as np
        from rag_harness.retrieval.indexes.edge import EdgeIndex

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


def test_saved_runs_are_compared_and_gate(looked_up: LookedUp) -> None:
    assert looked_up.again.ret == 0
    lines = ["*= rag comparison =*", "passed *golden: recall@1 >= baseline - 0.02*"]
    looked_up.again.stdout.fnmatch_lines(lines)
    assert looked_up.other.ret != 0
    assert "Traceback" not in looked_up.other.stdout.str()


RETRIEVERS = ("dense", "bm25", "hybrid", "reranked", "e3")


@pytest.mark.parametrize(
    "name", ["e3", *(pytest.param(name, marks=pytest.mark.long) for name in ("bm25", "hybrid", "reranked"))]
)
def test_a_retriever_by_name(golden: Suite, name: str) -> None:
    result = golden.run(f"--rag-retriever={name}")
    result.stdout.fnmatch_lines([f"profile mock, retriever {name}*, k = *", "all * 5 *"])


def settings_of(golden: Suite, **changed: Any) -> Settings:
    """Return what the files of the suite set, and what else is ``changed``."""
    told = {"kb_dir": "kb", "queries": "kb/queries.jsonl", "golden": "golden.json", "k": 1, "profile": "mock"}
    return Settings(rootdir=str(golden.path), **{**told, **vars(BUILT_IN_PROFILES["mock"]), **changed})


def suite_of(settings: Settings) -> GoldenSuite:
    parts = RunParts(settings)
    return GoldenSuite(parts, lambda name: experiment(name, parts), lambda found: found.id)


@pytest.mark.parametrize("name", RETRIEVERS)
def test_each_retriever_looks_entries_up(golden: Suite, name: str) -> None:
    found = suite_of(settings_of(golden, retriever=name))
    if found.experiment.prepare is not None:
        found.experiment.prepare(found.queries)
    (first, *_) = (asyncio.run(found.experiment.pipeline.answer(query)) for query in found.queries)
    assert first.ranking[0] == "returns.md"
    assert [stage.detail["retriever"] for stage in first.stages] == [name]


def test_an_experiment_that_retrieves_nothing_is_no_retriever(golden: Suite) -> None:
    with pytest.raises(SettingsError, match=r"Experiment 'e1' retrieves nothing that could be tested\."):
        _ = suite_of(settings_of(golden, retriever="e1")).experiment


@pytest.mark.parametrize(
    ("entries", "args", "says"),
    [
        # tests/unit/data/test_golden.py has what else a golden set may not be.
        pytest.param({"a": 1}, [], "*golden.json*", marks=pytest.mark.long),
        pytest.param([{**ENTRIES[0], "query": " "}], [], "*golden.json*query is empty*", marks=pytest.mark.long),
        (
            [{**ENTRIES[0], "expected_document_id": "retuns.md"}],
            [],
            "*golden.json: entry 1 ('return a lamp'): expected_document_id 'retuns.md' is not a page of *. Did you "
            "mean 'returns.md'?",
        ),
        pytest.param(ENTRIES, ["--rag-k=0"], "*k is '0'*greater than or equal to 1*", marks=pytest.mark.long),
        pytest.param(ENTRIES, ["--rag-k=-1"], "*k is '-1'*", marks=pytest.mark.long),
        (ENTRIES, ["--rag-k=99"], "*k is 99, but the knowledge base has 4 chunks*"),
    ],
)
def test_bad_input(golden: Suite, entries: Any, args: list[str], says: str) -> None:
    write_golden(golden, entries)
    result = golden.run(*args)
    assert result.ret != 0
    (result.stderr if "k is " in says else result.stdout).fnmatch_lines([says])
    assert "Traceback" not in result.stdout.str() + result.stderr.str()


ASKED = "*asked.jsonl:1: q1: context_reference 'retuns.md' is not a page of *'returns.md'?"
PARTS = "*parts.jsonl:2: q2: context_reference 'returns.md#refnds' is not a page, *#refunds'*"
CANNOT_BE_RUN = {
    "asked": (["--rag-golden=asked.jsonl"], ASKED),
    "parts": (["--rag-golden=parts.jsonl"], PARTS),
    "no folder": (["-o", "rag_kb_dir=kbs"], "*No folder *kbs. Did you mean 'kb'?*"),
    "no retriever": (["--rag-retriever=dens"], "*Unknown retriever 'dens'. Did you mean 'dense'?*"),
}
SOON = {("asked", "-n2"), ("no folder", "-n0"), ("no retriever", "-n0")}


@pytest.mark.parametrize(
    ("name", "workers"),
    [
        pytest.param(*each, marks=() if each in SOON else pytest.mark.long)
        for each in product(CANNOT_BE_RUN, ("-n0", "-n2"))
    ],
)
def test_what_cannot_be_run_stops_the_run_and_is_said(golden: Suite, name: str, workers: str) -> None:
    args, says = CANNOT_BE_RUN[name]
    for file, pages in (("asked", ["retuns.md", "waranty.md"]), ("parts", ["returns.md", "returns.md#refnds"])):
        lines = [{"query_id": f"q{n}", "query": "a lamp", "context_reference": page} for n, page in enumerate(pages, 1)]
        (golden.path / f"{file}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    result = golden.run(workers, *args, "--rag-gate=recall@k >= 0.5")
    said = result.stdout.str() + result.stderr.str()
    LineMatcher(said.splitlines()).fnmatch_lines([says])
    assert ("'waranty.md'" in said) == ("--rag-golden=asked.jsonl" in args), "all problems are said at once"
    assert result.ret != 0
    assert not golden.rows("golden")
    assert "crash" not in said
    assert "its test is gone" not in said
    assert "passed" not in result.stdout.str()


def beir(suite: Suite, texts: dict[str, str], queries: dict[str, str], gold: dict[str, str]) -> None:
    folder = suite.path / "beir"
    (folder / "qrels").mkdir(parents=True)
    for name, found in (("corpus", texts), ("queries", queries)):
        lines = [json.dumps({"_id": key, "text": text}) for key, text in found.items()]
        (folder / f"{name}.jsonl").write_text("\n".join(lines))
    lines = ["query-id\tcorpus-id\tscore", *(f"{query}\t{doc}\t1" for query, doc in gold.items())]
    (folder / "qrels" / "test.tsv").write_text("\n".join(lines))


def test_beir_folder(golden: Suite) -> None:
    texts, asked = ({f"{kind}{n}": f"word{n}" for n in range(5)} for kind in "dq")
    beir(golden, texts, asked, {f"q{n}": f"d{n}" for n in range(5)})
    result = golden.run("--rag-dataset=beir:beir")
    result.assert_outcomes(passed=5)
    result.stdout.fnmatch_lines(["all * 5 *1.000*"])


def test_a_query_does_not_find_itself(golden: Suite) -> None:
    # As in ArguAna: the counter-argument is sought for an argument that stands in the corpus itself.
    texts = {"a": "lamps go back within days", "b": "no lamps go back", "c": "it costs nine"}
    beir(golden, texts, {"a": texts["a"], "c": texts["c"]}, {"a": "b", "c": "c"})
    result = golden.run("--rag-dataset=beir:beir", "--rag-retriever=bm25", "--rag-k=1")
    result.assert_outcomes(passed=2)
    ranked: dict[Any, Any] = {row["query_id"]: row["ranking"] for row in golden.rows("golden")}
    assert ranked["a"][0] == "b"
    assert "a" not in ranked["a"]
    # Where the judgements name the document itself, it is sought.
    assert ranked["c"][0] == "c"


def test_gates_of_an_ini_file_are_not_those_of_a_collection(golden: Suite) -> None:
    # A type that the collection lacks is a mistake only in a gate that is about the collection.
    gate = "rag_gate = e2[query_type=negative]: abstention_rate >= 0.5"
    golden.pytester.makeini(f"[pytest]\nrag_kb_dir = kb\nrag_profile = mock\nrag_golden = golden.json\n{gate}\n")
    beir(golden, {"d": "tea"}, {"q": "tea"}, {"q": "d"})
    result = golden.run("--rag-dataset=beir:beir", "--rag-k=1", "--rag-retriever=bm25")
    result.stdout.fnmatch_lines(["*set for kb, this run is on beir:*"])
    assert result.ret == 0


@pytest.mark.long  # tests/unit/data/test_datasets.py has what is refused
def test_a_folder_that_is_no_beir_collection(golden: Suite) -> None:
    (golden.path / "beir").mkdir()
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


@pytest.mark.parametrize("workers", both("-n0"))
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


def test_what_changes_a_result_makes_it_be_looked_up_again(golden: Suite) -> None:
    def fingerprint(**changed: Any) -> str:
        settings = settings_of(golden, **changed)
        found = suite_of(settings)
        return fingerprint_of(found.experiment, settings, found.digest)

    known = [fingerprint()]
    assert fingerprint() == known[0]
    known += [fingerprint(k=2), fingerprint(retriever="bm25"), fingerprint(chunk_size=64, chunk_overlap=0)]
    write_golden(golden, [*ENTRIES[:4], {**ENTRIES[4], "query": "something else"}])
    known.append(fingerprint())
    assert len(known) == len(set(known))


@pytest.mark.long
def test_rows_of_another_setting_are_not_taken_over(golden: Suite) -> None:
    golden.run()
    before = {row["fingerprint"] for row in golden.rows("golden")}
    for change in (["--rag-k=2"], ["--rag-retriever=bm25"], ["--rag-chunk-size=64", "--rag-chunk-overlap=0"]):
        golden.run(*change)
        after = {row["fingerprint"] for row in golden.rows("golden")}
        assert len(after) == 1
        assert not after & before, change
        before |= after
    write_golden(golden, [*ENTRIES[:4], {**ENTRIES[4], "query": "something else"}])
    golden.run()
    assert not {row["fingerprint"] for row in golden.rows("golden")} & before


@pytest.mark.parametrize("workers", both("-n0"))
def test_a_limit_holds_for_the_golden_suite_too(golden: Suite, workers: str) -> None:
    result = golden.run(workers, "--rag-limit=2", "--rag-gate=recall@k >= 0.5")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["not judged *golden: recall@1 >= 0.5 *2 of 5 cases selected*"])


VECTORS_WAIT = """
import threading
import pytest
from rag_harness.core.types import GOLDEN
from rag_harness.retrieval.builder import Retrieval

may, made = threading.Event(), Retrieval.prepare

def prepare(self, queries):
    assert may.wait(60), "a test of an answer begins"
    made(self, queries)

Retrieval.prepare = prepare

@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    if "test_answers" in item.name:
        may.set()
"""


def test_figures_of_a_search_by_words_come_before_the_vectors(golden: Suite) -> None:
    golden.pytester.makepyfile(test_a="import pytest\n\n@pytest.mark.e3\ndef test_answers(rag_result): pass\n")
    golden.pytester.makeconftest(VECTORS_WAIT)
    result = golden.run("--rag-retriever=bm25")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "test_golden.py *",
            "rag: golden by bm25: recall@1 0.800, mrr@10 * on 5 questions; vectors for the other tests are being made",
            "test_a.py *",
        ]
    )
