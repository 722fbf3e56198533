"""A call that is made again where its failure may pass, as patiently as whoever asks wants it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from rag_harness.models.chat.failures import PassingError
from rag_harness.models.patience import patience
from rag_harness.work.deadline import Deadline

T = TypeVar("T")


async def retried(
    once: Callable[[Deadline], Awaitable[T]],
    deadline: Callable[[], Deadline],
    given_up: Callable[[PassingError, str], Exception],
    wait: Callable[[float], Awaitable[object]],
) -> tuple[T, int, float]:
    """Return what ``once`` returns, after how many retries, and the milliseconds waited in line and between tries.

    Args:
        once: makes the call in its time; raises PassingError where a later try may succeed.
        deadline: of one try, each its own.
        given_up: makes what is raised in the end, of the last failure and what is to be said of it.
        wait: sleeps for some seconds.
    """
    waited, asked = 0.0, patience.get()
    for retry in range(asked.retries + 1):
        time = deadline()
        try:
            return await once(time), retry, (waited + time.waited) * 1000
        except PassingError as failure:
            pause = failure.pause(retry)
            if retry == asked.retries or pause > asked.longest:
                raise given_up(failure, failure.explain(retry, pause, asked.longest)) from failure.cause
        waited += time.waited + pause
        await wait(pause)
    raise AssertionError("unreachable")
