"""The protocol of a worker, as the dispatch calls it, and the errors of its calls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from rag_harness.engine.distributed.run_messages import Carried, Done, Job, Opened, WantedRows
from rag_harness.errors import RagHarnessError


class WorkerLostError(RagHarnessError):
    """The process of a worker, or its node, is gone."""


class UnsentError(RagHarnessError):
    """A value cannot be sent, to any worker."""


class Remote(Protocol):
    """A worker elsewhere. Each call raises ``WorkerLostError`` where it is gone, else the worker's own error."""

    name: str

    async def carry(self, carried: Carried) -> None: ...

    async def take(self, jobs: Sequence[tuple[int, Job]]) -> None: ...

    async def finished(self, jobs: Sequence[tuple[int, Job]]) -> list[Done]: ...

    async def close(self) -> None: ...

    def kill(self) -> None: ...


ReplaceWorker = Callable[[str, WantedRows], Awaitable["tuple[Remote, Opened] | None"]]
"""Starts a worker in place of the dead one of this name, and looks for its rows; None where none can be started."""
