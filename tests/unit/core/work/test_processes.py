"""Work with limits: checks of long answers in processes, deadlines, and values that are made once."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from operator import truediv
from pathlib import Path
from time import sleep

import pytest

from rag_harness.core import processes
from rag_harness.core.concurrency import Deadline, Lazy, in_a_thread, paused
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
from tests.unit.virtual_time import run

# Checks of long answers: they are ended in time, and each has a result or a reason.

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


# Time limits, on a clock that stops while work waits for a limit of its own run.


def clocked(seconds: float) -> Deadline:
    return Deadline(seconds, clock=asyncio.get_running_loop().time)


async def sleeping(seconds: float, result: str = "done") -> str:
    await asyncio.sleep(seconds)
    return result


def test_in_time() -> None:
    async def work() -> str:
        return await clocked(10).bound(sleeping(9))

    assert run(work()) == "done"


def test_too_late() -> None:
    async def work() -> float:
        with pytest.raises(DeadlineError, match="no answer within 10 s"):
            await clocked(10).bound(sleeping(1000))
        return asyncio.get_running_loop().time()

    assert run(work()) == pytest.approx(10)


def test_pauses_do_not_count_and_are_summed() -> None:
    async def waiting() -> None:
        for _ in range(3):
            with paused(), paused():
                await asyncio.sleep(100)
            await asyncio.sleep(3)

    async def work() -> tuple[float, float]:
        outer, inner = clocked(10), None

        async def nested() -> float:
            nonlocal inner
            inner = clocked(9.5)
            await inner.bound(waiting())
            return inner.waited

        return await outer.bound(nested()), outer.waited

    waited = run(work())
    assert waited[0] == pytest.approx(300)
    assert waited[1] == pytest.approx(300)


def test_a_deadline_can_end_after_a_pause() -> None:
    async def waiting() -> None:
        with paused():
            await asyncio.sleep(100)
        await asyncio.sleep(100)

    async def work() -> float:
        with pytest.raises(DeadlineError):
            await clocked(10).bound(waiting())
        return asyncio.get_running_loop().time()

    assert run(work()) == pytest.approx(110, abs=0.1)


def test_what_the_work_raises_gets_out() -> None:
    async def failing() -> None:
        raise ValueError("mine")

    async def work() -> None:
        await clocked(10).bound(failing())

    with pytest.raises(ValueError, match="mine"):
        run(work())


def test_work_that_will_not_be_cancelled_is_left_behind() -> None:
    async def stubborn() -> None:
        for _ in range(3):
            try:
                await asyncio.sleep(100)
            except asyncio.CancelledError:
                continue

    async def work() -> float:
        with pytest.raises(DeadlineError):
            await clocked(10).bound(stubborn())
        return asyncio.get_running_loop().time()

    assert run(work()) < 12


def test_work_that_answers_cancellation_with_an_error_of_its_own() -> None:
    async def translating() -> None:
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            raise ValueError("interrupted") from None

    async def work() -> None:
        await clocked(10).bound(translating())

    with pytest.raises(DeadlineError) as caught:
        run(work())
    assert isinstance(caught.value.__cause__, ValueError)


def test_cancelled_from_outside_cancels_the_work() -> None:
    async def work() -> list[str]:
        said = []

        async def telling() -> None:
            try:
                await asyncio.sleep(100)
            except asyncio.CancelledError:
                said.append("cancelled")
                raise

        task = asyncio.ensure_future(clocked(1000).bound(telling()))
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return said

    assert run(work()) == ["cancelled"]


def test_outside_of_a_deadline_a_pause_is_nothing() -> None:
    with paused():
        pass


def test_a_result_waits_for_one_turn_of_the_loop() -> None:
    """Each turn of a busy loop stands between an answer and the disk."""

    async def work() -> int:
        turns, ended_at = 0, 0

        def turn() -> None:
            nonlocal turns
            turns += 1
            asyncio.get_running_loop().call_soon(turn)

        async def ending() -> None:
            nonlocal ended_at
            await asyncio.sleep(0)
            ended_at = turns

        turn()
        await Deadline(10).bound(ending())
        return turns - ended_at

    assert asyncio.run(asyncio.wait_for(work(), 20)) == 1


def test_work_that_is_cancelled_before_it_begins_is_not_waited_for() -> None:
    async def work() -> float:
        bounding = asyncio.ensure_future(clocked(10).bound(sleeping(1)))
        mine = {bounding, asyncio.current_task()}
        asyncio.get_running_loop().call_soon(lambda: [task.cancel() for task in asyncio.all_tasks() - mine])
        with pytest.raises(asyncio.CancelledError):
            await bounding
        return asyncio.get_running_loop().time()

    assert run(work()) < 1


# A value is made once, also when several threads ask at the same time.


def test_it_is_made_when_it_is_first_asked_for_and_never_again() -> None:
    made: list[int] = []

    def make() -> int:
        made.append(1)
        return len(made)

    value = Lazy(make)
    before = value.made
    assert (before, value.get(), value.get(), value.made) == (None, 1, 1, 1)


def test_none_is_a_value_too() -> None:
    made: list[int] = []
    value = Lazy(lambda: made.append(1))
    assert (value.get(), value.get()) == (None, None)
    assert made == [1]


def test_threads_that_ask_at_once_get_the_same() -> None:
    def slow() -> object:
        sleep(0.02)
        return object()

    value = Lazy(slow)
    with ThreadPoolExecutor(8) as threads:
        assert len({id(found.result()) for found in [threads.submit(value.get) for _ in range(8)]}) == 1


def test_what_could_not_be_made_is_tried_again() -> None:
    tries: list[int] = []

    def second_time() -> str:
        tries.append(1)
        if len(tries) == 1:
            raise ValueError("not yet")
        return "made"

    value = Lazy(second_time)
    with pytest.raises(ValueError, match="not yet"):
        value.get()
    assert value.made is None
    assert value.get() == "made"
