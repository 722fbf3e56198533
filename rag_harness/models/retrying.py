"""Retries of a call after temporary failures, as the caller's ``Patience`` says."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

from rag_harness.errors import ModelCallError
from rag_harness.models.chat.failures import PassingError
from rag_harness.models.patience import patience
from rag_harness.work.deadline import Deadline

_T = TypeVar("_T")


@dataclass
class RetriesNoted:
    """The retries of all calls of a trial so far, and the milliseconds of waiting before them.

    An error that ends a trial in the middle of a call, such as a deadline, does not know them.
    """

    retries: int = 0
    waited_ms: float = 0.0


trial_retries: ContextVar[RetriesNoted] = ContextVar("trial_retries", default=RetriesNoted())  # noqa: B039
"""Of the trial under way. Its tasks share the object; calls outside of trials are noted where nobody looks."""


async def retried(
    once: Callable[[Deadline], Awaitable[_T]],
    deadline: Callable[[], Deadline],
    given_up: Callable[[PassingError, str], Exception],
    wait: Callable[[float], Awaitable[object]],
) -> tuple[_T, int, float]:
    """Return the result of ``once``, the number of retries, and the milliseconds of waiting, between tries included.

    Args:
        once: makes the call within its deadline; raises PassingError where a retry may succeed.
        deadline: makes the deadline of one try.
        given_up: makes the final error from the last failure and a message.
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
                error = given_up(failure, failure.explain(retry, pause, asked.longest))
                if isinstance(error, ModelCallError):
                    error.retries, error.waited_ms = retry, (waited + time.waited) * 1000
                raise error from failure.cause
        waited += time.waited + pause
        await wait(pause)
        noted = trial_retries.get()
        noted.retries, noted.waited_ms = noted.retries + 1, noted.waited_ms + (time.waited + pause) * 1000
    raise AssertionError("unreachable")
