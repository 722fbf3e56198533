"""Gates on measures of any unit and of anybody, strict ones, and those that others have replaced."""

from __future__ import annotations

import json
import re

import pytest

from rag_harness.page.comment import comment_of
from tests.plugin.conftest import QUERIES, Suite
from tests.unit.page.runs import read

# Gates on measures of any unit and of anybody, and on nothing but the trials and the data that they are about.

BREVITY = """
from rag_harness import RankingMeasure, RowMeasure, Score


class Brevity(RowMeasure):
    called, unit, better, worst = "brevity", "count", "lower", None

    def applies(self, case):
        return "" if case.answerable else "no answer in the documents"

    def score(self, case, row):
        return Score(float(len(row.llm_answer.split())))


class Top(RankingMeasure):
    called = "top"

    def batch(self, found):
        return found.sums(found.rank <= self.cutoff) / self.cutoff
"""
ENTRY_POINTS = "[rag_harness.measures]\nbrevity = brevity:Brevity\ntop = brevity:Top\n"
MINE = """
import pytest
from rag_harness.core.errors import BudgetError

class Mine:
    def __init__(self, spent): self.spent = spent
    async def answer(self, query):
        if self.spent: raise BudgetError("nothing is left")
        return "fine"

@pytest.fixture
def rag_pipeline(rag_trial): return Mine(rag_trial.experiment == "mine-own")

@pytest.mark.rag_experiment("mine", "mine-own")
def test_mine(rag_result): assert rag_result.ok
"""


@pytest.fixture
def brevity(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """Install a package that brings two measures: a module and the entry points, as pip would leave them."""
    site = suite.path / "site"
    (site / "brevity-1.0.dist-info").mkdir(parents=True)
    (site / "brevity-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: brevity\nVersion: 1.0\n")
    (site / "brevity-1.0.dist-info" / "entry_points.txt").write_text(ENTRY_POINTS)
    (site / "brevity.py").write_text(BREVITY)
    monkeypatch.setenv("PYTHONPATH", str(site))
    return suite


def test_measures_of_another_package_work_everywhere(brevity: Suite) -> None:
    result = brevity.run("--rag-gate=e3: brevity <= 0.5", "--rag-gate=e3: p50(top@2) >= 0.5", "--rag-save=main")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["failed *e3: brevity <= 0.5 *n=3", "passed *e3: p50(top@2) >= 0.5 *0.500*n=3*"])
    summary = json.loads((brevity.path / "output" / "summary.json").read_text())
    assert {"brevity", "top@2", "top@5", "top@10"} <= set(summary["e3"])
    # What tells the file from one that an earlier run left behind.
    assert summary["run"] == json.loads((brevity.path / "output" / "run.json").read_text())["date"]
    assert [gate["unit"] for gate in summary["gates"]] == ["count", "share"]
    saved = json.loads((brevity.path / "baselines" / "main.json").read_text())
    assert {"brevity", "top@5"} <= set(saved["suites"]["e3"]["q_direct_001"]["values"])
    result = brevity.run("--rag-compare=main", "--rag-gate=e3: brevity <= baseline", "--rag-overwrite")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        ["* measures are the same in both: *", "* brevity,*", "passed *e3: brevity <= baseline*"]
    )
    result = brevity.run("--rag-gate=e3: brevty <= 9")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*Unknown measure 'brevty'. Did you mean 'brevity'?*"])


def test_gates_in_other_units(suite: Suite) -> None:
    gates = ["e3: p95(total_ms) <= 60000", "e3: p50(total_ms) <= 0", "e3: cost_usd <= 0.002", "e3: tokens >= 1"]
    result = suite.run(*(f"--rag-gate={gate}" for gate in gates))
    assert result.ret == 1
    lines = ["passed *e3: p95(total_ms) <= 60000 * ms [[]*, …]  n=4", "failed *e3: p50(total_ms) <= 0 * ms [[]*]  n=4"]
    result.stdout.fnmatch_lines([*lines, "*e3: cost_usd <= 0.002*"])
    summary = json.loads((suite.path / "output" / "summary.json").read_text())
    assert summary["gates"][0]["interval"][1] is None
    assert summary["gates"][0]["unit"] == "ms"


