"""The reliability engine and its ablations from end to end, on a small knowledge base and on the mock profile."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.plugin.conftest import QUERIES, Suite, copy_data
from tests.plugin.counting_server import counting_server
from tests.unit.evaluation.judges.scripted import Asked, honest

EXPERIMENTS = {
    "r1": "r1_reliable",
    "r1-original": "r1__original",
    "r2": "r2_no_gate",
    "r3": "r3_no_verification",
    "r4": "r4_no_decomposition",
    "r5": "r5_dense_only",
    "r6": "r6_strict",
}
TEST = """
@pytest.mark.rag_experiment("{name}")
def test_{function}(rag_result):
    assert rag_result.ok, rag_result.why
"""
QUOTE = {"filename": "returns.md", "quote": "You can return a lamp within 45 days."}


# As many as a calibration needs.
LABELLED = [{**QUERIES[0], "query_id": f"q{n}", "query": f"Lamp {n}?", "evidence": [QUOTE]} for n in range(40)]


@pytest.fixture
def engine(suite: Suite) -> Suite:
    write_tests(suite, *EXPERIMENTS)
    return suite


@pytest.fixture(scope="module")
def answered(shared_suite: Suite) -> Path:
    """The folder of a suite in which r1 and r2 have answered labelled questions."""
    write_tests(shared_suite, "r1", "r2")
    shared_suite.write_queries(LABELLED)
    shared_suite.run("-p", "no:xdist").assert_outcomes(passed=2 * len(LABELLED))
    return shared_suite.path


@pytest.fixture
def labelled(suite: Suite, answered: Path) -> Suite:
    """The suite with what that run has left, and with fewer questions for the next."""
    for name in ("output", ".rag_cache"):
        copy_data(answered / name, suite.path / name)
    suite.write_queries(LABELLED[:3])
    return suite


def write_tests(suite: Suite, *experiments: str) -> None:
    """Let the suite have tests of these experiments alone."""
    for file in suite.path.glob("test_*.py"):
        file.unlink()
    tests = [TEST.format(name=name, function=name.replace("-", "_")) for name in experiments]
    suite.pytester.makepyfile(test_engine="import pytest\n" + "".join(tests))


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


def test_a_calibration_is_read_and_refused_with_other_documents(labelled: Suite) -> None:
    command = ["-m", "rag_harness", "reliability", "calibrate", "output", "--experiment", "r2"]
    said = labelled.pytester.run(sys.executable, *command)
    assert said.ret == 0
    said.stdout.fnmatch_lines(["r2: 40 answers*", "Saved as reliability/r2.json: commit it.*"])
    saved = json.loads((labelled.path / "reliability" / "r2.json").read_text())
    assert saved["promise"]["threshold"] is None
    write_tests(labelled, "r2")
    labelled.run("-p", "no:xdist").assert_outcomes(passed=3)
    assert {named(row)["confidence"]["outcome"] for row in labelled.rows("r2_no_gate")} == {"calibrated"}
    labelled.run("-p", "no:xdist", "--rag-top-k=2").assert_outcomes(passed=3)
    (reason,) = {named(row)["confidence"]["reason"] for row in labelled.rows("r2_no_gate")}
    assert reason.startswith("it was calibrated with another top_k: ")
    (labelled.path / "reliability" / "r3.json").write_text(json.dumps(saved))
    write_tests(labelled, "r3")
    labelled.run("-p", "no:xdist").assert_outcomes(passed=3)
    (reason,) = {named(row)["confidence"]["reason"] for row in labelled.rows("r3_no_verification")}
    assert reason.startswith("it was calibrated with another experiment: ")
    page = labelled.path / "kb" / "warranty.md"
    page.write_text(page.read_text() + "\nAsk us.\n")
    write_tests(labelled, "r2")
    labelled.run("-p", "no:xdist").assert_outcomes(passed=3)
    (reason,) = {named(row)["confidence"]["reason"] for row in labelled.rows("r2_no_gate")}
    assert reason == "it was calibrated with another index: rag-harness reliability calibrate OUTPUT"


def table(engine: Suite, inside: str) -> None:
    (engine.path / "pyproject.toml").write_text(f"[tool.rag_harness.reliability]\n{inside}\n", encoding="utf-8")


def test_a_changed_threshold_is_another_row_and_nothing_of_the_old_is_resumed(engine: Suite) -> None:
    write_tests(engine, "r1", "r6")
    asked = ("-p", "no:xdist")

    def marks() -> dict[tuple[str, str], Any]:
        rows = [*engine.rows("r1_reliable"), *engine.rows("r6_strict")]
        return {(str(row["experiment"]), str(row["query_id"])): row["fingerprint"] for row in rows}

    engine.run(*asked)
    first = marks()
    engine.run(*asked).stdout.fnmatch_lines([f"answers of r1, r6, each: {len(QUERIES)} reused *; 0 new"])
    assert marks() == first
    table(engine, "thresholds = {passed = 0.62}")
    engine.run(*asked)
    changed = {key for key, mark in marks().items() if mark != first[key]}
    assert changed == {key for key in first if key[0] == "r1"}
    table(engine, "thresholds = {passed = 0.6}")
    engine.run(*asked)
    assert marks() == first
    table(engine, "thresholds = {passed = 0.6}\nformula = {alpha = 0.6, beta = 0.4}")
    engine.run(*asked)
    assert not set(marks().values()) & set(first.values())


def test_the_engine_decides_by_the_numbers_of_the_suite(engine: Suite) -> None:
    write_tests(engine, "r1")
    asked = ("-p", "no:xdist")
    everything = "go_on = 0, fallback = 0, relevance = 0, coverage = 0, grounded = 0, claim = 0, agreement = 0"
    table(engine, f"thresholds = {{{everything}, passed = 0, warned = 0}}")
    engine.run(*asked)
    outcomes = {named(row)["decision"]["outcome"] for row in engine.rows("r1_reliable")}
    assert "pass" in outcomes
    assert {named(row)["gate"]["outcome"] for row in engine.rows("r1_reliable")} == {"go on"}
    table(engine, "thresholds = {fallback = 1, go_on = 1}\nstrict = {fallback = 1, go_on = 1}")
    engine.run(*asked)
    assert {named(row)["gate"]["outcome"] for row in engine.rows("r1_reliable")} == {"abstain"}
    table(engine, "weights = {relevance = 0, margin = 0, coverage = 1, dispersion = 0}")
    engine.run(*asked)
    for row in engine.rows("r1_reliable"):
        assert named(row)["retrieval quality"]["value"] == named(row)["signal: coverage"]["value"]


def test_numbers_that_cannot_be_used_stop_a_run_before_anything_is_asked(engine: Suite) -> None:
    table(engine, "thresholds = {pased = 0.7}")
    said = engine.run("-k", "test_r1", "-p", "no:xdist")
    said.stderr.fnmatch_lines(["*tool.rag_harness.reliability.thresholds*Unknown key 'pased'. Did you mean 'passed'?*"])
    assert said.ret == pytest.ExitCode.USAGE_ERROR
    assert not (engine.path / "output").exists()
    table(engine, "weights = {relevance = 0.5}")
    said = engine.run("-k", "test_r1", "-p", "no:xdist")
    said.stderr.fnmatch_lines(["*the sum of relevance 0.5, * is 1.1, but must be 1.*"])


def test_a_calibration_is_refused_where_the_gate_is_another_and_not_where_only_a_limit_is(labelled: Suite) -> None:
    write_tests(labelled, "r1")
    said = labelled.pytester.run(sys.executable, "-m", "rag_harness", "reliability", "calibrate", "output")
    assert said.ret == 0
    for inside, refused in (
        ("thresholds = {passed = 0.65}", ""),
        ("thresholds = {go_on = 0.6}", "it was calibrated with another thresholds of the gate: "),
        (
            "weights = {relevance = 0.5, margin = 0.1}",
            "it was calibrated with another weights of retrieval quality: ",
        ),
    ):
        table(labelled, inside)
        labelled.run("-p", "no:xdist")
        reasons = {named(row)["confidence"]["reason"] for row in labelled.rows("r1_reliable")}
        assert all(reason.startswith(refused) for reason in reasons if refused), reasons
        assert bool(refused) == any(reason.startswith("it was calibrated with another") for reason in reasons)


def test_labels_of_reviewed_traces_are_added_and_no_question_counts_twice(labelled: Suite) -> None:
    write_tests(labelled, "r2")
    metadata: dict[str, Any] = {"sampled_as": "any", "seen": {"drawn_of": 3}}
    traced: list[dict[str, Any]] = [
        {**LABELLED[1], "query_id": "trace_1", "query": " lamp  1? ", "metadata": {**metadata, "reviewed": "yes"}},
        {**LABELLED[1], "query_id": "trace_2", "query": "A kettle?", "metadata": {**metadata, "reviewed": "yes"}},
        {
            "query_id": "trace_3",
            "query": "A desk?",
            "query_type": "unlabelled",
            "metadata": {**metadata, "reviewed": "no"},
        },
    ]
    labelled.write_queries([{"ground_truth": "", "context_reference": [], **row} for row in traced])
    labelled.run("-p", "no:xdist", "--rag-output=traced")
    command = ["-m", "rag_harness", "reliability", "calibrate", "output", "traced", "--experiment", "r2"]
    said = labelled.pytester.run(sys.executable, *command)
    assert said.ret == 0, said.stderr.str()
    said.stdout.fnmatch_lines(["r2: 41 answers that gold calls right or not"])


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
    if keys == ("contradictions",):
        passages = re.findall(r"<<passage (\d+) \| \w+>>\n(.+)", body["messages"][1]["content"])
        (one, first), (other, second) = passages[:2]
        named = {"first": int(one), "first_says": first, "second": int(other), "second_says": second}
        return json.dumps({"contradictions": [named]})
    return json.dumps(honest(Asked(body["messages"][0]["content"], body["messages"][1]["content"], keys)))


def test_with_models_behind_http_a_question_costs_six_calls(engine: Suite) -> None:
    engine.write_queries([QUERIES[0]])
    with counting_server(delay=0.0, reply=replies) as server:
        for role in ("answer", "judge", "rewrite"):
            engine.set_table(f"profiles.mock.{role}", model="gpt-x", base_url=server.url)
        engine.run("-k", "test_r1 and not original", "--rag-mode=live", "-p", "no:xdist")
        (row,) = engine.rows("r1_reliable")
        calls = [call["role"] for stage in row["stages"] for call in stage["calls"]]  # type: ignore[attr-defined]
        assert row["status"] == "ok", row["error"]
        assert sum(server.calls.values()) == 6
    assert sorted(calls) == ["answer", "answer", "judge", "judge", "rewrite"]
    assert row["usage"]["calls"] == 6  # type: ignore[index]
    said = named(row)
    assert said["plan"]["outcome"] == "by model"
    assert said["signal: groundedness"]["value"] is not None
    assert said["signal: self_consistency"]["value"] == 1.0
    assert said["signal: contradiction"]["reason"] == "by the model of role judge"
    assert "CONFLICTING_SOURCES: " in said["decision"]["reason"]
