"""The workers and the ledger of a run as Ray actors: their calls, and the errors of these calls."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import ray
from ray.exceptions import RayActorError, RayError, RayTaskError

from rag_harness.engine.distributed.homes import ComputedOrWaiting, TextBatch, Waiting, copied
from rag_harness.engine.distributed.ledger import Caps, Grant, MoneyVerdicts
from rag_harness.engine.distributed.remote import UnsentError, WorkerLostError
from rag_harness.engine.distributed.run_messages import Carried, Done, Job, Opened, RunOpening
from rag_harness.errors import PrerequisiteError
from rag_harness.settings.removed import RARE_TABLE

START_WAIT = 120.0
"""Seconds that a worker may take to start: a node has to find room, and to import."""


class RayWorker:
    """A worker on a node."""

    def __init__(self, name: str, node: str, actor: Any, shared: dict[str, asyncio.Future[Any]]) -> None:
        self.name: str = name
        self.node: str = node
        self._actor, self._shared = actor, shared

    async def open(self, opening: RunOpening) -> Opened:
        """Start it.

        Raises:
            PrerequisiteError: the node has no room for it.
        """
        try:
            opened: Opened = await asyncio.wait_for(self._call("open", opening), START_WAIT)
        except WorkerLostError as error:
            raise PrerequisiteError(f"A Ray worker ended while it was starting: {error}") from error
        except asyncio.TimeoutError as error:
            raise PrerequisiteError(
                f"Ray has not started worker {self.name} on node {self.node[:8]} within {START_WAIT:.0f} s: it has no "
                f"CPU or GPU free. See `ray status`; ask for less: ray_workers, ray_gpus in {RARE_TABLE}."
            ) from error
        return opened

    async def handed_over(self, names: Sequence[str]) -> None:
        """Have it delete journals that are here."""
        await self._call("handed_over", names)

    async def carry(self, carried: Carried) -> None:
        """Have it learn an experiment, which is stored once for all workers: it may hold a million queries."""
        if carried.name not in self._shared:
            self._shared[carried.name] = asyncio.ensure_future(asyncio.to_thread(ray.put, carried))
        await self._call("carry", await self._shared[carried.name])

    @property
    def peer(self) -> RayPeer:
        """This worker, as the other workers see it."""
        return RayPeer(self.name, self._actor)

    async def meet(self, peers: Sequence[RayPeer]) -> None:
        """Tell it of all workers."""
        await self._call("meet", peers)

    async def take(self, jobs: Sequence[tuple[int, Job]]) -> None:
        """Have it begin jobs."""
        await self._call("take", jobs)

    async def finished(self, jobs: Sequence[tuple[int, Job]]) -> list[Done]:
        """Have it begin jobs, and wait for results."""
        done: list[Done] = await self._call("finished", jobs)
        return done

    async def close(self) -> None:
        """End it."""
        try:
            await self._call("close")
        except WorkerLostError:
            return
        self.kill()

    def kill(self) -> None:
        """End it at once. Its journal stays where it is."""
        ray.kill(self._actor)

    async def _call(self, method: str, *given: Any) -> Any:
        try:
            return await self._sent(method, *given)
        except RayTaskError as error:
            raise error.cause from error
        except RayActorError as error:
            raise WorkerLostError(f"{self.name}: {error}") from error

    def _sent(self, method: str, *given: Any) -> Any:
        try:
            return getattr(self._actor, method).remote(*given)
        except (RayError, ConnectionError):
            raise
        except Exception as error:  # pickling calls users' own methods, which may raise anything
            raise UnsentError(f"This cannot be sent to a Ray worker: {error}") from error


class RayPeer:
    """A worker, as the others see it."""

    def __init__(self, name: str, actor: Any) -> None:
        self.name: str = name
        self._actor = actor

    async def embed(self, part: TextBatch) -> ComputedOrWaiting:
        """See ``homes.Home.embed``."""
        try:
            said: ComputedOrWaiting = await self._actor.embed.remote(part)
        except RayTaskError as error:
            raise error.cause from error
        except RayActorError as error:
            raise WorkerLostError(f"{self.name}: {error}") from error
        # Ray's arrays lie in memory that a node's processes share, and stay there while anybody holds them.
        return said if isinstance(said, Waiting) else copied(said)


class RayLedger:
    """The ledger of a run as an actor. Where it dies, Ray starts it again, and it reads its earlier grants."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor

    async def calls(self, server: str, caps: Caps, waiting: Mapping[str, float], used: Mapping[str, float]) -> Grant:
        """See ``ledger.Ledger.calls``."""
        grant: Grant = await self._actor.calls.remote(server, caps, waiting, used)
        return grant

    async def money(self, asked: Mapping[str, float], settled: Mapping[str, float]) -> MoneyVerdicts:
        """See ``ledger.Ledger.money``."""
        verdicts: MoneyVerdicts = await self._actor.money.remote(asked, settled)
        return verdicts

    def end(self) -> None:
        """End it. Call this when all calls are settled."""
        ray.kill(self._actor)
