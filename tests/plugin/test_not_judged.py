"""Gates without a verdict, errors and leftovers: what the screen says of them, and which of them fail a run."""

from __future__ import annotations

import json

import pytest

from tests.plugin.conftest import QUERIES, Suite

GATES = tuple(f"--rag-gate=e3: recall@{n} >= 0.1" for n in (3, 5))
STRICT = "--rag-not-judged=fail"
TWO = """
import pytest
from rag_harness import Answer, Chunk, Hit, PipelineOutput

class Says:
    def answer(self, query):
        if {broken} and int(query.query_id[1:]) % 2:
            raise ValueError("503")
        hit = Hit(Chunk("returns.md#1", "returns.md", "x"), 1.0, 1)
        return PipelineOutput(Answer("45 days" if query.text.startswith("lamp 1") else {text!r}), (hit,), (hit,))

@pytest.fixture(scope="session")
def rag_pipeline():
    return Says()

@pytest.mark.rag_experiment("{name}")
def test_{name}(rag_result):
    assert rag_result is not None
"""


@pytest.fixture(autouse=True)
def _without_sections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAG_SECTIONS", raising=False)


def screen(result: pytest.RunResult) -> str:
    return " ".join(result.stdout.str().split())


def test_a_conftest_that_takes_questions_out_is_told_once_without_v(suite: Suite) -> None:
    suite.pytester.makeconftest(
        "import pytest\n@pytest.hookimpl(trylast=True)\ndef pytest_collection_modifyitems(items):\n    del items[2:]\n"
    )
    result = suite.run(*GATES)
    assert result.ret == 0
    assert screen(result).count("2 gates not judged: 2 of 4 cases selected; --rag-gate-partial judges these") == 1
    assert "2 gates not judged: 2 of 4" in screen(suite.run(*GATES, "-q"))
    assert suite.run(*GATES, STRICT).ret == 1


def test_gates_of_other_questions_are_told_and_fail_nothing(suite: Suite) -> None:
    suite.pytester.makeini(
        "[pytest]\nrag_kb_dir = kb\nrag_queries = kb/queries.jsonl\nrag_profile = mock\n"
        "rag_gate = e3: recall@5 >= 0.1\n"
    )
    (suite.path / "other.csv").write_text("query,context_reference\nreturn a lamp,returns.md\n")
    result = suite.run("--rag-queries=other.csv", STRICT)
    assert result.ret == 0
    assert "1 gate not judged: set for kb/queries.jsonl, this run is on other.csv" in screen(result)


def test_a_suite_that_the_command_did_not_select_fails_nothing(suite: Suite) -> None:
    asked = ("-k", "e3", "--rag-gate=e2: recall@5 >= 0.5", GATES[0], STRICT)
    result = suite.run(*asked)
    assert result.ret == 0
    assert "1 passed, 0 failed, 1 not judged (e2 did not run)" in screen(result)
    assert suite.run("-k", "nothing_is_called_so", GATES[0], STRICT).ret != 0, "where nothing is judged, CI is red"


def test_the_first_baseline_fails_nothing(suite: Suite) -> None:
    asked = ("--rag-gate=e3: recall@5 >= baseline - 0.02", STRICT)
    first = suite.run(*asked, "--rag-save=main")
    assert first.ret == 0
    assert "1 gate not judged: no baseline yet: this run is saved as main" in screen(first)
    assert suite.run(*asked, "--rag-save=main").ret == 1, "a second run has one, and compares with none"


def test_drafts_fail_nothing(suite: Suite) -> None:
    suite.write_queries([{**query, "metadata": {"reviewed": "no"}} for query in QUERIES])
    result = suite.run(*GATES, STRICT)
    assert result.ret == 0
    assert "e3: 4 of 4 questions are unreviewed, and gates leave them out" in screen(result)


def test_undecided_fails_nothing_by_default(suite: Suite) -> None:
    assert suite.run("--rag-gate=e3: recall@5 >= 0.9 @95%", STRICT).ret == 0


def two(suite: Suite, wrong: int, plain: str = "45 days of something else") -> None:
    """Of 40 questions ``wrong`` raise in ``broken``, which is right on all others; ``plain`` is on some."""
    suite.write_queries(
        [
            {"query_id": f"q{2 * n + (n < wrong)}", "query": f"lamp {n}?", "context_reference": ["returns.md"],
             "ground_truth": "45 days"}
            for n in range(40)
        ]
    )  # fmt: skip
    for file in suite.path.glob("test_*.py"):
        file.unlink()
    for name, text in (("broken", "45 days"), ("plain", plain)):
        (suite.path / f"test_{name}.py").write_text(TWO.format(name=name, text=text, broken=name == "broken"))


@pytest.mark.parametrize(("wrong", "is_told"), [(2, False), (3, True), (20, True)])
def test_an_experiment_with_many_errors_is_neither_better_nor_worse(suite: Suite, wrong: int, is_told: bool) -> None:
    """More than 5 % of the trials, and at least three."""
    two(suite, wrong, "60 days")
    result = suite.run("--rag-cluster=none", "--rag-foreign-text=allow")
    said = f"broken: {wrong} of 40 trials ended with an error, so neither is better"
    assert (said in screen(result)) is is_told
    assert (" SURE: broken" in screen(result).replace("NOT SURE", "")) is not is_told
    (suite.path / "test_broken.py").unlink()


def test_two_runs_are_not_told_apart_by_many_errors(suite: Suite) -> None:
    two(suite, 20)
    plain = suite.path / "test_plain.py"
    plain.write_text(plain.read_text().replace("if False", "if True"))
    suite.run("--rag-cluster=none", "--rag-save=before", "-k", "plain")
    plain.write_text(plain.read_text().replace("if True", "if False"))
    result = suite.run("--rag-cluster=none", "--rag-compare=before", "-k", "plain", "--rag-foreign-text=allow")
    assert "plain: before, 20 of 40 trials ended with an error, so it is neither better nor worse" in screen(result)
    assert "Seen, not tested: error_rate" in screen(result)


def test_a_golden_run_after_an_experiment_speaks_of_what_it_looked_up(suite: Suite) -> None:
    suite.run("--rag-attribute")
    entries = [{"query": "a lamp", "expected_document_id": "returns.md", "justification": "it says so"}]
    (suite.path / "golden.json").write_text(json.dumps(entries))
    suite.pytester.makepyfile(test_golden="def test_finds(rag_retrieval):\n    assert rag_retrieval.found\n")
    suite.pytester.makeini("[pytest]\nrag_kb_dir = kb\nrag_profile = mock\nrag_golden = golden.json\n")
    result = suite.run("test_golden.py", "--rag-attribute", "--rag-k=1")
    brief = result.stdout.str().partition("rag in brief")[2]
    assert "golden   1 of 1 found" in brief
    assert "recall@1 1.000" in brief
    assert "mrr@1 1.000" in brief
    assert "\nwhy" not in brief
    assert "trials" not in brief


@pytest.mark.parametrize("k", [5, 10])
def test_the_shipped_golden_gates_are_judged_at_any_k(k: int, pytestconfig: pytest.Config) -> None:
    from rag_harness.runs.gates import parse_gate

    texts = (pytestconfig.rootpath / "pytest.ini").read_text().splitlines()
    gates = [parse_gate(text.strip(), k) for text in texts if text.strip().startswith("golden: ")]
    assert [gate.cutoff for gate in gates] == [k, k]
