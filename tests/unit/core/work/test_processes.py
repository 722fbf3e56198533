"""Checks of long answers: they are ended in time, and each has a result or a reason."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from operator import truediv
from pathlib import Path

import pytest

from rag_harness.core import processes
from rag_harness.core.concurrency import Deadline, in_a_thread
from rag_harness.core.errors import DeadlineError, RagHarnessError
from rag_harness.core.processes import (
    CheckProcess,
    Unchecked,
    WorkerProcess,
    checked,
    checks_within,
    is_long,
    worker,
    worker_beside,
)
from rag_harness.pipelines.trace import Trace

# Checks of long answers: they are ended in time, and each has a result or a reason.

TEXT = "one two two"
PLACE = "__import__('os').getpid()"
FOREVER = "7 ** 10 ** 10"
"""One step of the interpreter that takes hours: no thread beside it gets a turn."""
DEAF = f"(__import__('signal').signal(2, __import__('signal').SIG_IGN), {FOREVER})"
"""The same, by code that no signal interrupts."""


def counted(word: str) -> str:
    return f"text.count({word!r})"


def asked(process: CheckProcess, *items: str, text: str = TEXT) -> list[object]:
    """Check by the one function of the standard library that can do anything."""
    return list(process.checked(eval, items, {"text": text}, text))


@pytest.fixture
def process() -> Iterator[CheckProcess]:
    made = CheckProcess(0.5)
    yield made
    made.close()


def test_each_item_has_its_result_from_one_process_that_lives_on(process: CheckProcess) -> None:
    assert asked(process, counted("one"), counted("two")) == [1, 2]
    first, second = asked(process, PLACE), asked(process, PLACE)
    assert first == second != [os.getpid()]
    assert process.started == 1


def test_what_takes_too_long_has_a_reason_and_the_next_check_a_new_process(process: CheckProcess) -> None:
    late = Unchecked("not checked within 0.5 s. Allow more: --rag-deadline")
    assert asked(process, counted("one"), DEAF, counted("two")) == [1, late, late]
    assert asked(process, DEAF) == [late]
    assert process.started == 1, "it is not tried again on the same answer"
    assert asked(process, counted("one"), text="another answer of one") == [1]
    assert process.started == 2


@pytest.mark.skipif(os.name == "nt", reason="no such signal")
def test_a_check_that_can_be_interrupted_leaves_the_process_and_what_it_has_loaded(process: CheckProcess) -> None:
    late = Unchecked("not checked within 0.5 s. Allow more: --rag-deadline")
    before = asked(process, PLACE)
    assert asked(process, FOREVER, counted("one")) == [late, late]
    assert asked(process, PLACE) == before
    assert process.started == 1


def test_an_error_of_a_check_is_raised_and_the_process_goes_on(process: CheckProcess) -> None:
    with pytest.raises(KeyError, match="what"):
        asked(process, "{}['what']")
    assert asked(process, counted("one")) == [1]
    assert process.started == 1


def test_a_process_that_dies_leaves_a_reason(process: CheckProcess) -> None:
    assert asked(process, "__import__('os')._exit(3)") == [Unchecked("the process that checked it has ended")]
    assert asked(process, counted("one")) == [1]


def test_what_cannot_travel_is_checked_here(process: CheckProcess) -> None:
    assert process.checked(eval, [PLACE], {"lock": threading.Lock()}, TEXT) == [os.getpid()]
    assert process.started == 0


def test_a_check_that_is_interrupted_leaves_no_answer_to_the_next(
    process: CheckProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert asked(process, counted("one")) == [1]
    with monkeypatch.context() as patched:
        patched.setattr("rag_harness.core.processes.monotonic", _interrupt)
        with pytest.raises(KeyboardInterrupt):
            asked(process, counted("one"), text="interrupted")
    assert asked(process, counted("two")) == [2]


def _interrupt() -> float:
    raise KeyboardInterrupt


def test_many_threads_share_the_process() -> None:
    found: list[object] = []
    with checks_within(20):

        def check(number: int) -> None:
            found.append(checked(eval, [counted("a")], {"text": "a" * number}, str(number)) == [number])

        threads = [threading.Thread(target=check, args=(number,)) for number in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert found == [True] * 8


class Slow:
    """Takes a while to arrive in the process."""

    def __reduce__(self) -> tuple[object, ...]:
        return time.sleep, (1.0,)


def bound_by(seconds: float, process: CheckProcess, item: str, *others: str, of: object = None) -> list[object]:
    """Check under a deadline."""
    work = in_a_thread(lambda: process.checked(eval, [item, *others], {"text": TEXT, "of": of}, TEXT))
    return list(asyncio.run(Deadline(seconds).bound(work)))


def test_a_check_ends_with_the_deadline_in_force() -> None:
    process = CheckProcess(600)
    late = Unchecked("not checked within 600 s. Allow more: --rag-deadline")
    assert bound_by(2, process, counted("one"), FOREVER) == [1, late], "before the deadline itself ends the work"
    assert process.started == 1
    process.close()


def test_a_deadline_does_not_run_while_the_process_starts(process: CheckProcess) -> None:
    assert bound_by(0.5, process, counted("one"), of=Slow()) == [1]


def test_no_process_is_started_where_the_time_is_over(process: CheckProcess) -> None:
    with pytest.raises(DeadlineError):
        bound_by(0.0, process, counted("one"))
    assert asked(process, counted("one")) == [1], "what was never begun may be tried again"
    assert process.started == 1


def test_the_end_of_a_run_does_not_wait_for_a_check() -> None:
    process, found = CheckProcess(600), list[object]()
    assert asked(process, counted("one")) == [1]
    thread = threading.Thread(target=lambda: found.extend(asked(process, FOREVER, text="another")))
    thread.start()
    while not process._lock.locked():
        time.sleep(0.001)
    process.close()
    thread.join()
    assert found == [Unchecked("the process that checked it has ended")]
    assert asked(process, counted("two")) == [Unchecked("the run has ended")]


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no such signal")
def test_the_process_ends_with_its_parent_whatever_it_checks() -> None:
    script = (
        "from rag_harness.core.processes import CheckProcess; p = CheckProcess(600);"
        f'print(p.checked(eval, ["{PLACE}"], {{}}, "")[0], flush=True);'
        "p.checked(eval, [\"__import__('time').sleep(600)\"], {}, '')"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    parent.stdout.close()
    until = time.monotonic() + 20
    while time.monotonic() < until:
        try:
            os.kill(child, 0)
        except ProcessLookupError:
            return
        if _is_dead(child):
            return
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    pytest.fail("it outlived its parent")


def _is_dead(process: int) -> bool:
    """Whether nobody has asked yet how it ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return False


def test_an_answer_is_long_from_a_length_on() -> None:
    assert not is_long("a" * 20_000)
    assert is_long("a" * 20_001)


def test_a_short_answer_is_long_with_the_texts_that_it_is_compared_with() -> None:
    assert not is_long("a", ["b" * 50_000, "c" * 50_000])
    assert is_long("a", ["b" * 50_000, "c" * 50_001])


# The worker process: its results, its death, the bound of its starts, its end.


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
