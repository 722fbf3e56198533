"""Time limits, on a clock that stops while work waits for a limit of its own run."""

from __future__ import annotations

import asyncio

import pytest

from rag_harness.core.concurrency import Deadline, paused
from rag_harness.core.errors import DeadlineError
from tests.unit.virtual_time import run


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
