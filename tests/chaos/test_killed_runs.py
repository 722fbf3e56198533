"""Runs that are killed at any moment, live, recording and with workers: nothing is lost, nothing is paid for twice.

``tests/plugin/test_crash.py`` has a short version of each.
"""

from __future__ import annotations

import random
import shutil
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from subprocess import Popen

import pytest

from tests.chaos.ledger import Account, account
from tests.chaos.processes import LONGEST, end, members, send
from tests.chaos.runs import Suite
from tests.plugin.counting_server import CountingServer

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc"),
    pytest.mark.usefixtures("long_version"),
]
QUERIES, AT_ONCE = 40, 4
IN_FLIGHT = 0.005
"""Seconds after its last byte was sent in which an answer still counts as in flight."""
SHARES = {"live": 0.2, "record": 0.15, "live -n 4": 0.05, "record -n 2": 0.05}


def strike(run: Popen[bytes], server: CountingServer, chance: random.Random) -> float | None:
    """Kill a run, its controller or one of its workers after so many calls.

    Return when, by ``monotonic``; None where it had ended before.
    """
    until, wanted = time.monotonic() + LONGEST, server.calls.total() + chance.randint(0, 24)
    if chance.random() < 0.1:
        until = time.monotonic() + chance.uniform(0.1, 1.5)  # somewhere in its start
    while run.poll() is None and server.calls.total() < wanted and time.monotonic() < until:
        time.sleep(0.002)
    time.sleep(chance.uniform(0, 0.03))
    group = members(run.pid)
    workers = [each for each in group if each != run.pid]
    was_there = run.poll() is None
    victims = [group, [run.pid], [chance.choice(workers)]] if workers else [[run.pid]]
    struck = time.monotonic()
    send(signal.SIGKILL, chance.choice(victims))
    if was_there and run.pid in group:
        run.wait(LONGEST) if run.pid not in members(run.pid) else _leave(run)
    return struck if was_there else None


def _leave(run: Popen[bytes]) -> None:
    """Let what outlives a killed worker go on to its end."""
    until = time.monotonic() + 30
    while run.poll() is None and time.monotonic() < until:
        time.sleep(0.01)


def kill_again_and_again(folder: Path, server: CountingServer, mode: str, number: int, book: Account) -> None:
    chance, suite = random.Random(number), Suite(folder, server.url, QUERIES)
    args = ["-p", "reads", f"--rag-mode={mode.split(maxsplit=1)[0]}", f"--rag-concurrency={AT_ONCE}", *mode.split()[1:]]
    made, in_flight = 0, 0
    while made < number:
        before, calls = suite.kept(), Counter(server.calls)
        server.answered.clear()
        (folder / "reads.txt").unlink(missing_ok=True)
        with suite.running(*args) as run:
            struck = strike(run, server, chance)
            end(run)
        lost = before - suite.kept()
        twice = sum(server.calls[each] - calls[each] for each in before)
        if struck is not None:
            made, in_flight = made + 1, in_flight + 2 * AT_ONCE
            on_disk = suite.kept() | suite.recorded()
            answered = {each: struck - when for each, when in server.answered.items() if when < struck}
            unkept = answered.keys() - on_disk
            late = {each for each in unkept if answered[each] > IN_FLIGHT}
            book.note(len(lost), twice, unkept=len(unkept), late=len(late), read=len(late & suite.read()))
        assert (lost, twice) == (set(), 0)
        if len(suite.kept()) > QUERIES - 5 or made == number:
            _finish(suite, server, args, in_flight, book)
            in_flight = 0


def _finish(suite: Suite, server: CountingServer, args: list[str], in_flight: int, book: Account) -> None:
    """Run to the end: each question has one row, and no more was asked again than was in flight; then begin anew."""
    status, said = suite.run(*args)
    assert status == 0, said[-2000:]
    assert sorted(suite.rows()) == sorted(f"q{n}" for n in range(QUERIES))
    assert not list((suite.folder / "output" / "journal").iterdir())
    again = server.calls.total() - QUERIES
    book.again += again
    assert 0 <= again <= in_flight
    server.calls.clear()
    for name in ("output", "cassettes"):
        shutil.rmtree(suite.folder / name, ignore_errors=True)


@pytest.mark.parametrize("mode", SHARES)
def test_killed_runs(tmp_path: Path, server: CountingServer, kills: int, mode: str) -> None:
    book = account(f"run killed, {mode}")
    kill_again_and_again(tmp_path, server, mode, max(1, round(kills * SHARES[mode])), book)


def test_a_stopped_worker_is_waited_for(tmp_path: Path, server: CountingServer) -> None:
    suite, book = Suite(tmp_path, server.url, QUERIES), account("worker stopped and continued (SIGSTOP)")
    with suite.running("--rag-mode=live", "--rag-concurrency=4", "-n", "2") as run:
        while server.calls.total() < 5 and run.poll() is None:
            time.sleep(0.005)
        workers = [each for each in members(run.pid) if each != run.pid]
        send(signal.SIGSTOP, workers[-1:])
        time.sleep(1.5)
        was_waiting = run.poll() is None
        send(signal.SIGCONT, workers[-1:])
        status = run.wait(LONGEST)
    lost, twice = QUERIES - len(set(suite.rows())), server.calls.total() - QUERIES
    book.note(lost, twice, failed=status != 0)
    assert (was_waiting, status, lost, twice) == (True, 0, 0, 0), suite.said.read_text()[-2000:]
