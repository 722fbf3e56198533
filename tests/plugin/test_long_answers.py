"""An answer that a check or the judge would look at for long: the run ends, the row stays, and there is a reason."""

from __future__ import annotations

import time

import pytest

from tests.plugin.conftest import Suite

MINE = """
import pytest

class Mine:
    def answer(self, query):
        return "ab" * 100_000 if query.query_id == "q1" else "Within 45 days."

@pytest.fixture
def rag_pipeline():
    return Mine()

@pytest.mark.rag_experiment("mine")
def test_answers(rag_result, rag_scores):
    assert rag_result.ok, rag_result.why
    print("SCORED", rag_result.query_id, rag_scores["expectations"])
"""


def test_a_check_that_outlasts_the_deadline_is_a_reason(suite: Suite) -> None:
    suite.pytester.makepyfile(MINE)
    demands = [{"regex": "[\\w\\W]{3000}x"}, {"not": {"contains": "zebra"}}]
    asked = {"query": "How long?", "context_reference": ["returns.md"], "expect": demands}
    suite.write_queries([{"query_id": f"q{number}", **asked} for number in range(2)])
    began = time.monotonic()
    came = suite.run("--rag-deadline=2", "--rag-report=report.html", "-rA")
    took = time.monotonic() - began
    assert {row["query_id"]: row["status"] for row in suite.rows("mine")} == {"q0": "ok", "q1": "ok"}
    came.stdout.fnmatch_lines(["SCORED q1 *value=None*not checked within 2 s. Allow more: --rag-deadline*"])
    assert (suite.path / "report.html").stat().st_size > 10_000
    assert took < 60, "each look at the answer takes 15 s without an end"


def test_a_judgement_that_outlasts_the_deadline_is_a_reason_of_its_row_alone(suite: Suite) -> None:
    pytest.importorskip("onnxruntime")
    suite.pytester.makepyfile(
        MINE.replace('"ab" * 100_000', '" ".join(map(str, range(28_000)))').replace("expectations", "answer_relevancy")
    )
    asked = {"query": "How long?", "context_reference": ["returns.md"], "ground_truth": "45 days"}
    suite.write_queries([{"query_id": f"q{number}", **asked} for number in range(3)])
    options = ("--rag-judge=embedded", "--rag-embed-backend=onnx-int8", "--rag-measures=answer_relevancy")
    came = suite.run(*options, "--rag-mode=auto", "--rag-deadline=2", "-rA")
    assert came.ret == 0, "work that is left in a thread ended the interpreter with an abort"
    assert {row["status"] for row in suite.rows("mine")} == {"ok"}
    came.stdout.fnmatch_lines(["SCORED q1 *value=None*within 2 s. Allow more: --rag-deadline*"])
    came.stdout.fnmatch_lines(["SCORED q2 *value=0.*"])
