"""``--rag-report``: the file at the end of a run, from what the run has left. Mock profile."""

from __future__ import annotations

import html
import json
from pathlib import Path

import pytest

from rag_harness.__main__ import main
from tests.plugin.conftest import Suite

JUDGED = "--rag-measures=context_precision,faithfulness,answer_relevancy"
GATE = "--rag-gate=e3: error_rate <= 0.5"


def test_the_report_is_written_last_and_says_what_the_run_came_to(suite: Suite) -> None:
    result = suite.run(JUDGED, GATE, "--rag-attribute", "--rag-report=report.html")
    result.assert_outcomes(passed=4)
    lines = [line for line in result.stdout.lines if line.startswith("report: ")]
    assert lines == [f"report: {suite.path / 'report.html'} ({lines[0].rpartition('(')[2]}"]
    assert result.stdout.lines.index(lines[0]) > next(n for n, x in enumerate(result.stdout.lines) if "rag gates" in x)
    page = (suite.path / "report.html").read_text()
    assert "1 gate passed" in page
    assert 'id="table-causes"' in page  # causes are found after the gates, and are in the file all the same


def test_workers_write_one_report(suite: Suite) -> None:
    suite.run("-n2", "--rag-report=report.md").assert_outcomes(passed=4)
    assert (suite.path / "report.md").read_text().startswith("## ❔ NO VERDICT: no gate is set")


def test_a_failed_gate_does_not_keep_the_report_back(suite: Suite) -> None:
    result = suite.run("--rag-gate=e3: token_f1 >= 0.99", "--rag-report=report.md")
    result.assert_outcomes(passed=4, failed=1)
    assert "❌ failed" in (suite.path / "report.md").read_text()


def test_the_golden_suite_has_a_report(suite: Suite) -> None:
    for file in suite.path.glob("test_*.py"):
        file.write_text("def test_finds(rag_retrieval):\n    assert rag_retrieval.found\n")
    entries = [{"query": "return a lamp", "expected_document_id": "returns.md", "justification": "j"}]
    (suite.path / "golden.json").write_text(json.dumps(entries))
    suite.run("--rag-golden=golden.json", "--rag-k=1", "--rag-gate=recall@1 >= 0.5", "--rag-report=report.html")
    page = (suite.path / "report.html").read_text()
    assert "1 gate passed" in page
    assert "golden: recall@1" in page
    assert "return a lamp" in page


def test_the_first_tutorial_s_report_has_every_question(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAG_SECTIONS", raising=False)
    assert main(["init", str(pytester.path), "--example"]) == 0
    assert pytester.runpytest_subprocess().ret == 0
    quiet = [line for line in pytester.runpytest_subprocess("-q").outlines if line]
    assert [line.split()[0] for line in quiet[-4:-1]] == ["gates", "golden", "next"]
    assert quiet[-3:-1] == [
        "golden   14 of 18 found an expected document among the first 3 hits, 4 missed",
        "next     rag-harness explain output",
    ]
    monkeypatch.chdir(pytester.path)
    assert main(["report", "output", "-o", "report.html"]) == 0
    page = html.unescape(Path("report.html").read_text(encoding="utf-8"))
    questions = [json.loads(line) for line in Path("queries.jsonl").read_text(encoding="utf-8").splitlines()]
    asked = [each["query"] for each in questions if each["context_reference"]]
    assert len(asked) == 18
    assert [each for each in asked if each not in page] == []
    assert "no trial" not in page.lower()


def test_a_run_that_lost_every_trial_has_a_report_that_says_so(suite: Suite) -> None:
    for file in suite.path.glob("test_*.py"):
        file.write_text("import pytest\n\n@pytest.mark.e3\ndef test_asks_nothing(rag_trial, rag_result): pass\n")
    suite.pytester.makeconftest(
        "import pytest\n\n@pytest.fixture\ndef rag_result(rag_trial):\n    raise RuntimeError('no')\n"
    )
    suite.run("--rag-report=report.html")
    assert "lost" in (suite.path / "report.html").read_text()


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("report.pdf", "*report.pdf: no format ends like that. Use one of .html, .md*"),
        (".", "*is a folder. Name a file in it: *report.html."),
    ],
)
def test_a_name_that_cannot_be_is_refused_before_anything_runs(suite: Suite, file: str, said: str) -> None:
    result = suite.run(f"--rag-report={file}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([said])
    assert not (suite.path / "output").exists()


def test_a_folder_in_its_place_is_refused_before_anything_runs(suite: Suite) -> None:
    (suite.path / "report.html").mkdir()
    result = suite.run("--rag-report=report.html")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*report.html is a folder. Name a file in it: *"])


def test_a_report_that_cannot_be_written_fails_the_run(suite: Suite) -> None:
    (suite.path / "file").write_text("")
    result = suite.run("--rag-report=file/report.html")
    result.assert_outcomes(passed=4, failed=1)
    result.stdout.fnmatch_lines(["*file/report.html cannot be written: *"])


def test_an_error_that_nobody_foresaw_is_a_failure_and_not_the_end(suite: Suite) -> None:
    suite.pytester.makeconftest(
        "import rag_harness.page.report as written\n\n"
        "def broken(*args, **more):\n    raise ZeroDivisionError('of a chart')\n\nwritten.write_report = broken\n"
    )
    result = suite.run("--rag-report=report.html", "--rag-gate=e3: error_rate <= 0.5")
    result.assert_outcomes(passed=4, failed=1)
    result.stdout.fnmatch_lines(["*ZeroDivisionError: of a chart*", "passed *e3: error_rate*"])


def test_nothing_is_written_where_nothing_was_run(suite: Suite) -> None:
    for args in (["--collect-only"], ["-k", "no such test"]):
        suite.run("--rag-report=report.html", *args).stdout.no_fnmatch_line("report: *")
        assert not (suite.path / "report.html").exists()


def test_relative_to_where_it_was_typed(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    (suite.path / "below").mkdir()
    monkeypatch.chdir(suite.path / "below")
    suite.pytester.runpytest_inprocess(str(suite.path), "--rag-profile=mock", "--rag-report=r.md")
    assert Path("r.md").is_file()
