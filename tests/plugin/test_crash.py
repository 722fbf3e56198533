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
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple

import pytest

from tests.chaos.processes import send
from tests.plugin.conftest import Suite
from tests.plugin.counting_server import CountingServer, counting_server, let_ask
from tests.plugin.study import WORKERS

QUERIES = 24


@pytest.fixture
def server() -> Iterator[CountingServer]:
    with counting_server(delay=0.04) as running:
        yield running


@pytest.fixture
def counted(suite: Suite, server: CountingServer) -> Suite:
    return let_ask(suite, server, QUERIES)


AT_ONCE = 4
ARGS = ("--rag-profile=counting", f"--rag-concurrency={AT_ONCE}", "-q")
LIVE = (*ARGS, "--rag-mode=live")


class Run:
    """A run that has been started, to be killed. It and its workers are forks, and all that work in its folder."""

    def __init__(self, suite: Suite, *args: str) -> None:
        self.folder = suite.path.resolve()
        with (suite.path / "out.txt").open("ab") as out:
            command = [sys.executable, "-m", "pytest", *ARGS, *args]
            self.started = subprocess.Popen(command, cwd=suite.path, stdout=out, stderr=out)

    def processes(self) -> list[int]:
        """Return its processes, the controller first; what only waits for a fork, to end as it ends, is none."""
        return [each for each in self.working() if b"warm_server.py" in _command(each)]

    def working(self) -> list[int]:
        """Return all processes of its folder, the youngest last; not this one, nor the one that forks."""
        found = []
        for each in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it is gone, or somebody else's
                number, parent = int(each.name), int((each / "stat").read_text().rpartition(")")[2].split()[1])
                is_of_ours = number == os.getpid() or (parent == os.getpid() and number != self.started.pid)
                if not is_of_ours and (each / "cwd").readlink() == self.folder:
                    found.append(number)
        return sorted(found)

    def goes_on(self) -> bool:
        return self.started.poll() is None

    def begins(self) -> None:
        """Wait until it is a process of its own."""
        until = time.monotonic() + 60
        while self.goes_on() and not self.processes():
            assert time.monotonic() < until
            time.sleep(0.002)

    def kill(self, whom: str, chance: random.Random) -> None:
        """Kill the controller, one worker or all of it. Who waits for a fork is let be, and ends with it."""
        everything = self.processes()
        one = [chance.choice(everything[1:])] if everything[1:] else []
        send(signal.SIGKILL, {"all": everything, "controller": everything[:1], "worker": one}[whom])

    def end(self) -> int:
        """Wait for it, and for workers that outlive their controller; return its exit status."""
        status, until = self.started.wait(timeout=120), time.monotonic() + 30
        while self.working() and time.monotonic() < until:
            time.sleep(0.01)
        return status


