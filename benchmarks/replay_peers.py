"""Converts the harness's recordings for plain vcrpy and pytest-recording, with a suite that requests each."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

CONFTEST = """
import asyncio
import json
from pathlib import Path

import pytest
from openai import AsyncOpenAI

MATCH = ["method", "path", "body"]
BODIES = [json.loads(line) for line in Path(__file__).with_name("bodies.jsonl").read_text().splitlines()]


def pytest_generate_tests(metafunc):
    metafunc.parametrize("n", range(len(BODIES)))


@pytest.fixture(scope="session")
def vcr_config():
    return {"match_on": MATCH}


@pytest.fixture(scope="session")
def one_cassette():
    import vcr

    with vcr.VCR(match_on=MATCH, record_mode="none").use_cassette("all.yaml"):
        yield


@pytest.fixture(scope="session")
def ask():
    loop = asyncio.new_event_loop()
    client = AsyncOpenAI(base_url="http://embedded/v1", api_key="none", max_retries=0)

    async def text(n):
        stream = await client.chat.completions.create(**BODIES[n])
        return "".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices])

    yield lambda n: loop.run_until_complete(text(n))
    loop.run_until_complete(client.close())
    loop.close()
"""
ONE = "def test_answers(one_cassette, ask, n):\n    assert ask(n)\n"
EACH = "import pytest\n\n\n@pytest.mark.vcr\ndef test_answers(ask, n):\n    assert ask(n)\n"


def write_peers(folder: Path, recordings: Path, calls: int) -> None:
    """Write both suites over ``calls`` recordings; beyond those that there are, prompts get a number at their end."""
    folder.mkdir()
    interactions = list(_interactions(recordings, calls))
    bodies = [each["request"]["body"] for each in interactions]
    (folder / "bodies.jsonl").write_text("".join(json.dumps(json.loads(each)) + "\n" for each in bodies))
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_one.py").write_text(ONE)
    (folder / "test_each.py").write_text(EACH)
    _write(folder / "all.yaml", interactions)
    (folder / "cassettes" / "test_each").mkdir(parents=True)
    for number, each in enumerate(interactions):
        _write(folder / "cassettes" / "test_each" / f"test_answers[{number}].yaml", [each])


def _interactions(recordings: Path, calls: int) -> Iterator[dict[str, Any]]:
    files = sorted(recordings.glob("*.yaml"))
    cassettes = [yaml.load(file.read_text(encoding="utf-8"), yaml.CSafeLoader) for file in files]
    found = [each for cassette in cassettes for each in cassette["interactions"]][:600]
    for number in range(calls):
        each = copy.deepcopy(found[number % len(found)])
        body = json.loads(each["request"]["body"])
        body["messages"][-1]["content"] += f" ({number})"
        each["request"]["body"] = json.dumps(body)
        yield each


def _write(file: Path, interactions: list[dict[str, Any]]) -> None:
    file.write_text(yaml.dump({"version": 1, "interactions": interactions}, Dumper=yaml.CSafeDumper))
