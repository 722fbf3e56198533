"""What ``rag_harness.evaluate`` leaves is what a run of pytest leaves, and each takes over what the other has asked."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import rag_harness
from rag_harness.records.manifest import read_manifest
from tests.plugin.conftest import QUERIES, Suite

_TIME = re.compile(r'"(\w*_ms|ms|finished_at|total_time_ms|\w+_time_ms)": ?("[^"]*"|[-+.\deE]+)')
OWN = """
from rag_harness import Answer, Chunk, Hit, PipelineOutput

class Quoting:
    async def answer(self, query):
        if "fish" in query.text:
            raise ValueError("no fish")
        text = "You can return a lamp within 45 days."
        hit = Hit(Chunk("returns.md#chunk_0", "returns.md", text, 0, len(text)), 1.0, 1)
        return PipelineOutput(Answer(text + " [Source 1]", citations=(1,)), retrieved=(hit,), context=(hit,))
"""
CONFTEST = """
import pytest
from quoting import Quoting

@pytest.fixture(scope="session")
def rag_pipeline():
    return Quoting()
"""
TEST = """
import pytest

@pytest.mark.rag_experiment("mine")
def test_answers(rag_result):
    pass
"""


def timeless(file: Path) -> list[dict[str, Any]]:
    """Return the lines of a file without their times."""
    return [json.loads(_TIME.sub(r'"\1": 0', line)) for line in file.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(autouse=True)
def here(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(suite.path)


@pytest.mark.parametrize(
    "measures", [pytest.param((), marks=pytest.mark.long), ("context_precision", "answer_relevancy")]
)
def test_rows_scores_and_record_are_those_of_a_run(suite: Suite, measures: tuple[str, ...]) -> None:
    suite.run(*(f"--rag-measures={name}" for name in measures)).assert_outcomes(passed=4)
    result = rag_harness.evaluate("e3", measures=measures, output="notebook")
    name = "e3_filtered_rag.jsonl"
    assert len(timeless(suite.path / "output" / name)) == 4
    assert timeless(suite.path / "notebook" / name) == timeless(suite.path / "output" / name)
    ours, theirs = (read_manifest(suite.path / folder) for folder in ("notebook", "output"))
    # Whether a test failed only a run of tests can say.
    assert {each.failed is None for each in ours.suites.values()} == {True}
    assert ours.suites == {name: each.model_copy(update={"failed": None}) for name, each in theirs.suites.items()}
    assert ours.digests == theirs.digests
    assert (ours.packages, ours.skipped) == (theirs.packages, theirs.skipped)
    assert (suite.path / "notebook/cases/queries.jsonl").read_bytes() == (
        suite.path / "output/cases/queries.jsonl"
    ).read_bytes()
    if measures:
        scores = timeless(suite.path / "notebook/scores" / name), timeless(suite.path / "output/scores" / name)
        assert sorted(map(str, scores[0])) == sorted(map(str, scores[1]))
        assert scores[0]
    trials = rag_harness.load_results("output", frame="records")
    found = [each["recall@5"] for each in trials if each["recall@5"] is not None]
    assert result.figures["recall@5"].mean == sum(found) / len(found)
    assert result.figures["recall@5"].n == len(found)


def test_each_takes_over_what_the_other_has_asked(suite: Suite) -> None:
    suite.run().assert_outcomes(passed=4)
    before = (suite.path / "output/e3_filtered_rag.jsonl").read_bytes()
    result = rag_harness.evaluate("e3")
    assert "4 answers of an earlier run reused." in result.notes
    assert (suite.path / "output/e3_filtered_rag.jsonl").read_bytes() == before
    rag_harness.evaluate("e3", output="notebook")
    run = suite.run("--rag-output=notebook")
    run.stdout.fnmatch_lines(["experiment*resumed*", "e3 * 4 * 0 * 4 *"])


def test_an_object_of_ones_own_has_the_rows_of_its_fixture(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    suite.pytester.makepyfile(quoting=OWN)
    suite.pytester.makeconftest(CONFTEST)
    suite.pytester.makepyfile(test_mine=TEST)
    suite.run("test_mine.py").assert_outcomes(passed=4)
    monkeypatch.syspath_prepend(suite.path)
    from quoting import Quoting  # type: ignore[import-not-found]

    result = rag_harness.evaluate(Quoting(), QUERIES, name="mine", output="notebook")
    ours, theirs = (timeless(suite.path / folder / "mine.jsonl") for folder in ("notebook", "output"))
    for row in (*ours, *theirs):
        # The fixture's conftest.py is part of what made it; and the questions are a file of other bytes.
        del row["fingerprint"]
    assert ours == theirs
    assert [row["status"] for row in ours] == ["ok", "ok", "ok", "error"]
    assert result.figures["recall@5"].mean == pytest.approx(1 / 3)
    assert result.figures["error_rate"].mean == 0.25


# In a file of its own: the code that it is known by is all that its file imports, here the whole package.
REACHING = """
import socket

def rag(question):
    socket.create_connection(("192.0.2.1", 80), timeout=0.1)
    return "reached"
"""


def test_replay_calls_nobody(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    suite.pytester.makepyfile(reaching=REACHING)
    monkeypatch.syspath_prepend(suite.path)
    from reaching import rag  # type: ignore[import-not-found]

    result = rag_harness.evaluate(rag, ["Why?"], mode="replay")
    assert "replay opens no connection" in result.frame("records")[0]["error"].lower()


def test_a_report_reads_it(suite: Suite) -> None:
    rag_harness.evaluate("e3")
    from rag_harness.__main__ import main

    assert main(["report", "output", "-o", "report.html"]) == 0
    assert "e3" in (suite.path / "report.html").read_text(encoding="utf-8")
