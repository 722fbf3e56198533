"""The reliability engine and its ablations from end to end, on a small knowledge base and on the mock profile."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from tests.plugin.conftest import QUERIES, Suite
from tests.plugin.counting_server import counting_server
from tests.unit.judges.scripted import Asked, honest

EXPERIMENTS = {
    "r1": "r1_reliable",
    "r1-original": "r1__original",
    "r2": "r2_no_gate",
    "r3": "r3_no_verification",
    "r4": "r4_no_decomposition",
    "r5": "r5_dense_only",
    "r6": "r6_strict",
}
TEST = "import pytest\n" + "".join(
    f"""
@pytest.mark.rag_experiment("{name}")
def test_{name.replace("-", "_")}(rag_result):
    assert rag_result.ok, rag_result.why
"""
    for name in EXPERIMENTS
)
QUOTE = {"filename": "returns.md", "quote": "You can return a lamp within 45 days."}


@pytest.fixture
def engine(suite: Suite) -> Suite:
    for file in suite.path.glob("test_*.py"):
        file.unlink()
    suite.pytester.makepyfile(test_engine=TEST)
    return suite


def named(row: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in row["decisions"]}


def test_all_of_them_run_and_say_what_they_decided(engine: Suite) -> None:
    engine.run("-p", "no:xdist").assert_outcomes(passed=len(EXPERIMENTS) * len(QUERIES))
    rows = {name: engine.rows(file) for name, file in EXPERIMENTS.items()}
    for name, each in rows.items():
        for row in each:
            said = named(row)
            assert {"retrieval quality", "confidence", "decision"} <= said.keys()
            assert ("gate" in said) == (name != "r2")
            assert ("plan" in said) == (name != "r4")
            assert row["confidence"] == said["confidence"]["value"]
            assert said["confidence"]["reason"].startswith("nobody has calibrated it")
    assert all(named(row)["signal: groundedness"]["value"] is None for row in rows["r3"])
    hits: list[Any] = [hit for row in rows["r5"] for hit in row["candidates"]]  # type: ignore[attr-defined]
    assert all("bm25" not in hit["scores"] for hit in hits)


def test_a_calibration_is_read_and_refused_with_other_documents(engine: Suite) -> None:
    engine.write_queries([{**QUERIES[0], "query_id": f"q{n}", "evidence": [QUOTE]} for n in range(40)])
    engine.run("-k", "test_r2", "-p", "no:xdist").assert_outcomes(passed=40, deselected=240)
    command = ["-m", "rag_harness", "reliability", "calibrate", "output", "--experiment", "r2"]
    said = engine.pytester.run(sys.executable, *command)
    assert said.ret == 0
    said.stdout.fnmatch_lines(["r2: 40 answers*", "Saved as reliability/r2.json: commit it.*"])
    saved = json.loads((engine.path / "reliability" / "r2.json").read_text())
    assert saved["promise"]["threshold"] is None
    engine.run("-k", "test_r2", "-p", "no:xdist").assert_outcomes(passed=40, deselected=240)
    assert {named(row)["confidence"]["outcome"] for row in engine.rows("r2_no_gate")} == {"calibrated"}
    engine.run("-k", "test_r2", "-p", "no:xdist", "--rag-top-k=2").assert_outcomes(passed=40, deselected=240)
    (reason,) = {named(row)["confidence"]["reason"] for row in engine.rows("r2_no_gate")}
    assert reason.startswith("it was calibrated with another top_k: ")
    (engine.path / "reliability" / "r3.json").write_text(json.dumps(saved))
    engine.run("-k", "test_r3", "-p", "no:xdist").assert_outcomes(passed=40, deselected=240)
    (reason,) = {named(row)["confidence"]["reason"] for row in engine.rows("r3_no_verification")}
    assert reason.startswith("it was calibrated with another experiment: ")
    page = engine.path / "kb" / "warranty.md"
    page.write_text(page.read_text() + "\nAsk us.\n")
    engine.run("-k", "test_r2", "-p", "no:xdist").assert_outcomes(passed=40, deselected=240)
    (reason,) = {named(row)["confidence"]["reason"] for row in engine.rows("r2_no_gate")}
    assert reason == "it was calibrated with another index: rag-harness reliability calibrate OUTPUT"


def test_what_cannot_be_calibrated_is_said(engine: Suite) -> None:
    engine.run("-k", "test_r2", "-p", "no:xdist")
    command = ["-m", "rag_harness", "reliability", "calibrate", "output"]
    said = engine.pytester.run(sys.executable, *command)
    said.stderr.fnmatch_lines(["*has no rows of r1, only of: r2. Run pytest -m r1 first."])
    said = engine.pytester.run(sys.executable, *command, "--experiment", "r2")
    said.stderr.fnmatch_lines(["No case of r2 has evidence quotes*"])
    assert said.ret == 2


def replies(body: Any) -> str:
    """Return what a model says that is asked in any role: for each key of the schema that it is sent."""
    keys = tuple(body["response_format"]["json_schema"]["schema"]["properties"])
    if keys == ("answer",):
        return json.dumps({"answer": "You can return a lamp within 45 days [Source 1]."})
    if keys == ("searches",):
        return json.dumps({"searches": ["return window of a lamp"]})
    return json.dumps(honest(Asked(body["messages"][0]["content"], body["messages"][1]["content"], keys)))


def test_with_models_behind_http_a_question_costs_five_calls(engine: Suite) -> None:
    engine.write_queries([QUERIES[0]])
    with counting_server(delay=0.0, reply=replies) as server:
        asked = [f"--rag-{role}-model=gpt-x" for role in ("chat", "judge", "rewrite")]
        urls = [f"--rag-{role}-base-url={server.url}" for role in ("chat", "judge", "rewrite")]
        engine.run("-k", "test_r1 and not original", "--rag-mode=live", "-p", "no:xdist", *asked, *urls)
        (row,) = engine.rows("r1_reliable")
        calls = [call["role"] for stage in row["stages"] for call in stage["calls"]]  # type: ignore[attr-defined]
        assert row["status"] == "ok", row["error"]
        assert sum(server.calls.values()) == 5
    assert sorted(calls) == ["answer", "answer", "judge", "rewrite"]
    assert row["usage"]["calls"] == 5  # type: ignore[index]
    said = named(row)
    assert said["plan"]["outcome"] == "by model"
    assert said["signal: groundedness"]["value"] is not None
    assert said["signal: self_consistency"]["value"] == 1.0
