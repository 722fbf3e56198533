"""A Ray cluster and its nodes."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from rag_harness.engine.distributed.ledger import RunLedger
from rag_harness.engine.distributed.ray_actors import RayLedger, RayWorker
from rag_harness.engine.distributed.worker import Worker
from rag_harness.errors import PrerequisiteError
from rag_harness.settings import Settings

CONNECT_WAIT = 5.0
"""Seconds that a cluster may take to accept a connection."""


class RayNodes:
    """The nodes of a cluster.

    Args:
        settings: name the cluster, the number of workers, and the GPUs of each.

    Raises:
        PrerequisiteError: there is no cluster at the address, or this version of Ray cannot talk to it.
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