def _command(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:  # it is gone
        return b""


RUNS: list[Run] = []


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """Kill what a test that failed has left."""
    yield
    while RUNS:
        run, until = RUNS.pop(), time.monotonic() + 30
        while (run.goes_on() or run.working()) and time.monotonic() < until:
            send(signal.SIGKILL, run.processes())
            time.sleep(0.01)


def start(suite: Suite, *args: str) -> Run:
    # Workers there are, though the run itself would start none.
    RUNS.append(Run(suite, *(part for arg in args for part in (WORKERS if arg == "-n2" else (arg,)))))
    return RUNS[-1]


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


class Kill(NamedTuple):
    """Whom to kill in a run with these workers, after so many calls of the model; 0: somewhere in its start."""

    workers: str
    whom: str
    calls: int


def drawn(kills: int) -> list[Kill]:
    """Return that many kills, from before the first call to long after it."""
    chance, found = random.Random(kills), []
    for number in range(kills):
        workers = ("-n0", "-n2")[number % 2]
        whom = chance.choice(["all", "controller", "worker"]) if workers == "-n2" else "controller"
        found.append(Kill(workers, whom, chance.choice([0, *range(1, 12)])))
    return found


@contextmanager
def answers_held(server: CountingServer, after: int) -> Iterator[None]:
    """Answer nothing after so many calls until the block is left: what is to be killed does not end before."""
    answers, is_over = server.reply, Event()

    def reply(body: Any) -> str:
        if server.calls.total() > after and not is_over.wait(30):
            is_over.set()  # what is held too long is to fail, not to hang
        return answers(body)

    server.reply = reply
    try:
        yield
    finally:
        server.reply = answers
        is_over.set()


def wait_for(server: CountingServer, calls: int, run: Run) -> None:
    """Wait until the model has had so many calls, in all; the run must not end before."""
    until = time.monotonic() + 60
    while server.calls.total() < calls:
        assert run.goes_on()
        assert time.monotonic() < until, server.calls
        time.sleep(0.002)


def survive(suite: Suite, server: CountingServer, kills: Sequence[Kill], mode: str, more: Sequence[str] = ()) -> None:
    chance = random.Random(len(kills))
    for number, (workers, whom, wanted) in enumerate(kills):
        before, calls = kept(suite), Counter(server.calls)
        with answers_held(server, after=calls.total() + wanted + 4):
            run = start(suite, workers, mode, *more)
            if 0 < wanted <= QUERIES - len(before):
                wait_for(server, calls.total() + wanted, run)
                time.sleep(chance.uniform(0, 0.1))
                assert run.goes_on()
            else:
                run.begins()
                time.sleep(chance.uniform(0, 0.8))
            run.kill(whom, chance)
        run.end()
        again = {question for question in before if server.calls[question] > calls[question]}
        assert not again, f"asked again after kill {number}: {again}"
        after = kept(suite)
        assert before <= after
        lost = {each for each in server.calls if re.fullmatch(r"question \d+", each)} - after
        assert len(lost) <= 2 * AT_ONCE, f"more than was in flight is not on the disk after kill {number}: {lost}"


LIVE_KILLS = [Kill("-n0", "controller", 5), Kill("-n2", "controller", 9)]
RECORD_KILLS = [Kill("-n2", "all", 6), Kill("-n0", "controller", 8)]
TALK_KILLS = [Kill("-n0", "controller", 10), Kill("-n2", "worker", 6)]
PLAYED_KILLS = [Kill("-n0", "controller", 12), Kill("-n2", "all", 9)]


@pytest.mark.parametrize(
    ("mode", "kills"),
    [
        pytest.param("live", LIVE_KILLS, id="live"),
        pytest.param("record", RECORD_KILLS, id="record"),
        pytest.param("live", drawn(50), marks=pytest.mark.long, id="50-live"),
        pytest.param("record", drawn(50), marks=pytest.mark.long, id="50-record"),
    ],
)
def test_killed_at_random_moments(counted: Suite, server: CountingServer, mode: str, kills: list[Kill]) -> None:
    mode = f"--rag-mode={mode}"
    survive(counted, server, kills, mode)
    calls = server.calls.total()
    missing = QUERIES - len(kept(counted))
    result = counted.run(*ARGS, mode)
    result.assert_outcomes(passed=QUERIES)
    rows = counted.rows("e1_baseline")
    assert sorted(str(row["query_id"]) for row in rows) == sorted(f"q{n}" for n in range(QUERIES))
    # A write that has begun when its process is killed may end after ``kept`` has looked.
    assert server.calls.total() <= calls + missing
    assert not list(counted.path.glob("output/journal/*"))


@pytest.mark.parametrize(
    "kills", [pytest.param(TALK_KILLS, id="few"), pytest.param(drawn(40), marks=pytest.mark.long, id="40")]
)
def test_conversations_killed_at_random_moments_go_on_at_their_turns(
    suite: Suite, server: CountingServer, kills: list[Kill]
) -> None:
    """No turn is paid for twice, each has one row, and none has what was said in another conversation."""
    let_ask(suite, server, 0)
    talks = [[f"question {4 * n + turn}" for turn in range(4)] for n in range(QUERIES // 4)]
    lines: list[dict[str, object]] = [
        {"conversation": f"c{n}", "turns": [{"query": each} for each in talk]} for n, talk in enumerate(talks)
    ]
    suite.write_queries(lines)
    survive(suite, server, kills, "--rag-mode=live", more=("--rag-history=own",))
    calls, missing = server.calls.total(), QUERIES - len(kept(suite))
    suite.run(*LIVE, "--rag-history=own").assert_outcomes(passed=QUERIES)
    assert server.calls.total() <= calls + missing
    rows = {str(row["query_id"]): row for row in suite.rows("e1-own")}
    assert len(rows) == len(suite.rows("e1-own")) == QUERIES
    for n, talk in enumerate(talks):
        for turn in range(4):
            before = [text for each in talk[:turn] for text in (each, f"about {each}")]
            inputs: Any = rows[f"c{n}#{turn + 1}"]["inputs"]
            assert [each["content"] for each in inputs.get("history", ())] == before


@pytest.mark.parametrize(
    "kills", [pytest.param(PLAYED_KILLS, id="few"), pytest.param(drawn(40), marks=pytest.mark.long, id="40")]
)
def test_played_conversations_killed_at_random_moments_pay_for_no_move_twice(
    suite: Suite, server: CountingServer, kills: list[Kill]
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
    suite.set_table("profiles.counting.user", model="counting")
    survive(suite, server, kills, "--rag-mode=live", [])
    suite.run(*LIVE).assert_outcomes(passed=QUERIES, skipped=QUERIES // 2)
    calls, rows = server.calls.total(), suite.rows("e1-sim")
    assert len({str(row["query_id"]) for row in rows}) == len(rows) == QUERIES
    for row in rows:
        inputs: Any = row["inputs"]
        talk = asks[int(inputs["conversation"][1:])][: inputs["turn"]]
        assert row["query"] == talk[-1]
        before = [text for each in talk[:-1] for text in (each, f"about {each}")]
        assert [each["content"] for each in inputs.get("history", ())] == before
    suite.run(*LIVE).assert_outcomes(passed=QUERIES, skipped=QUERIES // 2)
    assert server.calls.total() == calls
    assert not list(suite.path.glob("output/journal/*"))


def test_a_killed_worker_loses_no_row(counted: Suite, server: CountingServer) -> None:
    run = start(counted, "-n2", "--rag-mode=live")
    with answers_held(server, after=10):
        # At most 10 are answered then, so neither worker has run all its tests.
        wait_for(server, 11, run)
        run.kill("worker", random.Random(1))
    status = run.end()
    out = (counted.path / "out.txt").read_text()
    assert "node down: Not properly terminated" in out
    # What the worker had is run again, each test alone: killed from outside, none of them is to blame.
    assert status == 0
    rows = counted.rows("e1_baseline")
    assert len({row["query_id"] for row in rows}) == len(rows)
    assert {str(row["query"]) for row in rows} == kept(counted)
    assert len(rows) == QUERIES
    # What was in flight in the dead worker had to be asked again, and nothing else.
    assert server.calls.total() <= QUERIES + 2


def test_a_second_run_in_the_same_folder_is_refused_and_asks_nothing(counted: Suite, server: CountingServer) -> None:
    with answers_held(server, after=0):
        run = start(counted, "--rag-mode=live")
        wait_for(server, 1, run)
        second = counted.run(*LIVE)
        assert run.goes_on()
        (controller,) = run.processes()
    assert second.ret == pytest.ExitCode.USAGE_ERROR
    second.stderr.fnmatch_lines([f"ERROR: Another run is writing to */output: process {controller} on *=DIR"])
    elsewhere = counted.run(*LIVE, "--rag-output=elsewhere", "-k", "q1")
    assert elsewhere.ret == 0
    asked_there = len((counted.path / "elsewhere" / "e1_baseline.jsonl").read_text().splitlines())
    assert run.end() == 0
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
