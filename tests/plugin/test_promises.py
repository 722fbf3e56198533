"""Promises over repeats in a run: asked, recorded one by one, replayed, judged, and shown like any other gate."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.plugin.conftest import Suite
from tests.plugin.counting_server import CountingServer, counting_server, let_ask
from tests.plugin.test_repeats import OWN, TRUTH, let_ask_embedded
from tests.unit.evaluation.judges.scripted import Asked, honest

PASS, LIMITED, WORST, FLIPS = (
    "e1: pass^3(token_f1) >= 0.5 @95%",
    "e1: pass^2(token_f1>=0.5) >= 0.1",
    "e1: worst_of_3(token_f1) >= 0.95 else ask for whole sentences",
    "e1: flip_rate(token_f1) <= 0.9 @95%",
)


class Wavering:
    """Says the truth, or a part of it, by question and seed: one question of 12 is always right, the others waver."""

    def __init__(self) -> None:
        self.said: dict[str, list[tuple[int, bool]]] = {}

    def reply(self, body: Any) -> str:
        question = str(body["messages"][-1]["content"]).rpartition("Question: ")[2].strip()
        is_right = random.Random(f"{question} {body['seed']}").random() < 0.7 or question == "question 0"
        self.said.setdefault(question, []).append((body["seed"], is_right))
        return json.dumps({"answer": TRUTH if is_right else "a lamp"})

    @property
    def right(self) -> list[int]:
        """How many answers to each question are right."""
        return [sum(is_right for _, is_right in each) for each in self.said.values()]


@pytest.fixture
def model() -> Wavering:
    return Wavering()


@pytest.fixture
def server(model: Wavering) -> Iterator[CountingServer]:
    with counting_server(delay=0.0, reply=model.reply) as running:
        yield running


@pytest.fixture
def asking(suite: Suite, server: CountingServer) -> Suite:
    let_ask(suite, server, queries=12)
    suite.write_queries([{"query_id": f"q{n}", "query": f"question {n}", "ground_truth": TRUTH} for n in range(12)])
    return suite


def run(suite: Suite, *args: str) -> pytest.RunResult:
    return suite.run("--rag-profile=counting", *args)


def gates(suite: Suite, output: str = "output") -> dict[str, Any]:
    found = json.loads((suite.path / output / "summary.json").read_text())["gates"]
    return {gate["gate"]: gate for gate in found}


def test_tries_are_recorded_one_by_one_replayed_and_judged(asking: Suite, model: Wavering) -> None:
    asked = ["--rag-repeats=3", "-v", *(f"--rag-gate={text}" for text in (PASS, LIMITED, WORST, FLIPS))]
    result = run(asking, "--rag-mode=record", *asked, "--rag-report=report.html")
    right = model.right
    assert len(right) == 12
    assert {len(each) for each in model.said.values()} == {3}
    assert 0 < sum(n == 3 for n in right) < 12
    found = gates(asking)
    assert found[PASS]["value"] == pytest.approx(sum(n == 3 for n in right) / 12)
    assert found[LIMITED]["value"] == pytest.approx(sum(n * (n - 1) / 6 for n in right) / 12)
    assert found[FLIPS]["value"] == pytest.approx(sum(2 * n * (3 - n) / 6 for n in right) / 12)
    assert {gate["n"] for gate in found.values()} == {12}
    assert found[PASS]["reason"].endswith("3 answers to each case")
    result.stdout.fnmatch_lines_random(["*e1: pass^3(token_f1) >= 0.5 @95%*", "*3 answers to each case*"])
    shown = asking.pytester.run(sys.executable, "-m", "rag_harness", "report", "output", "-o", "comment.md")
    assert shown.ret == 0, shown.stderr.str()
    for file in ("report.html", "comment.md"):
        said = (asking.path / file).read_text()
        assert "pass^3(token_f1)" in said.replace("\\", ""), file
        assert "ask for whole sentences" in said, file
    again = run(asking, "--rag-mode=replay", *asked, "--rag-output=again", "-n2")
    assert again.ret == result.ret
    assert gates(asking, "again") == found
    assert sum(len(each) for each in model.said.values()) == 36


def test_all_of_what_an_answer_owes_is_owed_each_time(asking: Suite, model: Wavering) -> None:
    owed = [{"contains": "45 days"}, {"max_words": 80}]
    asking.write_queries([{"query_id": f"q{n}", "query": f"question {n}", "expect": owed} for n in range(12)])
    texts = ["e1: pass^3(expectations) >= 0.9", "e1: worst_of_3(expectations) >= 0.9"]
    run(asking, "--rag-mode=live", "--rag-repeats=3", *(f"--rag-gate={text}" for text in texts))
    right, found = model.right, gates(asking)
    assert found[texts[0]]["value"] == pytest.approx(sum(n == 3 for n in right) / 12)
    assert found[texts[1]]["value"] == pytest.approx(sum(1 if n == 3 else 0.5 for n in right) / 12)


def test_each_try_has_a_recording_of_its_own(asking: Suite, model: Wavering) -> None:
    """Without the recordings of the third tries, those alone are missing: no other try stands in for them."""
    run(asking, "--rag-mode=record", "--rag-repeats=2")
    run(asking, "--rag-mode=replay", "--rag-repeats=3", "--rag-output=again", f"--rag-gate={PASS}")
    assert {seed for each in model.said.values() for seed, _ in each} == {7, 8}
    rows = {n: (asking.path / f"again/derived/e1+repeat{n}.jsonl").read_text().splitlines() for n in (2, 3)}
    errors = {n: [json.loads(line)["error"] for line in lines] for n, lines in rows.items()}
    assert errors[2] == [None] * 12
    assert {error["type"] for error in errors[3]} == {"RecordingMissError"}
    found = gates(asking, "again")[PASS]
    assert (found["state"], found["value"]) == ("failed", 0)
    assert found["reason"].endswith("3 answers to each case, 12 answers raised an error")


def test_more_than_are_asked_is_refused_before_anything_is(asking: Suite, server: CountingServer) -> None:
    result = run(asking, "--rag-mode=live", "--rag-repeats=2", f"--rag-gate={PASS}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            f"*Gate '{PASS}': pass^3(token_f1) needs 3 answers to each question, and this run asks for 2 answers: "
            "--rag-repeats=3*"
        ]
    )
    assert not server.calls


def test_the_judge_is_asked_about_each_try_and_only_for_the_gate(suite: Suite) -> None:
    def reply(body: Any) -> str:
        keys = tuple(body["response_format"]["json_schema"]["schema"]["properties"])
        return json.dumps(honest(Asked(body["messages"][0]["content"], body["messages"][1]["content"], keys)))

    with counting_server(delay=0.0, reply=reply) as judge:
        suite.set_table("profiles.mock.judge", model="gpt-x", base_url=judge.url)
        judged = ("--rag-repeats=2",)
        gate = "e3[query_type=direct]: pass^2(faithfulness>=0.01) >= 0"
        suite.run(*judged, "--rag-mode=record", f"--rag-gate={gate}")
        asked = sum(judge.calls.values())
        suite.run(*judged, "--rag-mode=replay", f"--rag-gate={gate}", "--rag-output=again")
        assert sum(judge.calls.values()) == asked
    assert {score["measure"] for score in suite.rows("derived/scores/e3+repeat2")} == {"faithfulness"}
    found = gates(suite)[gate]
    assert found["value"] is not None, found
    assert gates(suite, "again")[gate] == found


FAILING = OWN.replace(
    """        self.asked += 1
        return f"Something, said {self.asked} times"
