"""Rubrics as a user runs them: rubrics.md, versions, resume, replay, gates, and an endpoint with probabilities."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from math import log
from pathlib import Path
from typing import Any

import pytest

from rag_harness.__main__ import main
from rag_harness.page.payload import payload_of
from rag_harness.page.report import read_runs
from tests.plugin.conftest import Suite
from tests.plugin.counting_server import CountingServer, counting_server
from tests.plugin.test_judged_by_llm import Model

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "rubrics.md").read_text(encoding="utf-8")
PIPELINE = """
import pytest
from rag_harness import Answer, Chunk, Hit, PipelineOutput

TEXT = "You can return a lamp within 45 days. The sender of the parcel pays."

class Fixed:
    def answer(self, query):
        hit = Hit(Chunk("returns.md#1", "returns.md", TEXT, 0, len(TEXT)), 1.0, 1)
        return PipelineOutput(Answer(TEXT + " [Source 1]", citations=(1,)), context=(hit,))

@pytest.fixture(scope="session")
def rag_pipeline():
    return Fixed()

@pytest.mark.rag_experiment("e3")
def test_it(rag_result):
    assert rag_result.ok
"""
FACTS = """
criteria = [
  "says that you can return a lamp within 45 days",
  {text = "must not say that the shop is closed", weight = 3},
]
"""
OTHER = "giraffes wear purple hats"


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def fixed(suite: Suite) -> Suite:
    suite.pytester.makepyfile(PIPELINE)
    suite.write_queries([{"query_id": f"q{n}", "query": f"lamp {n}?"} for n in range(3)])
    write(suite, "facts", FACTS)
    return suite


def write(suite: Suite, name: str, text: str) -> None:
    (suite.path / "rubrics").mkdir(exist_ok=True)
    (suite.path / "rubrics" / f"{name}.toml").write_text(text)


def lines(suite: Suite) -> list[dict[str, Any]]:
    files = (suite.path / "output" / "scores").glob("*.jsonl")
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
def server(model: Model) -> Iterator[CountingServer]:
    def reply(body: Any) -> str:
        return model.reply(body) if "response_format" in body else "1"

    with counting_server(delay=0.0, reply=reply) as running:
        yield running


def by_llm(suite: Suite, server: CountingServer, *args: str) -> pytest.RunResult:
    suite.set_table("profiles.mock.judge", model="gpt-x", base_url=server.url)
    return suite.run(*args)


def test_the_questions_of_the_page_are_judged(fixed: Suite, server: CountingServer) -> None:
    fixed.write_queries([json.loads(line) for line in blocks("json")[0].splitlines()])
    gates = re.findall(r'--rag-gate "(e3: exp[^"]+)"', PAGE)
    assert len(gates) == 2
    result = by_llm(fixed, server, "--rag-mode=live", *(f"--rag-gate={gate}" for gate in gates))
    # The judge of this test finds no word of "opened goods" or "promises a refund" in the answer.
    result.stdout.fnmatch_lines(["*e3: expect_rubric >= 0.8*0.500*"])
    said = {(each["query_id"], each["measure"]): each["value"] for each in lines(fixed)}
    assert (said["q1", "expect_rubric"], said["q2", "expect_rubric"]) == (0, 1)
    assert said["q1", "expectations"] == 0
    assert sum(server.calls.values()) == 2


def test_the_rubric_of_the_page_is_a_measure_with_its_gate(fixed: Suite, server: CountingServer) -> None:
    (rubric,) = blocks("toml")
    write(fixed, "tone", rubric)
    (gate,) = re.findall(r'pytest -m e3 --rag-gate "([^"]+)"', PAGE)
    result = by_llm(fixed, server, "--rag-mode=live", f"--rag-gate={gate}")
    result.assert_outcomes(passed=3, failed=1)
    # Both criteria are met, the scale's worst level only: 3 of 4.
    result.stdout.fnmatch_lines(["failed *e3: rubric_tone >= 0.8 *0.750*"])
    result.stdout.fnmatch_lines(["*worst: e3-q0: rubric “how easily a customer understands the answer”: n*"])


def test_each_command_of_the_page_can_be_typed(
    suite: Suite, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(suite, "tone", blocks("toml")[0])
    (suite.path / "kb").rename(suite.path / "docs")
    (suite.path / "queries.jsonl").write_text(blocks("json")[0])
    suite.pytester.makeini("[pytest]\naddopts = -p no:cacheprovider\nrag_profile = mock\nrag_kb_dir = docs\n")
    (suite.path / "docs" / "queries.jsonl").write_text(blocks("json")[0])
    for command in re.findall(r"^    pytest (.*)$", PAGE, re.MULTILINE):
        words = shlex.split(command)
        text = suite.run(*words).stdout.str()
        gates = [word for word in words if ">=" in word]
        assert len(gates) >= 1
        assert all(re.search(rf"^(?:passed|failed) +{re.escape(gate)}", text, re.MULTILINE) for gate in gates), text
    (command,) = re.findall(r"`rag-harness (judge score [^`]+)`", PAGE)
    answer = {"id": 1, "question": "lamp?", "answer": "You can return a lamp within 45 days.", "contexts": ["x"]}
    monkeypatch.chdir(suite.path)
    (suite.path / "answers.jsonl").write_text(json.dumps(answer) + "\n")
    main([*shlex.split(command), "answers.jsonl", "-o", "scores.jsonl", "--profile", "mock"])
    assert "rubric_tone" in (suite.path / "scores.jsonl").read_text()
    (folder,) = re.findall(r"`(--rag-project) DIR`", PAGE)
    refused = suite.run(f"{folder}=elsewhere", "--rag-gate=e3: rubric_tone >= 0.8")
    assert "There is no rubric 'tone'" in refused.stderr.str()


def test_a_rubric_is_measured_where_its_file_names_the_experiment(fixed: Suite) -> None:
    write(fixed, "facts", 'experiments = ["e3"]\n' + FACTS)
    fixed.run().assert_outcomes(passed=3)
    assert {each["measure"] for each in lines(fixed)} == {"rubric_facts"}


def test_nothing_is_judged_that_nobody_named(fixed: Suite) -> None:
    fixed.run().assert_outcomes(passed=3)
    assert not (fixed.path / "output" / "scores").exists()


def test_a_changed_rubric_is_another_version_that_is_judged_anew_and_not_asked_anew(fixed: Suite) -> None:
    gate = "--rag-gate=e3: rubric_facts >= 0.9"
    fixed.run(gate, "--rag-save=main").assert_outcomes(passed=3)
    first = lines(fixed)
    assert {each["value"] for each in first} == {1.0}
    assert fixed.run(gate).ret == 0
    assert lines(fixed) == first
    write(fixed, "facts", FACTS.replace("you can return a lamp within 45 days", OTHER))
    again = fixed.run(gate, "--rag-compare=main")
    again.stdout.fnmatch_lines(["failed *e3: rubric_facts >= 0.9 *0.750*"])
    again.stdout.fnmatch_lines(["*not compared: before was judged by other criteria of*"])
    assert len({each["version"] for each in lines(fixed)}) == 2
    write(fixed, "facts", FACTS)
    # The first version is known still, and read again.
    assert fixed.run(gate).ret == 0
    assert len(lines(fixed)) == 6
    (block,) = payload_of(read_runs([fixed.path / "output"])).trials
    assert OTHER not in json.dumps(block)
    # A run that does not ask for it shows nothing of it.
    fixed.run()
    (block,) = payload_of(read_runs([fixed.path / "output"])).trials
    assert "expected" not in block[0]


def test_a_run_is_read_without_its_rubrics(fixed: Suite, capsys: pytest.CaptureFixture[str]) -> None:
    write(fixed, "facts", FACTS.replace("you can return a lamp within 45 days", OTHER))
    fixed.run("--rag-gate=e3: rubric_facts >= 0.5").assert_outcomes(passed=3)
    (fixed.path / "rubrics" / "facts.toml").unlink()
    main(["explain", str(fixed.path / "output"), "e3-q1"])
    assert f"says that {OTHER}" in capsys.readouterr().out
    (block,) = payload_of(read_runs([fixed.path / "output"])).trials
    assert OTHER in json.dumps(block)


def test_a_rubric_that_is_not_there_is_refused_before_anything_is_asked(fixed: Suite) -> None:
    result = fixed.run("--rag-gate=e3: rubric_fact >= 0.5")
    result.stderr.fnmatch_lines(["*Unknown rubric 'fact'. Did you mean 'facts'?*"])
    assert not fixed.rows("e3")
    write(fixed, "bad", 'criteria = ["x"]\nweight = 2')
    fixed.run("--rag-gate=e3: rubric_facts >= 0.5").stderr.fnmatch_lines(["*bad.toml: Unknown key 'weight'*"])


def test_workers_replay_and_overwrite(fixed: Suite, server: CountingServer) -> None:
    measures = "--rag-measures=rubric_facts"
    by_llm(fixed, server, "--rag-mode=record", measures, "-n2").assert_outcomes(passed=3)
    # One text of the answer: one call, whatever the number of questions, in each of two processes.
    asked, first = sum(server.calls.values()), lines(fixed)
    again = by_llm(fixed, server, "--rag-mode=replay", "--rag-overwrite", measures)
    again.assert_outcomes(passed=3)
    assert sum(server.calls.values()) == asked
    assert [each["value"] for each in lines(fixed)] == [each["value"] for each in first]


@pytest.mark.parametrize("states", [True, False])
def test_a_scale_by_probabilities_is_recorded_and_replayed(fixed: Suite, server: CountingServer, states: bool) -> None:
    write(fixed, "clear", '[[scales]]\ntext = "how clear it is"\nlevels = ["not", "nearly", "wholly"]')
    if states:
        server.first_token = lambda body: {"3": log(0.5), "2": log(0.5)} if body.get("logprobs") else {}
    else:
        server.refused = "logprobs"
    gate = "--rag-gate=e3: rubric_clear >= 0.7"
    result = by_llm(fixed, server, "--rag-mode=record", gate)
    assert {each["value"] for each in lines(fixed)} == {0.75 if states else 0.0}, result.stdout.str()
    asked, first = sum(server.calls.values()), lines(fixed)
    by_llm(fixed, server, "--rag-mode=replay", "--rag-overwrite", gate)
    assert sum(server.calls.values()) == asked
    assert [each["value"] for each in lines(fixed)] == [each["value"] for each in first]


def test_people_correct_a_rubric_and_not_its_next_version(fixed: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    fixed.write_queries([{"query_id": f"q{n}", "query": f"lamp {n}?"} for n in range(12)])
    gate = "--rag-gate=e3: rubric_facts~calibrated >= 0.5"
    fixed.run("--rag-measures=rubric_facts").assert_outcomes(passed=12)
    labels = [{"experiment": "e3", "query_id": f"q{n}", "human": 1} for n in range(12)]
    (fixed.path / "labels.jsonl").write_text("\n".join(map(json.dumps, labels)))
    monkeypatch.chdir(fixed.path)
    assert main(["judge", "calibrate", "labels.jsonl", "--measure", "rubric_facts"]) == 0
    fixed.run("--rag-measures=rubric_facts", gate).stdout.fnmatch_lines(["*e3: rubric_facts~calibrated >= 0.5*1.000*"])
    write(fixed, "facts", FACTS.replace("weight = 3", "weight = 4"))
    changed = fixed.run("--rag-measures=rubric_facts", gate)
    changed.stdout.fnmatch_lines(["*is of another judge: version of*"])
