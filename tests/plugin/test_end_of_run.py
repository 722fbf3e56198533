"""What comes after the last test, and in which order: two lists, and nobody beside them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import rag_harness
from rag_harness.frontends.pytest_plugin.end_of_run import SECTIONS, STEPS
from tests.plugin.conftest import TEST, Suite

_PLUGIN = Path(rag_harness.__file__).parent / "frontends" / "pytest_plugin"
STEP_NAMES = ["earlier turns", "metamorphic", "gates", "row of dots", "causes", "tune", "report", "otlp"]
SECTION_NAMES = [
    *("carried", "metamorphic", "trials", "scorecard", "pairwise", "slices"),
    *("abstention", "noise", "own", "snapshots", "causes", "affected"),
    "short summary",
    *("golden", "comparison", "gates", "brief", "tune", "report", "otlp", "answered"),
]
TELLS = """
from dataclasses import replace
from rag_harness.frontends.pytest_plugin import end_of_run

def told(step):
    def work(run):
        print(f"\\nstep: {step.name}")
        step.work(run)
    return replace(step, work=work)

end_of_run.STEPS = (*(told(step) if step is not end_of_run.ROW_OF_DOTS else step for step in end_of_run.STEPS),)
"""
ADDS = """
from rag_harness.frontends.pytest_plugin import end_of_run
from rag_harness.frontends.pytest_plugin.end_of_run import SECTIONS, STEPS, Section, Step

def count(run):
    run.findings.more["counted"] = run.recorder.trials

def say(run, terminal):
    terminal.section("counted")
    terminal.line(f"{run.findings.more['counted']} trials came")

end_of_run.STEPS = (Step("count", "counts trials", count), *STEPS)
end_of_run.SECTIONS = (*SECTIONS, Section("counted", "says how many", say))
"""
GOLDEN = """
def test_finds(rag_retrieval):
    assert rag_retrieval.found
"""
IN_ORDER = [
    *("*= rag metamorphic =*", "*= rag =*", "*= short test summary info =*"),
    *(
        "*= rag golden =*",
        "*= rag gates =*",
        "otlp: *",
        "rag: * answered, *",
        "*4 failed, *",
        "*= rag causes =*",
        "report: *",
    ),
]
"""Causes, and the report that shows them, come below pytest's last line."""
STOPPED = """
from rag_harness.diagnosis import explainer

def stopped(self, known=None):
    raise KeyboardInterrupt

explainer.Explainer.every = stopped
"""


def test_the_order_is_this_one() -> None:
    assert [step.name for step in STEPS] == STEP_NAMES
    assert [section.name for section in SECTIONS] == SECTION_NAMES
    assert [step.name for step in STEPS if step.after_errors] == ["gates", "report", "otlp"]


def test_nothing_else_of_the_plugin_waits_for_the_end() -> None:
    hooks = {"pytest_runtestloop", "pytest_terminal_summary"}
    found = [
        (file.name, node.name)
        for file in sorted(_PLUGIN.glob("*.py"))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name in hooks
    ]
    # Two of each: pytest's own row of dots and short summary stand in the middle of the lists. The plugin that nothing
    # wakes says so in a hook of its own.
    asleep = ("__init__.py", "pytest_terminal_summary")
    assert sorted(found) == sorted([asleep, *[("end_of_run.py", hook) for hook in hooks] * 2])


def _with_all_sections(suite: Suite) -> list[str]:
    (suite.path / "golden.json").write_text(
        '[{"query": "lamp", "expected_document_id": "returns.md", "justification": "45 days"}]', encoding="utf-8"
    )
    suite.pytester.makepyfile(
        TEST, test_golden=GOLDEN, test_wrong="import pytest\n\n@pytest.mark.e3\ndef test_it(rag_result): assert 0\n"
    )
    return [
        *("--rag-metamorphic", "--rag-attribute", "--rag-report=report.md", "--rag-otlp=http://127.0.0.1:9"),
        *("--rag-golden=golden.json", "--rag-k=2", "--rag-gate=e3: recall@5 >= 0.1"),
    ]


def test_it_happens_and_is_printed_in_this_order(suite: Suite) -> None:
    suite.pytester.makeconftest(TELLS)
    said = suite.run("-s", *_with_all_sections(suite))
    assert [line.removeprefix("step: ") for line in said.outlines if line.startswith("step: ")] == [
        name for name in STEP_NAMES if name != "row of dots"
    ]
    said.stdout.fnmatch_lines(IN_ORDER)


@pytest.mark.parametrize("workers", [pytest.param("-n0", marks=pytest.mark.long), "-n2"])
def test_a_step_and_a_section_are_added_by_a_line_each(suite: Suite, workers: str) -> None:
    suite.pytester.makeconftest(ADDS)
    said = suite.run(workers, "--rag-gate=e3: recall@5 >= 0.1")
    said.assert_outcomes(passed=4)
    said.stdout.fnmatch_lines(["*= rag gates =*", "*= counted =*", "4 trials came"])
    assert '"counted": 4' in (suite.path / "output" / "summary.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("gate", ["e3: recall@5 >= 0.1", "e3: token_f1 >= 0.99"])
def test_a_verdict_does_not_wait_for_causes_and_survives_their_end(suite: Suite, gate: str) -> None:
    suite.pytester.makeconftest(STOPPED)
    said = suite.run("--rag-attribute", f"--rag-gate={gate}", "--rag-report=report.md")
    plain = suite.run(f"--rag-gate={gate}")
    assert said.ret == plain.ret
    said.stdout.fnmatch_lines(
        [
            "*= rag in brief =*",
            "gates *",
            "why *; causes follow.",
            "*4 passed*",
            "rag: stopped: no causes were worked out*",
        ]
    )
    assert (suite.path / "report.md").is_file()


def test_a_run_that_only_collects_has_no_end(suite: Suite) -> None:
    suite.pytester.makeconftest(TELLS)
    said = suite.run("-s", "--collect-only", *_with_all_sections(suite))
    said.stdout.no_fnmatch_line("step: *")


def test_after_an_error_gates_are_judged_and_the_report_is_written(suite: Suite) -> None:
    suite.pytester.makeconftest(TELLS)
    said = suite.run("-s", "-x", *_with_all_sections(suite))
    steps = [line.removeprefix("step: ") for line in said.outlines if line.startswith("step: ")]
    assert steps == ["gates", "report", "otlp"]
    said.stdout.fnmatch_lines(["*stopping after 1 failures*"])


def test_after_somebody_has_stopped_the_run_nothing_is_done(suite: Suite) -> None:
    suite.pytester.makeconftest(TELLS)
    suite.pytester.makepyfile(test_a="def test_it(): raise KeyboardInterrupt", test_b=TEST)
    said = suite.run("-s", "--rag-report=report.md", "--rag-gate=e3: recall@5 >= 0.1")
    said.stdout.no_fnmatch_line("step: *")
    said.stdout.fnmatch_lines(["*KeyboardInterrupt*"])
