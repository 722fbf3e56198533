"""Simulated nodes that answer on a virtual clock, and die, for `scheduler_simulation.py`.

Dispatch, ledger and leases are those of `rag_harness.runs.distributed`. Only Ray and the servers are simulated, by
the figures in ``Model``.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import exp

from rag_harness.core.settings import Settings
from rag_harness.core.types import Answer, PipelineOutput
from rag_harness.runs.distributed.ledger import Caps, Grant, LeasedMeter, MoneyVerdicts, RunLedger, share_in_flight
from rag_harness.runs.distributed.messages import (
    AnsweredTrial,
    Carried,
    Done,
    Job,
    Opened,
    TrialJob,
    WantedRows,
    WorkerLostError,
)
from rag_harness.runs.trial import TrialOutcome, make_row

SERVER = "http://server"
RESERVED, COST = 0.01, 0.004
"""USD that a call may cost, and costs."""


@dataclass(frozen=True)
class Model:
    """What is assumed, in seconds. The processor's were measured: docs/dev/results/cluster-simulation.md says how."""

    median: float = 2.0
    sigma: float = 0.6
    stragglers: float = 0.01
    straggler_factor: float = 10.0
    call: float = 0.0009
    call_processor: float = 0.0007
    job_processor: float = 0.000006
    trial_processor: float = 0.002
    journal: float = 0.005
    loss_every: float = 60.0
    loss_noticed: float = 20.0
    node_again: float = 30.0

    @property
    def mean(self) -> float:
        """Seconds that a call takes on average."""
        plain = self.median * exp(self.sigma**2 / 2)
        return plain * (1 + self.stragglers * (self.straggler_factor - 1))

    def latency(self, chance: random.Random) -> float:
        """Return the seconds of one call."""
        factor = self.straggler_factor if chance.random() < self.stragglers else 1.0
        return factor * self.median * chance.lognormvariate(0, self.sigma)


class Processor:
    """One core: whoever wants it waits for those before."""

    def __init__(self) -> None:
        self.busy = self._free = 0.0

    async def use(self, seconds: float) -> None:
        """Return when the core has worked for ``seconds``."""
        now = asyncio.get_running_loop().time()
        self._free = max(now, self._free) + seconds
        self.busy += seconds
        await asyncio.sleep(self._free - now)


class LedgerActor:
    """The real ledger behind an actor that takes one call after another."""

    def __init__(self, ledger: RunLedger, model: Model) -> None:
        self.core, self._ledger, self._model = Processor(), ledger, model

    async def calls(self, server: str, caps: Caps, waiting: Mapping[str, float], used: Mapping[str, float]) -> Grant:
        """Grant turns."""
        await self.core.use(self._model.call + self._model.job_processor * len(waiting))
        return self._ledger.calls(server, caps, waiting, used)

    async def money(self, asked: Mapping[str, float], settled: Mapping[str, float]) -> MoneyVerdicts:
        """Grant money."""
        await self.core.use(self._model.call + self._model.job_processor * (len(asked) + len(settled)))
        return self._ledger.money(asked, settled)


@dataclass
class Seen:
    """What the server saw."""

    calls: int = 0
    in_flight: int = 0
    most: int = 0
    busiest: int = 0
    _minute: deque[float] = field(default_factory=deque)

    def begin(self, now: float) -> None:
        """Count a call."""
        self.calls, self.in_flight = self.calls + 1, self.in_flight + 1
        self.most = max(self.most, self.in_flight)
        self._minute.append(now)
        while self._minute[0] <= now - 60:
            self._minute.popleft()
        self.busiest = max(self.busiest, len(self._minute))


class Field:
    """Nodes of one cluster, the controller's core, the ledger, the server."""

    def __init__(self, model: Model, settings: Settings, nodes: int, ledger: RunLedger, seed: int) -> None:
        self.model, self.settings, self.count = model, settings, nodes
        self.ledger, self.controller = LedgerActor(ledger, model), Processor()
        self.chance, self.seen = random.Random(seed), Seen()
        self.nodes: list[Node] = []
        self.started = self.lost = 0

    def start(self) -> Node:
        """Return a new node."""
        self.started += 1
        self.nodes.append(Node(self, f"run-ray{self.started}"))
        return self.nodes[-1]

    async def replace(self, lost: str, wanted: WantedRows) -> tuple[Node, Opened]:
        """Return a node for one that was lost, and what is in the journal of that one."""
        await asyncio.sleep(self.model.node_again)
        dead = next(node for node in self.nodes if node.name == lost)
        self.nodes.remove(dead)
        return self.start(), Opened(dead.kept_lines(wanted))

    async def lose(self) -> None:
        """Lose a node now and then, as long as this is not cancelled."""
        while True:
            await asyncio.sleep(self.model.loss_every)
            self.lost += 1
            self.chance.choice([node for node in self.nodes if not node.is_dead]).die()


