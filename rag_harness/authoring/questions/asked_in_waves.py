"""Asks a model for things in waves, so that the order of its replies does not matter."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from itertools import islice
from typing import Protocol, TypeVar

from rag_harness.errors import BudgetError, DeadlineError, ModelCallError, ModelOutputError
from rag_harness.models.until_right import Fault

PATIENCE = 4
"""After so many failed calls in a row no more are made."""
_FAILED = (ModelCallError, ModelOutputError, DeadlineError)
_Task = TypeVar("_Task")
_Made = TypeVar("_Made")


class Counts(Protocol):
    """What came of it: why things were dropped, and why no more were asked for."""

    dropped: Counter[str]
    stopped: str


async def asked_in_waves(
    todo: Iterator[_Task],
    wanted: int,
    at_once: int,
    write: Callable[[_Task], Awaitable[_Made | Fault]],
    keep: Callable[[_Made], str | None],
    counts: Counts,
) -> None:
    """Ask until ``wanted`` things are kept, the tasks are used up, or no call is to be made any more.

    The same replies give the same things, whichever comes first.

    Args:
        todo: the tasks.
        wanted: how many things to keep.
        at_once: how many tasks are worked on at one time.
        write: does a task: returns what was made, or its last fault.
        keep: keeps a thing, or returns why it is not kept.
        counts: takes what came of it.
    """
    failing = 0
    while wanted and not counts.stopped:
        wave = list(islice(todo, min(wanted, at_once)))
        if not wave:
            return
        results = await asyncio.gather(*map(write, wave), return_exceptions=True)
        for result in results:
            wanted -= _kept(result, keep, counts)
        failing = failing + len(wave) if all(isinstance(result, _FAILED) for result in results) else 0
        if failing >= PATIENCE:
            counts.stopped = counts.stopped or f"the writer could not be asked: {results[0]}"


def _kept(result: _Made | Fault | BaseException, keep: Callable[[_Made], str | None], counts: Counts) -> int:
    """Keep a thing, or count why there is none; return how many were kept."""
    if isinstance(result, BudgetError):
        counts.stopped = str(result)
    elif isinstance(result, _FAILED):
        counts.dropped[f"the writer could not be asked: {result}"[:160]] += 1
    elif isinstance(result, BaseException):
        raise result
    elif fault := result.text if isinstance(result, Fault) else keep(result):
        counts.dropped[fault] += 1
    else:
        return 1
    return 0
