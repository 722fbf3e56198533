"""The engine as a user meets it: limits of the whole run, stopping, debugging, neighbours with loops of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from tests.plugin.conftest import Suite
from tests.plugin.counting_server import CountingServer, counting_server, let_ask
from tests.plugin.study import WORKERS

ARGS = ("--rag-profile=counting", "--rag-mode=live")
ODD = ("Task was destroyed", "Event loop is closed", "never awaited", "Traceback", "Warning")


CASES = 12
SO = json.dumps({"answer": "so"})


@pytest.fixture
def server() -> Iterator[CountingServer]:
    with counting_server(delay=0.02) as running:
        yield running


@pytest.fixture
def counted(suite: Suite, server: CountingServer) -> Suite:
    return let_ask(suite, server, CASES)


@pytest.mark.parametrize(
    ("concurrency", "workers"),
    [(2, 3), *(pytest.param(*each, marks=pytest.mark.long) for each in ((5, 1), (3, 4), (6, 4), (1, 3)))],
)
def test_the_limit_is_that_of_the_whole_run(
    counted: Suite, server: CountingServer, concurrency: int, workers: int
) -> None:
    server.delay = 0.1
    spread = (f"--tx={workers}*popen", "--dist=load") if workers > 1 else ("-n0",)
    result = counted.run(*ARGS, f"--rag-concurrency={concurrency}", *spread)
    result.assert_outcomes(passed=CASES)
    assert server.calls.total() == CASES
    assert 1 <= server.most <= concurrency


def test_exitfirst_starts_no_more_calls_and_keeps_what_came_back(suite: Suite) -> None:
    third = suite.path / "third"

    def reply(body: Any) -> str:
        # The first four arrive in any order, and the third must not wait for its own test.
        if not body["messages"][-1]["content"].endswith(("question 0", "question 1", "question 2")):
            # On a busy machine the third test takes its time. From then on the run has so long to stop.
            until = time.monotonic() + 30
            while not third.exists() and time.monotonic() < until:
                time.sleep(0.02)
            time.sleep(1.5)
        return SO

    with counting_server(delay=0.0, reply=reply) as server:
        counted = let_ask(suite, server, CASES)
        (counted.path / "test_e1.py").write_text(
            "import pytest\nfrom pathlib import Path\n\n@pytest.mark.e1\ndef test_answers(rag_result):\n"
            f"    if rag_result.query_id == 'q2':\n        Path({str(third)!r}).touch()\n"
            "    assert rag_result.query_id != 'q2'\n"
        )
        result = counted.run(*ARGS, "-x", "--rag-concurrency=4")
        asked = server.calls.total()
    result.assert_outcomes(passed=2, failed=1)
    assert asked < CASES
    assert len(counted.rows("e1_baseline")) == asked
    assert not any(odd in result.stderr.str() for odd in ODD)
    assert not list(counted.path.glob("output/journal/*"))


def alone(suite: Suite) -> list[str]:
    """Return the command that starts a run. Without a folder for temporary files it would tidy up those of others."""
    return [sys.executable, "-m", "pytest", f"--basetemp={suite.path / 'temporary'}"]


# A process group of its own, which Ctrl-C reaches as a whole: the workers are in it. And a dot a test that is over.
GROUP = """
import os

if "PYTEST_XDIST_WORKER" not in os.environ:
    os.setpgid(0, 0)

    def pytest_runtest_logfinish(nodeid):
        with open(f"over-{os.getpid()}", "a") as stream:
            stream.write(".")