class Node:
    """A worker. What it has kept, the next one can read."""

    def __init__(self, field: Field, name: str) -> None:
        self.name, self.is_dead, self._field, self._model = name, False, field, field.model
        share = share_in_flight(field.settings, field.count)
        self._meter = LeasedMeter(share, lambda: field.ledger, name)
        self._done: list[Done] = []
        self._kept: dict[int, TrialJob] = {}
        self._has_done, self._noticed = asyncio.Event(), asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    def die(self) -> None:
        """Be gone; the controller learns of it later."""
        self.is_dead = True
        for task in self._tasks:
            task.cancel()
        self._has_done.set()
        asyncio.get_running_loop().call_later(self._model.loss_noticed, self._noticed.set)

    kill = die

    def kept_lines(self, wanted: WantedRows) -> list[bytes]:
        """Return the rows that were kept and that the controller has not been told of."""
        output, settings = PipelineOutput(Answer("yes")), self._field.settings
        kept = [job for job in self._kept.values() if (job.trial.id, job.fingerprint) in wanted]
        rows = (make_row(job.trial, output, None, 1.0, settings, job.fingerprint) for job in kept)
        return [row.line().encode() for row in rows]

    async def _there_or_gone(self) -> None:
        if self.is_dead:
            await self._noticed.wait()
            raise WorkerLostError(self.name)

    async def carry(self, carried: Carried) -> None:  # noqa: ARG002 - nothing is built
        """Learn an experiment."""
        await self._call(1)

    async def take(self, jobs: Sequence[tuple[int, Job]]) -> None:
        """Begin jobs."""
        await self._call(len(jobs))
        self._begin(jobs)

    def _begin(self, jobs: Sequence[tuple[int, Job]]) -> None:
        for number, job in jobs:
            task = asyncio.get_running_loop().create_task(self._answer(number, job))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def finished(self, jobs: Sequence[tuple[int, Job]]) -> list[Done]:
        """Begin jobs, and wait for something that was done."""
        if jobs:
            await self._field.controller.use(self._model.job_processor * len(jobs))
            await asyncio.sleep(self._model.call)
            await self._there_or_gone()
            self._begin(jobs)
        await self._has_done.wait()
        await asyncio.sleep(self._model.call)
        await self._there_or_gone()
        self._has_done.clear()
        done, self._done = self._done, []
        for each in done:
            self._kept.pop(each.number, None)
        await self._field.controller.use(self._model.call_processor + self._model.job_processor * len(done))
        return done

    async def close(self) -> None:
        """End."""
        await self._meter.aclose()

    async def _call(self, jobs: int) -> None:
        await self._field.controller.use(self._model.call_processor + self._model.job_processor * jobs)
        await asyncio.sleep(self._model.call)
        await self._there_or_gone()

    async def _answer(self, number: int, job: Job) -> None:
        assert isinstance(job, TrialJob)
        await self._ask()
        await asyncio.sleep(self._model.journal)
        self._kept[number] = job
        self._done.append(Done(number, AnsweredTrial(TrialOutcome(None))))
        self._has_done.set()

    async def _ask(self) -> None:
        """One call to the server, as models ask: money, a turn, the answer."""
        settings, seen, money = self._field.settings, self._field.seen, self._meter.money
        if money is not None:
            await money.budget.reserve(RESERVED)
        line = self._meter.limiter(SERVER)
        turn = await line.enter(2000.0 if settings.tpm else 0.0)
        seen.begin(asyncio.get_running_loop().time())
        try:
            await asyncio.sleep(self._model.latency(self._field.chance))
        finally:
            seen.in_flight -= 1
        turn.tokens = 1500.0
        line.leave(turn)
        if money is not None:
            money.budget.settle(RESERVED, COST)
