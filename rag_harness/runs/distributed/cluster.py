"""A Ray cluster, its nodes, and the workers and the ledger of a run as Ray actors."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayActorError, RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from rag_harness.core.errors import PrerequisiteError
from rag_harness.core.settings import Settings
from rag_harness.core.settings.removed import RARE_TABLE
from rag_harness.runs.distributed.ledger import Caps, Grant, MoneyVerdicts, RunLedger
from rag_harness.runs.distributed.messages import Carried, Done, Job, Opened, RunOpening, UnsentError, WorkerLostError
from rag_harness.runs.distributed.worker import ComputedOrWaiting, TextBatch, Waiting, Worker, copied

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
        """See ``worker.Home.embed``."""
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


CONNECT_WAIT = 5.0
"""Seconds that a cluster may take to accept a connection."""


class RayNodes:
    """The nodes of a cluster.

    Args:
        settings: name the cluster, the number of workers, and the GPUs of each.

    Raises:
        PrerequisiteError: no cluster answers at the address, or this version of Ray cannot connect to it.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._shared: dict[str, asyncio.Future[Any]] = {}
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        self._connect(settings.ray_address)

    def _connect(self, address: str) -> None:
        _check_reachable(address)
        try:
            ray.init(
                address=address or "local",
                log_to_driver=False,
                configure_logging=False,
                namespace="rag_harness",
                # A cluster that is started here is for this machine alone.
                **({} if address else {"include_dashboard": False, "_node_ip_address": "127.0.0.1"}),
            )
        except (ConnectionError, ValueError) as error:
            raise PrerequisiteError(_none_there(address or "this machine", error)) from error
        except (RuntimeError, RayError) as error:
            raise PrerequisiteError(f"--rag-engine=ray: the cluster at {address} cannot be used: {error}") from error

    def plan(self, concurrency: int) -> list[str]:
        """Return the node of each worker, round robin. There are no more workers than trials in flight."""
        nodes = self.alive()
        if not nodes:
            raise PrerequisiteError("The Ray cluster has no node with a CPU. Add one: `ray start --address=…`")
        wanted = min(self._settings.ray_workers or len(nodes), concurrency)
        return [nodes[number % len(nodes)] for number in range(wanted)]

    def alive(self) -> list[str]:
        """Return the ids of the nodes that have a CPU."""
        return sorted(each["NodeID"] for each in ray.nodes() if each["Alive"] and each["Resources"].get("CPU"))

    def worker(self, name: str, node: str) -> RayWorker:
        """Return a worker that is starting on a node."""
        kind = ray.remote(Worker)
        options: dict[str, Any] = {
            "num_cpus": 1,
            "num_gpus": self._settings.ray_gpus,
            "scheduling_strategy": NodeAffinitySchedulingStrategy(node, soft=False),
        }
        return RayWorker(name, node, kind.options(**options).remote(), self._shared)

    def ledger(self, file: Path) -> RayLedger:
        """Return the ledger of a run, on this machine: its file is on this disk."""
        options: dict[str, Any] = {
            "num_cpus": 0,
            "max_restarts": -1,
            "max_task_retries": -1,
            "scheduling_strategy": NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False),
        }
        return RayLedger(ray.remote(RunLedger).options(**options).remote(file, self._settings.budget))

    def leave(self) -> None:
        """Disconnect from the cluster. A cluster that was started here ends."""
        ray.shutdown()


def _check_reachable(address: str) -> None:
    """Refuse an address where nothing listens. Ray itself tries for minutes, and then ends the process."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not port.isdecimal():
        return  # "auto" and the like: Ray finds the cluster on this machine
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_WAIT).close()
    except OSError as error:
        raise PrerequisiteError(_none_there(address, error)) from error


def _none_there(address: str, error: Exception) -> str:
    return (
        f"--rag-engine=ray: no Ray cluster at {address}: {error}. Start one (`ray start --head`), name it with "
        f"--rag-ray-address, or leave that out for one on this machine. A cluster that wants a token (`ray start` says "
        f"so) refuses who has none in just the same way: set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN or "
        f"~/.ray/auth_token to the token of its head."
    )
