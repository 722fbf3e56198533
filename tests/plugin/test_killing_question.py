"""A question that ends its worker costs that question: one test fails, the others run, whatever hands them out."""

from __future__ import annotations

import pytest

from tests.plugin.conftest import Suite

PIPELINE = """
import os
import pytest

class Killing:
    async def answer(self, query):
        if "KILL" in query.text:
            os._exit(9)
        return "45 days"

@pytest.fixture(scope="session")
def rag_pipeline():
    return Killing()

@pytest.mark.rag_experiment("mine")
def test_answers(rag_result):
    assert rag_result.ok
"""


@pytest.mark.parametrize(
    "dist", ["load", *(pytest.param(d, marks=pytest.mark.long) for d in ("loadfile", "loadscope", "loadgroup"))]
)
def test_it_fails_once_and_the_others_run(suite: Suite, dist: str) -> None:
    (suite.path / "test_killing.py").write_text(PIPELINE, encoding="utf-8")
    asked = [{"query_id": f"q{n}", "query": f"Lamp {n}?" + " KILL" * (n == 5)} for n in range(8)]
    suite.write_queries([{**each, "ground_truth": "45 days"} for each in asked])
    result = suite.run("test_killing.py", "-n", "2", f"--dist={dist}")
    result.assert_outcomes(passed=7, failed=1)
    result.stdout.fnmatch_lines(["*crashed while running 'test_killing.py::test_answers?mine-q5?'"])
    assert {row["query_id"] for row in suite.rows("mine")} == {f"q{n}" for n in range(8)} - {"q5"}