@pytest.mark.parametrize("workers", [pytest.param("-n0", marks=pytest.mark.long), "-n2"])
def test_gates_are_about_their_own_experiment_and_no_longer_name(suite: Suite, workers: str) -> None:
    suite.pytester.makepyfile(MINE)
    result = suite.run(workers, "--rag-gate=mine: error_rate <= 0.05", "--rag-gate=mine-own: error_rate <= 0.05")
    result.stdout.fnmatch_lines(
        [
            "passed *mine: error_rate <= 0.05 *n=4",
            "failed *mine-own: error_rate <= 0.05 *not run for lack of budget: 4 trials",
        ]
    )
    record = json.loads((suite.path / "output" / "run.json").read_text())["suites"]
    assert (record["mine"]["not_run"], record["mine"]["selected"]) == ([], "all")
    assert len(record["mine-own"]["not_run"]) == 4
    assert record["mine-own"]["lost"] == []


def test_terminal_and_gates_have_one_recall_after_a_crash(suite: Suite) -> None:
    suite.pytester.makeconftest(
        """
        import os, signal
        def pytest_runtest_call(item):
            if "q_direct_002" in item.nodeid:
                os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    result = suite.run("-n1", "--max-worker-restart=1", "--rag-gate=e3: recall@5 >= 0.1")
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        [
            "experiment *recall@5*lost",
            "e3 * 1 * 0.333 * 3",
            "3 trials were selected and have no row*",
            "failed *e3: recall@5 >= 0.1 *0.333 *n=3*",
            "*3 cases lost to a crash, so it cannot pass*",
        ]
    )


def test_gates_of_the_ini_file_are_about_its_data(suite: Suite) -> None:
    ini = (
        "[pytest]\nrag_kb_dir = kb\nrag_profile = mock\nrag_gate =\n    e3: recall@5 >= 1.0\n    e3: error_rate <= 0\n"
    )
    suite.pytester.makeini(ini)
    other = suite.path / "other"
    other.mkdir()
    (other / "page.md").write_text("# A page\n\nWith a word.\n")
    (other / "queries.jsonl").write_text(json.dumps({**QUERIES[0], "context_reference": ["page.md"]}) + "\n")
    result = suite.run("--rag-kb=other", "--rag-gate=e3: mrr@5 >= 0")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "passed *e3: mrr@5 >= 0 *",
            "not judged  set for kb, this run is on other",
            "            e3: recall@5 >= 1; e3: error_rate <= 0",
        ]
    )
    result = suite.run(f"--rag-kb={suite.path / 'kb'}")
    result.stdout.fnmatch_lines(["passed *e3: recall@5 >= 1 *n=3*"])
    (suite.path / "more.jsonl").write_text((suite.path / "kb" / "queries.jsonl").read_text())
    result = suite.run("--rag-queries=more.jsonl")
    result.stdout.fnmatch_lines(["not judged  set for kb/queries.jsonl, this run is on more.jsonl"])


@pytest.mark.long
def test_it_is_said_why_a_measure_has_no_value(suite: Suite) -> None:
    suite.write_queries([{**query, "ground_truth": ""} for query in QUERIES])
    result = suite.run("--rag-gate=e3: token_f1 >= 0")
    assert result.ret == 1
    text = " ".join(result.stdout.str().split())
    assert (
        "no case has a value of token_f1: 3 of 4 have no ground truth, 1 of 4 have no answer in the documents" in text
    )


def test_what_a_run_leaves_behind_is_all_that_a_report_needs(suite: Suite) -> None:
    suite.run("-k", "q_direct_001 or q_negative")
    result = suite.run()
    record = json.loads((suite.path / "output" / "run.json").read_text())
    e3 = record["suites"]["e3"]
    assert (e3["data"], e3["total"], e3["selected"], e3["lost"]) == ("queries", 4, "all", [])
    assert e3["resumed"] == ["q_direct_001", "q_negative_001"]
    assert e3["fingerprints"] == [suite.rows()[0]["fingerprint"]]
    assert record["settings"]["profile"] == "mock"
    assert record["settings"]["openai_api_key"] == "not set"
    cases = [json.loads(line) for line in (suite.path / "output" / "cases" / "queries.jsonl").read_text().splitlines()]
    assert [(case["case_id"], case["answerable"], case["qrels"]) for case in cases[:1]] == [
        ("q_direct_001", True, {"returns.md": 1})
    ]
    assert cases[3]["labels"] == {"query_type": "negative"}
    result.stdout.fnmatch_lines(
        ["answers: 2 reused from the run of * UTC; 2 asked now", "--rag-overwrite makes reused rows again"]
    )


def test_an_output_that_cannot_be_written_is_one_failure_with_its_reason(suite: Suite) -> None:
    (suite.path / "output").mkdir()
    (suite.path / "output" / "cases").write_text("a file where a folder should be")
    result = suite.run("--rag-gate=e3: error_rate <= 0")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*write results*", "*output/cases*"])
    assert "INTERNALERROR" not in result.stdout.str() + result.stderr.str()


def test_what_was_not_reached_before_an_interrupt_was_not_run_and_is_not_lost(suite: Suite) -> None:
    suite.pytester.makepyfile(
        """
        import pytest

        @pytest.mark.e3
        def test_answers(rag_result):
            if rag_result.query_id == "q_direct_002":
                raise KeyboardInterrupt
        """
    )
    result = suite.run("--rag-gate=e3: recall@5 >= 0.9")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    record = json.loads((suite.path / "output" / "run.json").read_text())["suites"]["e3"]
    assert (len(record["not_run"]), record["lost"]) == (3, [])
    result.stdout.fnmatch_lines(["e3 * 1 * 0 * 1.000 *"])
    assert "rag gates" not in result.stdout.str()


DRAFTS: list[dict[str, object]] = [
    {**query, "metadata": {} if said == "-" else {"reviewed": said}}
    for query, said in zip(QUERIES, ("yes", "no", "-", "no"), strict=True)
]


def test_drafts_let_no_gate_pass_and_block_none(suite: Suite) -> None:
    suite.write_queries(DRAFTS)
    result = suite.run(
        "--rag-gate=e3: recall@5 >= 0.5",
        "--rag-gate=e3[reviewed=yes]: error_rate <= 0",
        "--rag-gate=e3[query_type=negative]: error_rate > 0.5",
    )
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "e3: 2 of 4 questions are unreviewed, and gates leave them out: rag-harness queries review *",
            "passed *e3: recall@5 >= 0.5 *n=2",
            "*on the 2 reviewed of 4 cases; with the drafts *",
            "passed *e3[[]reviewed=yes]: error_rate <= 0 *n=2",
            "not judged *e3[[]query_type=negative]: error_rate > 0.5 *n=1",
            "*1 of 1 case is an unreviewed draft: rag-harness queries review kb/queries.jsonl",
        ]
    )


@pytest.mark.long
def test_drafts_are_not_undecided(suite: Suite) -> None:
    suite.write_queries(DRAFTS)
    result = suite.run("--rag-undecided=fail", "--rag-gate=e3[query_type=negative]: error_rate > 0.5 @95%")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["not judged *error_rate > 0.5 @95% *n=1", "*1 of 1 case is an unreviewed draft: *"])


def test_drafts_are_judged_like_others_where_that_is_asked_for(suite: Suite) -> None:
    suite.write_queries(DRAFTS)
    gates = "--rag-gate=e3: recall@5 >= 0.5", "--rag-gate=e3[query_type=negative]: error_rate > 0.5"
    result = suite.run("--rag-gate-unreviewed", *gates)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["passed *e3: recall@5 >= 0.5 *n=3*", "failed *error_rate > 0.5 *n=1*"])


@pytest.mark.long
def test_questions_that_say_nothing_of_review_are_reviewed_ones(suite: Suite) -> None:
    result = suite.run("--rag-gate=e3[reviewed=yes]: recall@5 >= 0", "--rag-gate=e3[reviewed=no]: recall@5 >= 0")
    result.stdout.fnmatch_lines(
        ["passed *e3[[]reviewed=yes]: recall@5 >= 0 *n=3*", "failed *no case is in e3[[]reviewed=no]"]
    )


def test_a_setup_that_fails_elsewhere_is_no_error_of_collection(suite: Suite) -> None:
    other = "import pytest\n\n@pytest.fixture\ndef broken():\n    raise OSError\n\ndef test_other(broken):\n    pass\n"
    (suite.path / "test_other.py").write_text(other, encoding="utf-8")
    result = suite.run("test_other.py", "--rag-gate=e3: recall@5 >= 0.1")
    result.assert_outcomes(errors=1)
    assert "could not be collected" not in result.stdout.str()


# Gates that others have replaced, gates that cannot fail: the run, its files and its comment say so.

INI = "[pytest]\naddopts = -p no:cacheprovider\nrag_kb_dir = kb\nrag_profile = mock\nrag_gate =\n"
STRICT, LAX = "e3: recall@5 >= 0.75", "e3: recall@5 >= 0.0"
SAID = f"gate replaced: {STRICT}, by e3: recall@5 >= 0 (a later one on the same)"


def brief(suite: Suite, monkeypatch: pytest.MonkeyPatch, *args: str) -> str:
    """Run the suite, and return its output as a user sees it, without the breaks of lines."""
    monkeypatch.delenv("RAG_SECTIONS", raising=False)
    result = suite.run(*args)
    assert result.ret == 0
    return " ".join(result.stdout.str().split())


def kept(suite: Suite) -> object:
    return json.loads((suite.path / "output" / "summary.json").read_text()).get("replaced")


@pytest.mark.parametrize(
    ("gates", "args"),
    [pytest.param((STRICT, LAX), (), marks=pytest.mark.long), ((STRICT,), (f"--rag-gate={LAX}",))],
)
def test_a_stricter_gate_does_not_go_without_a_word(
    suite: Suite, monkeypatch: pytest.MonkeyPatch, gates: tuple[str, ...], args: tuple[str, ...]
) -> None:
    suite.pytester.makeini(INI + "".join(f"    {gate}\n" for gate in gates))
    coloured = brief(suite, monkeypatch, *args, "--color=yes")
    assert "\x1b[33mnote gate replaced" in coloured
    said = " ".join(re.sub(r"\x1b\[\d{1,3}m", "", coloured).split())
    assert f"note {SAID}" in said
    assert "note cannot fail: e3: recall@5 >= 0, which every value meets" in said
    assert kept(suite) == [SAID]
    assert r"Gate replaced: e3: recall@5 \>= 0.75, by" in comment_of(read(suite.path / "output"))


def test_beside_the_gates_it_stands_too(suite: Suite) -> None:
    suite.pytester.makeini(f"{INI}    {STRICT}\n    {LAX}\n")
    result = suite.run("--rag-sections=gates")
    result.stdout.fnmatch_lines(["passed *e3: recall@5 >= 0 *", SAID, "cannot fail: e3: recall@5 >= 0, *"])


@pytest.mark.parametrize("place", [pytest.param("environment", marks=pytest.mark.long), ".env"])
def test_gates_of_the_environment_say_which_they_replace(
    suite: Suite, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    suite.pytester.makeini(f"{INI}    {STRICT}\n    e3: mrr@5 >= 0.5\n    e3: error_rate <= 0\n")
    if place == ".env":
        (suite.path / ".env").write_text("RAG_GATE=e3: mrr@5 >= 0.1\n")
    else:
        monkeypatch.setenv("RAG_GATE", "e3: mrr@5 >= 0.1")
    said = "RAG_GATE replaces the 3 gates of tox.ini"
    assert f"note {said}" in brief(suite, monkeypatch)
    assert kept(suite) == [said]


def test_where_nothing_is_replaced_nothing_is_said(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    suite.pytester.makeini(f"{INI}    {STRICT}\n")
    said = brief(suite, monkeypatch, "--rag-gate=e3: mrr@5 >= 0.1", f"--rag-gate={STRICT}")
    assert "gate replaced" not in said
    assert "RAG_GATE" not in said
    assert "cannot fail" not in said
    assert kept(suite) is None


@pytest.mark.long
def test_a_cutoff_with_a_zero_in_front_is_refused_before_anything_is_asked(suite: Suite) -> None:
    result = suite.run("--rag-gate=e3: recall@03 >= 0.0")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*recall@03: write recall@3.*"])
    assert suite.rows() == []


# Options that let gates without a verdict fail a run: its brief says FAIL, and why.

NOT_JUDGED = ("--rag-gate=e3: recall@5 >= baseline", "--rag-not-judged=fail")
UNDECIDED = ("--rag-gate=e3: recall@5 >= 0.9 @95%", "--rag-undecided=fail")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (NOT_JUDGED, "FAIL   0 passed, 0 failed, 1 not judged (--rag-not-judged=fail)"),
        (UNDECIDED, "FAIL   0 passed, 0 failed, 1 undecided (--rag-undecided=fail)"),
    ],
)
def test_the_line_of_gates_begins_with_fail(
    suite: Suite, monkeypatch: pytest.MonkeyPatch, asked: tuple[str, ...], said: str
) -> None:
    monkeypatch.delenv("RAG_SECTIONS")
    result = suite.run(*asked, "--color=yes")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    (first,) = [n for n, line in enumerate(result.outlines) if line.startswith("\x1b[31mgates ")]
    whole = re.sub(r"\x1b\[\d{1,3}m", "", " ".join(result.outlines[first : first + 2]))
    assert " ".join(whole.split()).startswith(f"gates {' '.join(said.split())}")


def test_so_it_does_where_three_lines_are_all(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAG_SECTIONS")
    result = suite.run(*NOT_JUDGED, "-q")
    result.stdout.fnmatch_lines(["gates    FAIL   0 passed, 0 failed, 1 not judged*"])


def test_without_the_options_such_gates_fail_nothing(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAG_SECTIONS")
    result = suite.run(UNDECIDED[0])
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["gates    UNDECIDED   0 passed, 0 failed, 1 undecided"])
