"""The worker process: its results, its death, the bound of its starts, its end."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from operator import truediv

import pytest

from rag_harness.core import processes
from rag_harness.core.errors import RagHarnessError
from rag_harness.core.processes import WorkerProcess, worker, worker_beside
from rag_harness.pipelines.trace import Trace


@pytest.fixture
def made() -> Iterator[WorkerProcess]:
    process = WorkerProcess()
    yield process
    process.close()


def test_work_is_done_in_another_process_and_its_errors_come_back(made: WorkerProcess) -> None:
    async def ask() -> int:
        with pytest.raises(ZeroDivisionError):
            await made.run(truediv, 1, 0)
        return (await made.run(os.getpid))[0]

    assert asyncio.run(ask()) != os.getpid()
    assert made.started == 1


def test_a_process_that_dies_fails_its_work_and_is_started_again_a_few_times(
    made: WorkerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "MOST_STARTS", 2)

    async def ask() -> None:
        with pytest.raises(RagHarnessError, match="died while it worked"):
            await made.run(os._exit, 3)
        assert not made.is_given_up
        pid, _ = await made.run(os.getpid)
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(RagHarnessError):
            await made.run(time.sleep, 30)

    asyncio.run(ask())
    assert (made.started, made.is_given_up) == (2, True)


def test_one_core_has_no_worker_and_a_stage_runs_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "usable_processors", lambda: 1)
    with worker_beside():
        assert worker() is None
        assert asyncio.run(Trace().beside("contradict", os.getpid)) == os.getpid()


def test_a_stage_runs_there_and_a_dead_worker_leaves_its_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "usable_processors", lambda: 2)

    async def ask(trace: Trace) -> None:
        assert await trace.beside("contradict", os.getpid) != os.getpid()
        assert trace.milliseconds["contradict"] > 0
        with pytest.raises(RagHarnessError) as raised:
            await trace.beside("contradict", os._exit, 3)
        assert vars(raised.value)["rag_trace"] is trace
        assert trace.failed_stage == "contradict"

    with worker_beside():
        asyncio.run(ask(Trace()))
    assert worker() is None
