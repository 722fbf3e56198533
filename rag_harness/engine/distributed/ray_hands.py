"""Workers of an ingest, as Ray actors on the nodes of a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from rag_harness.engine.distributed.ray_actors import START_WAIT
from rag_harness.engine.distributed.ray_nodes import RayNodes
from rag_harness.errors import PrerequisiteError
from rag_harness.files.log import log
from rag_harness.retrieval.bulk.bulk_messages import IngestOpening, ReadyWorker
from rag_harness.retrieval.bulk.crew import Crew, Hand, LostError
from rag_harness.retrieval.bulk.worker import BulkWorker


class RayHand:
    """A worker on a node. ``gpus`` is its number of the node's GPUs, and may be a fraction."""

    def __init__(self, name: str, node: str, gpus: float) -> None:
        self.name: str = name
        self.node: str = node
        self._has_ended = False
        where = NodeAffinitySchedulingStrategy(node, soft=False)
        options = {"num_cpus": 1, "num_gpus": gpus, "scheduling_strategy": where}
        self._actor: Any = ray.remote(BulkWorker).options(**options).remote()

    def begin(self, opening: IngestOpening) -> None:
        """Start to open it, without waiting."""
        self._opened = self._actor.open.remote(opening)

    def ready(self) -> ReadyWorker:
        """Wait until it is open.

        Raises:
            PrerequisiteError: the node has no room for it, or cannot do what is asked for.
        """
        try:
            ready: ReadyWorker = _got(self._opened, self.name, START_WAIT)
        except GetTimeoutError as error:
            raise PrerequisiteError(
                f"Ray has not started worker {self.name} on node {self.node[:8]} within {START_WAIT:.0f} s: it has no "
                f"CPU or GPU free. See `ray status`; ask for less: --ray-workers, --ray-gpus."
            ) from error
        return ready

    def call(self, method: str, *given: object) -> object:
        """Call a method of the worker and return its result."""
        if self._has_ended:
            # A call after the end would make Ray start a new cluster.
            raise LostError(f"{self.name} has ended")
        return _got(getattr(self._actor, method).remote(*given), self.name)

    def end(self) -> None:
        """End it."""
        self._has_ended = True
        with suppress(RayError):
            ray.kill(self._actor)


class RayHands:
    """All workers of one ingest.

    Args:
        nodes: of the cluster.
        opening: what each worker is told first.
        workers: their number; 0 is one a node.
        gpus: GPUs of each worker.
    """

    def __init__(self, nodes: RayNodes, opening: IngestOpening, workers: int, gpus: float) -> None:
        self._nodes, self._opening, self._gpus = nodes, opening, gpus
        self._numbers = count(1)
        self._hands: list[RayHand] = []
        self._wanted = workers

    def start(self) -> tuple[Crew, ReadyWorker]:
        """Start all, and return them when each is ready.

        Raises:
            PrerequisiteError: a worker cannot start, or would make other vectors than the first one.
        """
        for node in self._nodes.plan(self._wanted or 1 << 20):
            self._begun(node)
        ready = [hand.ready() for hand in self._hands]
        for each in ready[1:]:
            ready[0].check_same(each)
        self._ready = ready[0]
        return Crew(self._hands, self._replacement), ready[0]

    def end(self) -> None:
        """End all."""
        for hand in self._hands:
            hand.end()

    def _begun(self, node: str) -> RayHand:
        hand = RayHand(f"ingest{next(self._numbers)}", node, self._gpus)
        self._hands.append(hand)
        hand.begin(self._opening)
        return hand

    def _replacement(self, lost: Hand) -> RayHand | None:
        """Start a worker on the node of the lost one; on another where that node is gone."""
        assert isinstance(lost, RayHand)
        lost.end()
        for node in sorted(self._nodes.alive(), key=lambda each: each != lost.node):
            hand = self._begun(node)
            try:
                self._ready.check_same(hand.ready())
            except Exception as error:
                log.warning("No worker on node %s: %s", node[:8], error)
                hand.end()
            else:
                return hand
        return None


@contextmanager
def crew_on_ray(
    nodes: RayNodes, opening: IngestOpening, workers: int, gpus: float
) -> Iterator[tuple[Crew, ReadyWorker]]:
    """Yield workers on the nodes of a cluster, and leave the cluster at the end of the block."""
    hands = RayHands(nodes, opening, workers, gpus)
    try:
        yield hands.start()
    finally:
        hands.end()
        nodes.leave()


def _got(sent: Any, name: str, timeout: float | None = None) -> Any:
    try:
        return ray.get(sent, timeout=timeout)
    except RayTaskError as error:
        raise error.cause from error
    except GetTimeoutError:
        raise
    except RayError as error:
        raise LostError(f"{name}: {type(error).__name__}: {error}") from error
