"""Drafts by a chat model of role ``writer``: each is checked, and asked for again with what was wrong with it.

Calls are recorded like all others: in mode ``record``, a run after a killed one finds its paid answers.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import ClassVar, Generic, TypeVar

from rag_harness.core.errors import BudgetError, DeadlineError, ModelCallError, ModelOutputError, RagHarnessError
from rag_harness.core.protocols import ChatModel
from rag_harness.core.types import Message
from rag_harness.models.prompts import REMEMBERED, Fault, ask_until_right

PATIENCE = 4
"""After so many failed calls in a row, no more are made."""
FAILED = (ModelCallError, ModelOutputError, DeadlineError)
_LONGEST = 160
"""The most characters of a reason that is counted."""
_Task = TypeVar("_Task")
_Made = TypeVar("_Made")


@dataclass
class DraftCounts:
    """Why drafts were dropped, and why no more were asked for; empty where they were."""

    dropped: Counter[str] = field(default_factory=Counter, kw_only=True)
    stopped: str = field(default="", kw_only=True)


def not_asked(error: object) -> str:
    """Return the reason for a draft whose call failed."""
    return f"the writer could not be asked: {error}"


def _fault_of_call(_: object, error: RagHarnessError) -> Fault:
    return Fault(not_asked(error)[:_LONGEST])


class ParallelCalls(Generic[_Task, _Made]):
    """Does the same work for many tasks, ``count`` of them at a time, until it is clear that the model does not answer.

    Args:
        count: how many at a time.
        failed: returns what a task has whose call failed.

    Attributes:
        patience: after so many failed calls in a row, no more are made.
        stopped: why some were left out: the budget is spent, or the model cannot be asked.
    """

    def __init__(self, count: int, failed: Callable[[_Task, RagHarnessError], _Made | Fault] = _fault_of_call) -> None:
        self._count, self._failed, self._failing = max(1, count), failed, 0
        self.patience = PATIENCE
        self.stopped: RagHarnessError | None = None

    async def each(
        self, tasks: Sequence[_Task], work: Callable[[_Task], Awaitable[_Made | Fault]]
    ) -> list[_Made | Fault | None]:
        """Return the result for each task, in their order; None for tasks that were not asked about."""
        results: list[_Made | Fault | None] = [None] * len(tasks)
        todo = iter(enumerate(tasks))

        async def worker() -> None:
            for place, task in todo:
                if self.stopped is None:
                    results[place] = await self._done(task, work)

        await asyncio.gather(*(worker() for _ in range(min(self._count, len(tasks)))))
        return results

    async def _done(self, task: _Task, work: Callable[[_Task], Awaitable[_Made | Fault]]) -> _Made | Fault | None:
        try:
            done = await work(task)
        except BudgetError as error:
            self.stopped = error
            return None
        except FAILED as error:
            self._failing += 1
            if self._failing >= self.patience:
                self.stopped = self.stopped or error
            return self._failed(task, error)
        self._failing = 0
        return done


class LlmWriter:
    """Asks a model for drafts.

    Args:
        chat: the model.
        at_once: how many drafts are worked on at one time.
    """

    again: ClassVar[str]
    """What the model is told of a draft with a ``{fault}``."""
    remembered: ClassVar[int] = REMEMBERED
    """The most characters of its last reply that it is shown again."""

    def __init__(self, chat: ChatModel, at_once: int) -> None:
        self._chat, self._at_once = chat, max(1, at_once)

    async def _draft(
        self, messages: Sequence[Message], read: Callable[[str], Awaitable[_Made | Fault]]
    ) -> _Made | Fault:
        """Return a draft that passes ``read``; else the fault of the last attempt."""
        return await ask_until_right(self._chat, messages, read, self.again, self.remembered)

    async def _in_waves(
        self,
        todo: Iterable[_Task],
        wanted: int,
        write: Callable[[_Task], Awaitable[_Made | Fault]],
        keep: Callable[[_Made], str | None],
        counts: DraftCounts,
    ) -> None:
        """Ask until ``wanted`` drafts are accepted, the tasks are used up, or no more calls may be made.

        The same replies give the same drafts in any order of arrival.

        Args:
            todo: the tasks.
            wanted: how many drafts to accept.
            write: does a task: returns what was made, or its last fault.
            keep: accepts a draft, or returns why it is not accepted.
            counts: takes the outcome.
        """
        failing, left = 0, iter(todo)
        while wanted and not counts.stopped and (wave := list(islice(left, min(wanted, self._at_once)))):
            results = await asyncio.gather(*map(write, wave), return_exceptions=True)
            wanted -= sum(_is_kept(result, keep, counts) for result in results)
            failing = failing + len(wave) if all(isinstance(result, FAILED) for result in results) else 0
            if failing >= PATIENCE:
                counts.stopped = counts.stopped or not_asked(results[0])


def _is_kept(result: _Made | Fault | BaseException, keep: Callable[[_Made], str | None], counts: DraftCounts) -> bool:
    """Keep a draft, or count why there is none."""
    if isinstance(result, BudgetError):
        counts.stopped = str(result)
    elif isinstance(result, FAILED):
        counts.dropped[not_asked(result)[:_LONGEST]] += 1
    elif isinstance(result, BaseException):
        raise result
    elif fault := result.text if isinstance(result, Fault) else keep(result):
        counts.dropped[fault] += 1
    else:
        return True
    return False
