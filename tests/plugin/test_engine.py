"""The engine as a user meets it: limits of the whole run, stopping, debugging, neighbours with loops of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.plugin.conftest import Suite, files_below
from tests.plugin.counting_server import CountingServer, counting_server, let_ask

ARGS = ("--rag-profile=counting", "--rag-mode=live")
ODD = ("Task was destroyed", "Event loop is closed", "never awaited", "Traceback", "Warning")


@pytest.fixture
def server() -> Iterator[CountingServer]:
    with counting_server(delay=0.2) as running:
        yield running


@pytest.fixture
def counted(suite: Suite, server: CountingServer) -> Suite:
    return let_ask(suite, server, 20)


@pytest.mark.parametrize(
    ("concurrency", "workers"),
    [(6, 1), (3, 4), pytest.param(6, 4, marks=pytest.mark.long), pytest.param(1, 3, marks=pytest.mark.long)],
)
def test_the_limit_is_that_of_the_whole_run(
    counted: Suite, server: CountingServer, concurrency: int, workers: int
) -> None:
    result = counted.run(*ARGS, f"--rag-concurrency={concurrency}", f"-n{workers}" if workers > 1 else "-n0")
    result.assert_outcomes(passed=20)
    assert server.calls.total() == 20
    assert 1 <= server.most <= concurrency


def test_exitfirst_starts_no_more_calls_and_keeps_what_came_back(counted: Suite, server: CountingServer) -> None:
    (counted.path / "test_e1.py").write_text(
        "import pytest\n\n@pytest.mark.e1\ndef test_answers(rag_result):\n    assert rag_result.query_id != 'q2'\n"
    )
    result = counted.run(*ARGS, "-x", "--rag-concurrency=4")
    result.assert_outcomes(passed=2, failed=1)
    asked = server.calls.total()
    assert asked < 20
    assert len(counted.rows("e1_baseline")) == asked
    assert not any(odd in result.stderr.str() for odd in ODD)
    assert not list(counted.path.glob("output/journal/*"))


@pytest.mark.usefixtures("cold_python")
@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_ctrl_c_ends_within_seconds_with_pytests_own_exit_status(
    counted: Suite, server: CountingServer, workers: str
) -> None:
    server.delay = 1.0
    command = [sys.executable, "-m", "pytest", *ARGS, "--rag-concurrency=4", workers]
    run = subprocess.Popen(
        command, cwd=counted.path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    )
    while server.calls.total() < 8:
        time.sleep(0.02)
        assert run.poll() is None
    # The tests that were answered are over by then, and pytest waits for the next answer: an interrupt in the middle of
    # its own hooks makes pytest itself print a traceback, of a capture that is closed already.
    time.sleep(0.5)
    os.killpg(run.pid, signal.SIGINT)
    out = run.communicate(timeout=30)[0].decode()
    assert run.returncode == 2
    assert "KeyboardInterrupt" in out
    assert not any(odd in out for odd in ODD), out
    asked = server.calls.total()
    time.sleep(0.3)
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
    command = [sys.executable, "-m", "pytest", "--rag-concurrency=1", "--pdb", "-k", "q_direct_001"]
    return subprocess.run(
        command, cwd=suite.path, input=typed, capture_output=True, text=True, timeout=60, check=False
    ).stdout


@pytest.mark.parametrize("kind", ["async def", "def"])
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
    result.assert_outcomes(passed=21)
    assert not any(odd in result.stderr.str() + result.stdout.str() for odd in ODD)


def test_beside_pytest_asyncio(counted: Suite, beside: str) -> None:
    assert (Path(beside) / "pytest_asyncio").is_dir()
    with (counted.path / "tox.ini").open("a") as ini:
        ini.write("\nasyncio_default_fixture_loop_scope = function\n")
    (counted.path / "test_e1.py").write_text(NEIGHBOUR.format(mark="@pytest.mark.asyncio"))
    result = counted.run(*ARGS)
    result.assert_outcomes(passed=21)
    assert "asyncio-" in result.stdout.str()
    assert not any(odd in result.stderr.str() + result.stdout.str() for odd in ODD)


def test_nothing_is_written_in_a_suite_without_trials(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_plain="def test_plain():\n    pass\n")
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=1)
    written = {file.partition("/")[0] for file in files_below(pytester.path)}
    assert written.isdisjoint({"output", "logs", ".rag_cache", "journal", "cassettes"})


def test_a_test_that_is_run_again_gets_its_row_without_a_call(counted: Suite, server: CountingServer) -> None:
    # What pytest-rerunfailures and pytest-repeat do.
    (counted.path / "conftest.py").write_text(
        "from _pytest.runner import runtestprotocol\n\n"
        "def pytest_runtest_protocol(item, nextitem):\n"
        "    runtestprotocol(item, nextitem=nextitem, log=False)\n"
        "    return None\n"
    )
    result = counted.run(*ARGS)
    result.assert_outcomes(passed=20)
    assert server.calls.total() == 20
    assert len(counted.rows("e1_baseline")) == 20


def test_nobody_pays_for_a_test_that_is_skipped(counted: Suite, server: CountingServer) -> None:
    (counted.path / "test_e1.py").write_text(
        "import pytest\n\n@pytest.mark.skipif(True, reason='not today')\n@pytest.mark.e1\n"
        "def test_no(rag_result):\n    pass\n\n"
        "@pytest.mark.e2\ndef test_yes(rag_result):\n    assert rag_result.ok, rag_result.why\n"
    )
    result = counted.run(*ARGS)
    result.assert_outcomes(passed=20, skipped=20)
    assert server.calls.total() == 20


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
        import time
        import pytest
        from rag_harness.engine import loop

        loop.STOP_WAIT = 1

        class Blocks:
            async def answer(self, query):
                if query.text != "return a lamp":
                    await asyncio.sleep(0.3)
                    time.sleep(120)
                raise LookupError

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
