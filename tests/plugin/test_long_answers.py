"""An answer that some check would look at for hours: the run ends, the row stays, and the check has a reason."""

from __future__ import annotations

import time

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