""",
    """        self.asked += 1
        if self.asked % 2:
            raise RuntimeError("away")
        return "Something"
""",
).replace("    assert rag_result.ok\n", "    pass\n")


def test_a_try_that_raised_is_a_try(suite: Suite) -> None:
    """Half of the calls raise, first ones too; each case is asked three times all the same."""
    suite.pytester.makepyfile(FAILING)
    gate = "mine: pass^1(error_rate) >= 0.5"
    suite.run("--rag-repeats=3", "--rag-run=mine", "--rag-concurrency=1", f"--rag-gate={gate}")
    rows = [row for name in ("mine", "derived/mine+repeat2", "derived/mine+repeat3") for row in suite.rows(name)]
    assert len(rows) == 12
    right = sum(row["error"] is None for row in rows)
    assert gates(suite)[gate]["value"] == pytest.approx(right / 12)
    assert gates(suite)[gate]["reason"] == f"3 answers to each case, {12 - right} answers raised an error"


def test_answers_that_are_computed_are_all_the_same(suite: Suite) -> None:
    let_ask_embedded(suite)
    gate = "e1: flip_rate(token_f1>=0.5) <= 0"
    result = suite.run("--rag-profile=reading", "--rag-repeats=5", f"--rag-gate={gate}", "-v")
    result.stdout.fnmatch_lines(["*5 answers to each case, computed and so all the same*"])
    assert gates(suite)[gate]["state"] == "passed"
