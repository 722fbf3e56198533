"""``--rag-attribute``: causes after the tests, in files and on the terminal. Mock profile."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from tests.plugin.conftest import QUERIES, TEST, Suite

EVIDENCE = {
    "q_direct_001": {"filename": "returns.md", "quote": "You can return a lamp within 45 days."},
    "q_direct_002": {"filename": "shipping.md", "quote": "Express delivery costs €9.90 in Zone 1."},
}
OWN = """
import pytest
from rag_harness.core.types import Answer, PipelineOutput

class Mine:
    def answer(self, query):
        return "Something else."

@pytest.fixture
def rag_pipeline():
    return Mine()

@pytest.mark.rag_experiment("mine")
def test_answers(rag_result):
    assert rag_result.ok
"""


@pytest.fixture
def study(suite: Suite) -> Suite:
    quotes = [EVIDENCE.get(str(query["query_id"])) for query in QUERIES]
    suite.write_queries([q | {"evidence": [quote] if quote else []} for q, quote in zip(QUERIES, quotes, strict=True)])
    return suite


def causes(suite: Suite) -> list[dict[str, Any]]:
    file = suite.path / "output" / "causes.jsonl"
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("workers", [pytest.param("-n0", marks=pytest.mark.long), "-n2"])
def test_failed_trials_are_run_again_and_their_causes_kept_and_printed(study: Suite, workers: str) -> None:
    result = study.run("--rag-attribute", workers)
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(
        [
            "*rag causes*",
            "why they failed *e3",
            "Logic Failure*",
            "e3: the worst * of *",
            "  e3-q_direct_00?*",
            "all *: output/causes.jsonl",
        ]
    )
    found = {line["query_id"]: line for line in causes(study)}
    assert found["q_direct_001"]["cause"] == "Logic Failure"
    assert found["q_direct_001"]["answers"]["+no_context"]["right"] is False
    assert not found["q_direct_001"]["observational"]
    derived = {file.name for file in (study.path / "output" / "derived").iterdir()}
    assert {"e3+no_context.jsonl", "e3+twice.jsonl"} <= derived
    assert not list((study.path / "output" / "journal").iterdir())


def test_a_second_run_runs_nothing_again(study: Suite) -> None:
    study.run("--rag-attribute")
    file = study.path / "output" / "derived" / "e3+no_context.jsonl"
    before, said = file.read_bytes(), causes(study)
    study.run("--rag-attribute", "-n2").assert_outcomes(passed=4)
    assert (file.read_bytes(), causes(study)) == (before, said)


def test_a_pipeline_of_ones_own_is_explained_from_its_rows(study: Suite) -> None:
    study.pytester.makepyfile(OWN)
    result = study.run("--rag-attribute")
    why = "from rows and gold alone (observational): mine is not a registered"
    result.stdout.fnmatch_lines([f"mine: * causes are {why}*"])
    usual = {"the pipeline does not say what it looked up", "answered what is not in the documents", "no gold"}
    assert {line["detail"] for line in causes(study)} <= usual


def test_workers_that_shared_a_budget_leave_none(study: Suite) -> None:
    result = study.run("--rag-attribute", "--rag-budget=1", "-n2")
    result.stdout.fnmatch_lines(["*(observational): the workers have shared the budget*"])
    assert all(line["observational"] for line in causes(study))
    study.run("--rag-attribute", "--rag-budget=1")
    assert not any(line["observational"] for line in causes(study) if line["query_id"] == "q_direct_001")


def test_nothing_failed_is_said(study: Suite) -> None:
    study.write_queries([{"query_id": "q_negative_001", "query_type": "negative", "query": "live fish"}])
    study.pytester.makeconftest(
        "from rag_harness.models import dry_run\n"
        "real = dry_run.MockChat.complete\n"
        "async def complete(self, messages, response_format=None):\n"
        "    from dataclasses import replace\n"
        "    said = await real(self, messages, response_format)\n"
        "    return replace(said, text=said.text.replace('Placeholder answer of the mock profile', \"I don't know\"))\n"
        "dry_run.MockChat.complete = complete\n"
    )
    study.run("--rag-attribute").stdout.fnmatch_lines(["no failed trial: nothing to explain"])


def test_without_the_option_nothing_is_explained_until_the_command_does_it(study: Suite) -> None:
    study.run().stdout.no_fnmatch_line("*rag causes*")
    assert not (study.path / "output" / "causes.jsonl").exists()
    result = study.pytester.run(sys.executable, "-m", "rag_harness", "explain", "output", "e3-q_direct_001")
    result.stdout.fnmatch_lines(
        ["trial        e3-q_direct_001", "cause        Logic Failure*", "tried        +no_context*"]
    )


@pytest.mark.usefixtures("cold_python")  # the warm one has it, for pages
def test_suites_import_none_of_it_unless_asked(study: Suite) -> None:
    study.pytester.makepyfile(
        TEST + "\nimport sys\n\ndef test_not_there():\n"
        "    found = {name for name in sys.modules if name.startswith('rag_harness.diagnosis.')}\n"
        "    assert not found, found\n"
    )
    study.run().assert_outcomes(passed=5)


def test_what_an_earlier_run_has_left_is_judged_and_not_run_again(study: Suite) -> None:
    study.pytester.makepyfile(test_e2=TEST.replace("e3", "e2"))
    study.run("-m", "e2")
    result = study.run("-m", "e3", "--rag-attribute", "--rag-gate=e3: recall@5 >= e2 - 1")
    result.stdout.fnmatch_lines(["passed *e3: recall@5 >= e2 - 1*", "why they failed *e3"])
    assert {file.name.partition("+")[0] for file in (study.path / "output" / "derived").glob("*.jsonl")} == {"e3"}
    study.run("-m", "e2", "--rag-attribute", "--rag-gate=e2: recall@5 >= e3 - 1")
    assert {line["experiment"] for line in causes(study)} == {"e2", "e3"}
