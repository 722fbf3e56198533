"""``--rag-repeats``: answers beside the first, their recordings and files, and where the noise is."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from tests.plugin.conftest import Suite
from tests.plugin.counting_server import CountingServer, counting_server, let_ask

TRUTH = "a lamp may be returned within 45 days of its delivery"


class Wavering:
    """Answers with more or fewer words of the truth, by question and seed."""

    def __init__(self) -> None:
        self.seeds: list[int] = []

    def reply(self, body: Any) -> str:
        self.seeds.append(body["seed"])
        question = str(body["messages"][-1]["content"]).rpartition("Question: ")[2].strip()
        words = TRUTH.split()
        kept = random.Random(f"{question} {body['seed']}").randrange(1, len(words))
        return json.dumps({"answer": " ".join(words[:kept])})


@pytest.fixture
def model() -> Wavering:
    return Wavering()


@pytest.fixture
def server(model: Wavering) -> Iterator[CountingServer]:
    with counting_server(delay=0.0, reply=model.reply) as running:
        yield running


@pytest.fixture
def asking(suite: Suite, server: CountingServer) -> Suite:
    let_ask(suite, server, queries=8)
    suite.write_queries([{"query_id": f"q{n}", "query": f"question {n}", "ground_truth": TRUTH} for n in range(8)])
    return suite


def run(suite: Suite, *args: str) -> pytest.RunResult:
    return suite.run("--rag-profile=counting", *args)


def noise(suite: Suite, output: str = "output") -> Any:
    return json.loads((suite.path / output / "summary.json").read_text())["noise"]


def test_each_query_is_answered_again_recorded_replayed_and_resumed(
    asking: Suite, server: CountingServer, model: Wavering
) -> None:
    result = run(asking, "--rag-mode=record", "--rag-repeats=2")
    result.assert_outcomes(passed=8)
    result.stdout.fnmatch_lines(["*rag noise*", "e1: 2 answers to each query", "*queries  pipeline*", "  token_f1*"])
    assert sorted(model.seeds) == [7] * 8 + [8] * 8
    found = noise(asking)["e1"]["measures"]["token_f1"]
    assert (found["queries"], found["repeats"]) == (8, 2)
    assert found["pipeline"] > 0
    rows = asking.rows("derived/e1+repeat2")
    assert {row["experiment"] for row in rows} == {"e1+repeat2"}
    assert len(rows) == len(asking.rows("e1_baseline")) == 8
    run(asking, "--rag-mode=record", "--rag-repeats=2").assert_outcomes(passed=8)
    run(asking, "--rag-mode=replay", "--rag-repeats=2", "--rag-output=again", "-n2").assert_outcomes(passed=8)
    assert noise(asking, "again") == noise(asking)
    assert len(model.seeds) == 16
    assert not list((asking.path / "output" / "journal").iterdir())
