"""Judges of a panel at addresses of their own, as a profile has them: live, recorded, and replayed without them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.plugin.conftest import Suite
from tests.plugin.counting_server import CountingServer, counting_server
from tests.unit.evaluation.judges.scripted import Asked, honest

PROFILE = """
[tool.rag_harness.profiles.mine]
chat_model = "mock/placeholder"
chat_base_url = "embedded://"
embed_model = "mock/hashed-words"
rerank_model = "mock/word-overlap"

[tool.rag_harness.profiles.mine.judge]
model = "one"
base_url = "{}"
temperature = 0.25
reasoning_effort = "low"

[tool.rag_harness.profiles.mine.judges.second]
model = "two"
base_url = "{}"
seed = 40
drop = ["temperature", "response_format"]
extra_body = {{ provider = {{ only = ["here"] }} }}
"""
PANEL = ("--rag-profile=mine", "--rag-measures=faithfulness", "--rag-judge=fused,fused@second", "--rag-panel=mean")


class Model:
    """Judges honestly, and keeps what it is sent."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []

    def reply(self, body: Any) -> str:
        self.bodies.append(body)
        system, user = (message["content"] for message in body["messages"][:2])
        shape = system.rpartition("Reply as JSON: ")[2]
        keys = tuple(key for key in ("verdicts", "claims", "questions", "noncommittal") if f'"{key}": ' in shape)
        return json.dumps(honest(Asked(system, user, keys)))


@pytest.fixture
def models() -> tuple[Model, Model]:
    return Model(), Model()


@pytest.fixture
def servers(models: tuple[Model, Model]) -> Iterator[tuple[CountingServer, CountingServer, ExitStack]]:
    with ExitStack() as running:
        one, two = (running.enter_context(counting_server(delay=0.0, reply=model.reply)) for model in models)
        yield one, two, running


def lines(suite: Suite, output: str) -> set[str]:
    return {line for file in suite.path.glob(f"{output}/scores/*.jsonl") for line in file.read_text().splitlines()}


def test_two_judges_have_two_addresses_and_are_replayed_without_them(
    suite: Suite,
    models: tuple[Model, Model],
    servers: tuple[CountingServer, CountingServer, ExitStack],
) -> None:
    one, two, running = servers
    suite.pytester.makepyprojecttoml(PROFILE.format(one.url, two.url))
    result = suite.run(*PANEL, "--rag-mode=record")
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["rag: judged by panel of 2 (mean): fused one, fused two"])
    assert {body["model"] for body in models[0].bodies} == {"one"}
    assert {body["model"] for body in models[1].bodies} == {"two"}
    assert {(body["temperature"], body["reasoning_effort"], body["seed"]) for body in models[0].bodies} == {
        (0.25, "low", 7)
    }
    assert not [body for body in models[0].bodies if "provider" in body or "response_format" not in body]
    assert {(json.dumps(body["provider"]), body["seed"]) for body in models[1].bodies} == {('{"only": ["here"]}', 40)}
    assert not [
        body for body in models[1].bodies if {"temperature", "response_format", "reasoning_effort"} & body.keys()
    ]
    judged = lines(suite, "output")
    assert {json.loads(line)["model"] for line in judged} == {"one", "two"}
    running.close()
    suite.run(*PANEL, "--rag-mode=replay", "--rag-output=again").assert_outcomes(passed=4)
    assert lines(suite, "again") == judged
    # Other fields are other requests and other scores: those of an earlier run are neither found nor reused.
    file = suite.path / "pyproject.toml"
    file.write_text(file.read_text().replace("temperature = 0.25", "temperature = 0.5"))
    suite.run(*PANEL, "--rag-mode=replay", "--rag-output=again").assert_outcomes(passed=4)
    unlike = [json.loads(line) for line in lines(suite, "again") - judged]
    assert {(line["model"], line["value"]) for line in unlike} == {("one", None)}