"""


@pytest.mark.parametrize("workers", [pytest.param("-n0", marks=pytest.mark.long), "-n2"])
def test_ctrl_c_ends_within_seconds_with_pytests_own_exit_status(suite: Suite, workers: str) -> None:
    came, interrupted = count(1), Event()

    def reply(_body: Any) -> str:
        """Answer four questions at once, four after the interrupt, and others a second after they were asked."""
        number = next(came)
        if 4 < number <= 8:
            interrupted.wait(30)
        time.sleep(1 if number > 8 else 0)
        return SO

    with counting_server(delay=0.0, reply=reply) as server:
        counted = let_ask(suite, server, 20)
        counted.pytester.makeconftest(GROUP)
        command = [*alone(counted), *ARGS, "--rag-concurrency=4", *(WORKERS if workers == "-n2" else (workers,))]
        run = subprocess.Popen(command, cwd=counted.path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        before, over = -1, dict[str, int]()
        while server.calls.total() < 8 or before != sum(over.values()):
            before = sum(over.values())
            time.sleep(0.3)
            over = {file.name: file.stat().st_size for file in counted.path.glob("over-*")}
            assert run.poll() is None
        # The tests that were answered are over, and pytest waits for the next answer: an interrupt in the middle of its
        # own hooks makes pytest itself print a traceback, of a capture that is closed already.
        ((leader, _),) = over.items()
        os.killpg(int(leader.partition("-")[2]), signal.SIGINT)
        time.sleep(0.3)
        interrupted.set()
        out = run.communicate(timeout=30)[0].decode()
        assert run.returncode == 2
        assert "KeyboardInterrupt" in out
        assert not any(odd in out for odd in ODD), out
        asked = server.calls.total()
        time.sleep(0.2)
        assert server.calls.total() == asked < 20
    rows = counted.rows("e1_baseline")
    assert len(rows) == len({row["query_id"] for row in rows}) >= 4
    if workers == "-n0":
        assert len(rows) == asked


BROKEN = """
import pytest

class Broken:
    {kind} answer(self, query):
        lamp = "broken on purpose"
        raise LookupError(lamp)

@pytest.fixture(scope="session")
def rag_pipeline():
    return Broken()
"""


def debug(suite: Suite, typed: str) -> str:
    """Run one trial under the debugger, type that, and return what is on the screen."""
    command = [*alone(suite), "--rag-concurrency=1", "--pdb", "-k", "q_direct_001"]
    return subprocess.run(
        command, cwd=suite.path, input=typed, capture_output=True, text=True, timeout=60, check=False
    ).stdout


@pytest.mark.parametrize("kind", ["async def", pytest.param("def", marks=pytest.mark.long)])
def test_a_debugger_lands_in_the_pipeline(suite: Suite, kind: str) -> None:
    suite.pytester.makeconftest(BROKEN.format(kind=kind))
    said = debug(suite, "p lamp\nq\n")
    assert "-> raise LookupError(lamp)" in said
    assert "(Pdb) 'broken on purpose'" in said
    assert [row["status"] for row in suite.rows()] == ["error"]


def test_a_breakpoint_stops_in_the_thread_of_the_test(suite: Suite) -> None:
    stopping = BROKEN.format(kind="def").replace("raise LookupError(lamp)", "breakpoint(); return lamp")
    suite.pytester.makeconftest(stopping)
    said = debug(suite, "p lamp\nc\n")
    assert "(Pdb) 'broken on purpose'" in said
    assert "1 passed" in said


NEIGHBOUR = """
import asyncio
import pytest

@pytest.mark.e1
{mark}
async def test_answers(rag_result):
    await asyncio.sleep(0)
    assert rag_result.ok

{mark}
async def test_of_their_own():
    await asyncio.sleep(0)
