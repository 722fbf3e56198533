"""What the dispatch asks of a worker, wherever that is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from rag_harness.engine.distributed.values import Carried, Done, Job, Opened, Wanted
from rag_harness.errors import RagHarnessError


class WorkerLostError(RagHarnessError):
    """The process of a worker, or its node, is gone."""


class UnsentError(RagHarnessError):
    """What was to be sent cannot be, whoever it is sent to."""


class Remote(Protocol):
    """A worker elsewhere. Each call raises ``WorkerLostError`` where it is gone; else what the worker raised."""

    name: str

    async def carry(self, carried: Carried) -> None: ...

    async def take(self, jobs: Sequence[tuple[int, Job]]) -> None: ...

    async def finished(self, jobs: Sequence[tuple[int, Job]]) -> list[Done]: ...

    async def close(self) -> None: ...

    def kill(self) -> None: ...


Replace = Callable[[str, Wanted], Awaitable["tuple[Remote, Opened] | None"]]
"""Starts a worker for one that died, by its name, and looks for rows of its trials; None where none can be started."""
