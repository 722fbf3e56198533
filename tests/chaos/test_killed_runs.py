"""Runs and races that are killed at any moment: nothing is lost, nothing is paid for twice.

``tests/plugin/test_crash.py`` has a short version of each.
"""

from __future__ import annotations

import itertools
import json
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
SHARE_OF_RACES, PAGES = 0.05, 10
SPACE = """objective = "token_f1"
[parameters]
retriever = ["dense", "bm25"]
top_k = [1, 2]
rerank = false
"""


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


def trials_of_race(folder: Path) -> dict[tuple[str, str], set[str]]:
    """Return the answers of a race that are on disk, whole, by configuration and question: one, if none is lost."""
    files = [*folder.glob("output/derived/*.jsonl"), *folder.glob("output/**/journal/*.jsonl")]
    lines = [line for file in files for line in file.read_bytes().splitlines(keepends=True)]
    rows = [json.loads(line) for line in lines if line.endswith(b"\n") and line.startswith(b"{")]
    found: dict[tuple[str, str], set[str]] = {}
    for row in rows:
        found.setdefault((row["experiment"], row["query_id"]), set()).add(row["llm_answer"])
    return found


def racing(folder: Path, server: CountingServer) -> Suite:
    """Return a suite without tests whose configurations race; each answer has a number of its own."""
    number, suite = itertools.count(), Suite(folder, server.url, QUERIES)
    (folder / "test_e1.py").unlink()
    (folder / "space.toml").write_text(SPACE)
    pages = [f"page{n}.md" for n in range(PAGES)]
    for n, page in enumerate(pages):
        (folder / "kb" / page).write_text(f"# Page {n}\n\nLamp {n} goes back within {n} days.\n")
    rows = (
        {
            "query_id": f"q{n}",
            "query": f"question {n}",
            "ground_truth": f"{n} days",
            "context_reference": [pages[n % PAGES]],
        }
        for n in range(QUERIES)
    )
    (folder / "kb" / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    server.reply = lambda _: json.dumps({"answer": f"{next(number)} days"})
    return suite


def test_killed_races(tmp_path: Path, server: CountingServer, kills: int) -> None:
    chance, book, suite = random.Random(11), account("race killed"), racing(tmp_path, server)
    args = ["--rag-tune=space.toml", "--rag-mode=live", f"--rag-concurrency={AT_ONCE}"]
    made, wanted, in_flight = 0, max(1, round(kills * SHARE_OF_RACES)), 0
    while made < wanted:
        before = trials_of_race(tmp_path)
        with suite.running(*args) as run:
            struck = strike(run, server, chance)
            end(run)
        after = trials_of_race(tmp_path)
        lost = [each for each in before if not before[each] <= after.get(each, set())]
        twice = [each for each, answers in after.items() if len(answers) > 1]
        if struck is not None:
            made, in_flight = made + 1, in_flight + 2 * AT_ONCE
            book.note(len(lost), len(twice))
        assert (lost, twice) == ([], [])
        if struck is None or made == wanted:
            _finish_race(suite, server, args, in_flight, book)
            in_flight = 0


def _finish_race(suite: Suite, server: CountingServer, args: list[str], in_flight: int, book: Account) -> None:
    """Run to the end: no more was asked again than was in flight; then begin anew."""
    before = trials_of_race(suite.folder)
    status, said = suite.run(*args)
    after = trials_of_race(suite.folder)
    assert status == 0, said[-2000:]
    assert (suite.folder / "output" / "tuned.toml").is_file()
    assert {each: after[each] for each in before} == before
    assert all(len(answers) == 1 for answers in after.values())
    again = server.calls.total() - len(after)
    book.again += again
    assert 0 <= again <= in_flight
    server.calls.clear()
    shutil.rmtree(suite.folder / "output")