"""


def test_beside_anyio(counted: Suite) -> None:
    (counted.path / "conftest.py").write_text(
        "import pytest\n\n@pytest.fixture\ndef anyio_backend():\n    return 'asyncio'\n"
    )
    (counted.path / "test_e1.py").write_text(NEIGHBOUR.format(mark="@pytest.mark.anyio"))
    result = counted.run(*ARGS)
    result.assert_outcomes(passed=CASES + 1)
    assert not any(odd in result.stderr.str() + result.stdout.str() for odd in ODD)


@pytest.mark.parametrize(("mode", "mark"), [("strict", "@pytest.mark.asyncio"), ("auto", "")])
def test_beside_pytest_asyncio(counted: Suite, beside: str, mode: str, mark: str) -> None:
    assert (Path(beside) / "pytest_asyncio").is_dir()
    with (counted.path / "tox.ini").open("a") as ini:
        ini.write(f"\nasyncio_mode = {mode}\nasyncio_default_fixture_loop_scope = function\n")
    (counted.path / "test_e1.py").write_text(NEIGHBOUR.format(mark=mark))
    result = counted.run(*ARGS)
    result.assert_outcomes(passed=CASES + 1)
    assert "asyncio-" in result.stdout.str()
    assert not any(odd in result.stderr.str() + result.stdout.str() for odd in ODD)


def test_a_test_that_is_run_again_gets_its_row_without_a_call(counted: Suite, server: CountingServer) -> None:
    # What pytest-rerunfailures and pytest-repeat do.
    (counted.path / "conftest.py").write_text(
        "from _pytest.runner import runtestprotocol\n\n"
        "def pytest_runtest_protocol(item, nextitem):\n"
        "    runtestprotocol(item, nextitem=nextitem, log=False)\n"
        "    return None\n"
    )
    result = counted.run(*ARGS)
    result.assert_outcomes(passed=CASES)
    assert server.calls.total() == CASES
    assert len(counted.rows("e1_baseline")) == CASES


def test_nobody_pays_for_a_test_that_is_skipped(counted: Suite, server: CountingServer) -> None:
    (counted.path / "test_e1.py").write_text(
        "import pytest\n\n@pytest.mark.skipif(True, reason='not today')\n@pytest.mark.e1\n"
        "def test_no(rag_result):\n    pass\n\n"
        "@pytest.mark.e2\ndef test_yes(rag_result):\n    assert rag_result.ok, rag_result.why\n"
    )
    result = counted.run(*ARGS)
    result.assert_outcomes(passed=CASES, skipped=CASES)
    assert server.calls.total() == CASES


def test_two_pipelines_under_one_name_are_refused(suite: Suite) -> None:
    suite.pytester.makeconftest(
        """
        import pytest

        class Mine:
            def __init__(self, said):
                self.said = said

            async def answer(self, query):
                return self.said

        @pytest.fixture(scope="session", params=["old", "new"])
        def rag_pipeline(request):
            return Mine(request.param)
        """
    )
    result = suite.run()
    assert result.ret != 0
    result.stdout.fnmatch_lines(["*Experiment 'e3' has several pipelines in this run*rag_experiment*"])
    assert suite.rows() == []


def test_a_pipeline_that_blocks_the_loop_does_not_hold_up_the_end(suite: Suite) -> None:
    suite.pytester.makeconftest(
        """
        import asyncio
        import threading
        import time
        import pytest
        from rag_harness.runs import engine

        engine.STOP_WAIT = 0.2
        FAILED, BLOCKED = threading.Event(), threading.Event()

        class Blocks:
            async def answer(self, query):
                if query.text == "return a lamp":
                    raise LookupError
                while not FAILED.is_set():  # Before that, the block would hold up the row of the first.
                    await asyncio.sleep(0.01)
                BLOCKED.set()
                time.sleep(120)

        def pytest_runtest_logreport(report):
            if report.failed:
                FAILED.set()
                assert BLOCKED.wait(30)

        @pytest.fixture(scope="session")
        def rag_pipeline():
            return Blocks()
        """
    )
    started = time.monotonic()
    result = suite.run("-x")
    result.assert_outcomes(failed=1)
    assert time.monotonic() - started < 60


def test_more_workers_than_calls_in_flight_are_refused_where_nobody_sends_them_home(counted: Suite) -> None:
    result = counted.run(*ARGS, "-n3", "--dist=loadfile", "--rag-concurrency=2")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*rag_concurrency is 2, but each of the 3 workers*"])
