"""Pairs of experiments as a user sees them: after the run, in summary.json, and between two runs. Mock judge."""

from __future__ import annotations

import json

import pytest

from tests.plugin.conftest import Suite

MEASURES = "--rag-measures=context_precision,faithfulness,answer_relevancy"
TWO = """
import pytest

@pytest.mark.e2
def test_e2(rag_result):
    assert rag_result.ok

@pytest.mark.e3
def test_e3(rag_result):
    assert rag_result.ok
"""


@pytest.fixture
def two(suite: Suite) -> Suite:
    for file in suite.path.glob("test_*.py"):
        file.write_text(TWO)
    return suite


def test_pairs_stand_after_the_scorecard_and_in_the_summary(two: Suite) -> None:
    result = two.run(MEASURES)
    result.assert_outcomes(passed=8)
    result.stdout.fnmatch_lines(["*rag scorecard*", "*rag pairwise*", "differences over the same cases*"])
    start = next(n for n, line in enumerate(result.stdout.lines) if "rag pairwise" in line)
    assert max(len(line) for line in result.stdout.lines[start : start + 8]) <= 100
    summary = json.loads((two.path / "output" / "summary.json").read_text())
    cells = {(cell["measure"], cell["quantile"]): cell for cell in summary["pairwise"]}
    assert {"g_mean", "hri", "faithfulness"} <= {measure for measure, _ in cells}
    assert cells["faithfulness", None]["pair"] == ["e3", "e2"]
    assert "largest value" in cells["hri", 0.95]["reason"]


def test_nothing_is_said_where_nothing_is_judged_or_one_experiment_ran(two: Suite) -> None:
    for args in ([], [MEASURES, "-m", "e3"]):
        two.run(*args).stdout.no_fnmatch_line("*rag pairwise*")
        assert "pairwise" not in json.loads((two.path / "output" / "summary.json").read_text())


SURE = """
import pytest
from rag_harness.core.types import Answer, PipelineOutput

class Sure:
    async def answer(self, query):
        return PipelineOutput(answer=Answer("45 days"), retrieved=(), context=(), confidence=0.5)

@pytest.fixture(scope="session")
def rag_pipeline():
    return Sure()
"""


def test_a_confidence_has_its_section(suite: Suite) -> None:
    suite.pytester.makeconftest(SURE)
    for file in suite.path.glob("test_*.py"):
        file.write_text(TWO.replace("mark.e2", 'mark.rag_experiment("mine")'))
    result = suite.run("-k", "mine")
    result.stdout.fnmatch_lines(["*rag abstention*", "mine: 2 answers with a confidence*50% right*", "  AUROC 0.50*"])
    kept = json.loads((suite.path / "output" / "summary.json").read_text())["abstention"]
    assert list(kept) == ["mine"]
    assert kept["mine"]["risk"] == 0.5
