"""Runs that are killed at any moment lose nothing, pay for nothing twice, and leave files that are whole."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tests.chaos.processes import members
from tests.plugin.conftest import Suite
from tests.plugin.counting_server import CountingServer, counting_server, let_ask

QUERIES = 24
COLD = sys.executable
"""Python itself: what it starts is in the group that is killed. A fork of the Python that has started is in none."""


@pytest.fixture
def server() -> Iterator[CountingServer]:
    with counting_server(delay=0.25) as running:
        yield running


@pytest.fixture
def counted(suite: Suite, server: CountingServer) -> Suite:
    return let_ask(suite, server, QUERIES)


ARGS = ("--rag-profile=counting", "--rag-concurrency=4", "-q")
LIVE = (*ARGS, "--rag-mode=live")


def start(suite: Suite, *args: str) -> subprocess.Popen[bytes]:
    """Start a run in a process group of its own, so that all of it can be killed."""
    command = [COLD, "-m", "pytest", *ARGS, *args]
    with (suite.path / "out.txt").open("ab") as out:
        return subprocess.Popen(command, cwd=suite.path, stdout=out, stderr=out, start_new_session=True)


def kept(suite: Suite) -> set[str]:
    """Return the questions whose answers are on disk, in a row or in a recording: neither is asked for again."""
    recordings = [file.read_text() for file in suite.path.glob("cassettes/**/*.yaml")]
    found = {question for each in recordings for question in re.findall(r"Question: (question \d+)", each)}
    for file in [
        file for folder in ("", "journal/", "derived/") for file in suite.path.glob(f"output/{folder}*.jsonl")
    ]:
        for line in file.read_bytes().splitlines(keepends=True):
            if line.endswith(b"\n") and "query" in (said := json.loads(line)):  # a score has none
                found.add(str(said["query"]))
    return found


def kill(run: subprocess.Popen[bytes], whom: str, chance: random.Random) -> None:
    """Kill the controller, one worker or all of a run."""
    group = members(run.pid)
    workers = [each for each in group if each != run.pid]
    victims = {"all": group, "controller": [run.pid], "worker": [chance.choice(workers)] if workers else []}[whom]
    for each in victims:
        try:
            os.kill(each, signal.SIGKILL)
        except ProcessLookupError:
            continue


def end(run: subprocess.Popen[bytes]) -> None:
    """Wait for the run, and for workers that outlive their controller."""
    run.wait(timeout=120)
    until = time.monotonic() + 30
    while members(run.pid) and time.monotonic() < until:
        time.sleep(0.05)


def survive(suite: Suite, server: CountingServer, kills: int, seed: int, mode: str, more: Sequence[str] = ()) -> None:
    chance = random.Random(seed)
    for number in range(kills):
        before, calls = kept(suite), Counter(server.calls)
        workers = ("-n0", "-n2")[number % 2]
        run = start(suite, workers, mode, *more)
        # From before the first call to after the last one: a run takes about 3 s.
        time.sleep(chance.uniform(0.5, 4.0))
        kill(run, chance.choice(["all", "controller", "worker"]) if workers == "-n2" else "controller", chance)
        end(run)
        again = {question for question in before if server.calls[question] > calls[question]}
        assert not again, f"asked again after kill {number}: {again}"
        assert before <= kept(suite)


@pytest.mark.parametrize("mode", ["--rag-mode=live", "--rag-mode=record"])
@pytest.mark.parametrize("kills", [3, pytest.param(50, marks=pytest.mark.long)])
def test_killed_at_random_moments(counted: Suite, server: CountingServer, kills: int, mode: str) -> None:
    survive(counted, server, kills, seed=kills, mode=mode)
    calls = server.calls.total()
    missing = QUERIES - len(kept(counted))
    result = counted.run(*ARGS, mode)
    result.assert_outcomes(passed=QUERIES)
    rows = counted.rows("e1_baseline")
    assert sorted(str(row["query_id"]) for row in rows) == sorted(f"q{n}" for n in range(QUERIES))
    assert server.calls.total() == calls + missing
    assert not list(counted.path.glob("output/journal/*"))


@pytest.mark.parametrize("kills", [3, pytest.param(40, marks=pytest.mark.long)])
def test_conversations_killed_at_random_moments_go_on_at_their_turns(
    suite: Suite, server: CountingServer, kills: int
) -> None:
    """No turn is paid for twice, each has one row, and none has what was said in another conversation."""
    let_ask(suite, server, 0)
    talks = [[f"question {4 * n + turn}" for turn in range(4)] for n in range(QUERIES // 4)]
    lines: list[dict[str, object]] = [
        {"conversation": f"c{n}", "turns": [{"query": each} for each in talk]} for n, talk in enumerate(talks)
    ]
    suite.write_queries(lines)
    survive(suite, server, kills, seed=kills, mode="--rag-mode=live", more=("--rag-history=own",))
    calls, missing = server.calls.total(), QUERIES - len(kept(suite))
    suite.run(*LIVE, "--rag-history=own").assert_outcomes(passed=QUERIES)
    assert server.calls.total() == calls + missing
    rows = {str(row["query_id"]): row for row in suite.rows("e1-own")}
    assert len(rows) == len(suite.rows("e1-own")) == QUERIES
    for n, talk in enumerate(talks):
        for turn in range(4):
            before = [text for each in talk[:turn] for text in (each, f"about {each}")]
            inputs: Any = rows[f"c{n}#{turn + 1}"]["inputs"]
            assert [each["content"] for each in inputs.get("history", ())] == before


@pytest.mark.parametrize("kills", [3, pytest.param(40, marks=pytest.mark.long)])
def test_played_conversations_killed_at_random_moments_pay_for_no_move_twice(
    suite: Suite, server: CountingServer, kills: int
) -> None:
    """Neither an answer nor what a simulated user said is asked for again once it is on the disk."""
    let_ask(suite, server, 0)
    asks = [[f"question {4 * n + turn}" for turn in range(4)] for n in range(QUERIES // 4)]
    scenarios: list[dict[str, object]] = [
        {"conversation": f"s{n}", "scenario": {"opening": first, "asks": others, "max_turns": 6}}
        for n, (first, *others) in enumerate(asks)
    ]
    suite.write_queries(scenarios)
    (suite.path / "prompts").mkdir()
    # What the model is asked is then what stands in its row.
    prompt = "The person:\n{context}\n\nThe conversation so far:\n{question}"
    (suite.path / "prompts" / "user.user.md").write_text(prompt)
    answers = server.reply

    def reply(body: Any) -> str:
        told = str(body["messages"][-1]["content"])
        if not told.startswith("The person:"):
            return answers(body)
        wanted, heard = re.findall(r"Wants to ask: (.*)", told), re.findall(r"Person: (.*)", told)
        left = [each for each in wanted if each not in heard]
        return json.dumps({"say": left[0] if left else "that is all", "done": not left})

    server.reply = reply
    more = ["--rag-user-model=counting", "--rag-prompts=prompts"]
    survive(suite, server, kills, seed=kills, mode="--rag-mode=live", more=more)
    suite.run(*LIVE, *more).assert_outcomes(passed=QUERIES, skipped=QUERIES // 2)
    calls, rows = server.calls.total(), suite.rows("e1-sim")
    assert len({str(row["query_id"]) for row in rows}) == len(rows) == QUERIES
    for row in rows:
        inputs: Any = row["inputs"]
        talk = asks[int(inputs["conversation"][1:])][: inputs["turn"]]
        assert row["query"] == talk[-1]
        before = [text for each in talk[:-1] for text in (each, f"about {each}")]
        assert [each["content"] for each in inputs.get("history", ())] == before
    suite.run(*LIVE, *more).assert_outcomes(passed=QUERIES, skipped=QUERIES // 2)
    assert server.calls.total() == calls
    assert not list(suite.path.glob("output/journal/*"))


def test_a_killed_worker_loses_no_row(counted: Suite, server: CountingServer) -> None:
    run = start(counted, "-n2", "--rag-mode=live")
    while server.calls.total() < 10:
        time.sleep(0.05)
        assert run.poll() is None
    kill(run, "worker", random.Random(1))
    end(run)
    out = (counted.path / "out.txt").read_text()
    assert "crashed while running" in out
    assert run.returncode == 1
    rows = counted.rows("e1_baseline")
    assert len({row["query_id"] for row in rows}) == len(rows)
    assert {str(row["query"]) for row in rows} == kept(counted)
    # The test that the worker died in is not run again by xdist; every other trial has its row.
    assert len(rows) >= QUERIES - 1
    # What was in flight in the dead worker had to be asked again, and nothing else.
    assert server.calls.total() <= QUERIES + 2


def test_a_second_run_in_the_same_folder_is_refused_and_asks_nothing(counted: Suite, server: CountingServer) -> None:
    server.delay = 2.0  # longer than a start takes
    run = start(counted, "--rag-mode=live")
    while server.calls.total() < 1:
        time.sleep(0.05)
        assert run.poll() is None
    second = counted.run(*LIVE)
    server.delay = 0.1
    assert run.poll() is None
    assert second.ret == pytest.ExitCode.USAGE_ERROR
    second.stderr.fnmatch_lines([f"ERROR: Another run is writing to */output: process {run.pid} on *--rag-output=DIR"])
    elsewhere = counted.run(*LIVE, "--rag-output=elsewhere", "-k", "q1")
    assert elsewhere.ret == 0
    asked_there = len((counted.path / "elsewhere" / "e1_baseline.jsonl").read_text().splitlines())
    end(run)
    assert run.returncode == 0
    assert server.calls.total() == QUERIES + asked_there
    counted.run(*LIVE).assert_outcomes(passed=QUERIES)  # and takes all of them over
    assert server.calls.total() == QUERIES + asked_there


def test_a_folder_that_cannot_be_written_is_refused_before_anything_is_asked(
    counted: Suite, server: CountingServer
) -> None:
    (counted.path / "a_file").write_text("")
    result = counted.run(*LIVE, "--rag-output=a_file/output")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: Results cannot be written to */a_file/output: *--rag-output=DIR"])
    assert not server.calls
