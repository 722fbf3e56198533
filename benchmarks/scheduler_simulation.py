"""A run on 100 nodes, simulated: the real dispatch, ledger and leases on a virtual clock, with nodes that are made up.

    python benchmarks/scheduler_simulation.py [--trials N] [--nodes N] [--seed N] [SCENARIO …]

Efficiency is the time that the limits of a scenario allow at best (calls in flight, calls and tokens a minute; not the
controller) over the simulated time. The model is printed with it. Seeded: the same figures each time.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from time import process_time

sys.path.insert(0, str(Path(__file__).parents[1]))

from side_by_side import show
from simulated_nodes import Field, Model

from rag_harness.core.settings import Settings
from rag_harness.core.types import Case, Query
from rag_harness.runs.distributed import ledger as ledger_module
from rag_harness.runs.distributed.dispatch import Dispatch
from rag_harness.runs.distributed.ledger import RunLedger
from rag_harness.runs.distributed.messages import Carried, TrialJob
from rag_harness.runs.trial import Trial
from tests.unit.virtual_time import run

CARRIED = Carried("e3", b"", "", (), "", {})
USED_TOKENS = 1500.0
CHUNKS, BATCH = 10_000_000, 256


@dataclass(frozen=True)
class Scenario:
    """What is asked for: calls in flight, a minute, tokens a minute, USD; and what of the model is other."""

    in_flight: int
    rpm: float = 0.0
    tpm: float = 0.0
    budget: float = 0.0
    model: Model = Model()
    jobs: int = 0

    def limit(self, trials: int) -> float:
        """Return the seconds below which ``trials`` cannot be done: a cap lets a minute's worth in at once."""
        slots = trials * self.model.mean / self.in_flight
        calls = 60 * (trials / self.rpm - 1) if self.rpm else 0.0
        tokens = 60 * (trials * USED_TOKENS / self.tpm - 1) if self.tpm else 0.0
        return max(slots, calls, tokens)


# A batch of 256 chunks at 100 a second, on a node that embeds two at a time; the vectors stay on the node.
_INGEST = Model(median=2.56, sigma=0.1, journal=0.05)
SCENARIOS = {
    "rpm": Scenario(3200, rpm=12_000),
    "tpm": Scenario(3200, tpm=15_000_000),
    "budget": Scenario(3200, rpm=12_000, budget=1e6),
    "in flight": Scenario(600),
    "short calls": Scenario(100, model=Model(median=0.5)),
    "controller": Scenario(3200),
    "ingest": Scenario(200, model=_INGEST, jobs=CHUNKS // BATCH + 1),
}


@dataclass(frozen=True)
class Took:
    """What came of a scenario; seconds are virtual, but for those of this process."""

    seconds: float
    limit: float
    trials: int
    field: Field
    again: int
    processor: float

    def line(self, name: str) -> list[str]:
        """Return the row of the table."""
        seen, field = self.field.seen, self.field
        shares = (field.controller.busy / self.seconds, field.ledger.core.busy / self.seconds)
        return [
            name,
            f"{self.trials:,}",
            f"{self.limit:,.0f}",
            f"{self.seconds:,.0f}",
            f"{self.limit / self.seconds:.1%}",
            f"{seen.calls - self.trials:,}",
            f"{self.again:,}",
            f"{seen.most:,}",
            f"{seen.busiest:,}",
            str(field.lost),
            *(f"{share:.0%}" for share in shares),
            f"{self.processor / self.trials * 1e6:.0f}",
        ]


HEADS = [
    "scenario",
    "jobs",
    "limit s",
    "took s",
    "efficiency",
    "calls over jobs",
    "sent again",
    "in flight at most",
    "busiest minute",
    "nodes lost",
    "controller busy",
    "ledger busy",
    "our µs a job",
]


async def _simulate(scenario: Scenario, trials: int, nodes: int, seed: int, file: Path) -> Took:
    settings = Settings(
        profile="mock",
        concurrency=scenario.in_flight,
        rpm=scenario.rpm,
        tpm=scenario.tpm,
        budget=scenario.budget,
        deadline=1e9,
    )
    field = Field(scenario.model, settings, nodes, RunLedger(file, scenario.budget), seed)
    dispatch = Dispatch([field.start() for _ in range(nodes)], field.replace)
    losing, before = asyncio.ensure_future(field.lose()), process_time()
    numbers = iter(range(trials))
    await asyncio.gather(*(_slot(field, dispatch, numbers) for _ in range(scenario.in_flight)))
    losing.cancel()
    took = asyncio.get_running_loop().time(), process_time() - before
    await dispatch.close(60)
    return Took(took[0], scenario.limit(trials), trials, field, dispatch.lost, took[1])


async def _slot(field: Field, dispatch: Dispatch, numbers: Iterator[int]) -> None:
    """Do one job after another, as a place of the engine does."""
    for number in numbers:
        await field.controller.use(field.model.trial_processor)
        trial = Trial("e3", Case(Query(f"q{number}", "?"), "direct", "", {}))
        await dispatch.do(TrialJob(trial, "print"), CARRIED)


def _say(model: Model) -> None:
    print("Assumed, in seconds where it is no number of its own:")
    for each in fields(model):
        print(f"  {each.name.replace('_', ' ')}: {getattr(model, each.name):g}")
    print(f"  mean of a call: {model.mean:.2f}")
    print("  one core for the controller and one for the ledger; nodes and servers have what they need")
    print("  a lost node comes back as another; its journal can be read")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=", ".join(SCENARIOS))
    parser.add_argument("--trials", type=int, default=100_000)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--seed", type=int, default=18)
    asked = parser.parse_args()
    vars(ledger_module)["monotonic"] = lambda: asyncio.get_running_loop().time()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for number, name in enumerate(asked.scenarios or SCENARIOS):
            scenario = SCENARIOS[name]
            jobs = min(scenario.jobs or asked.trials, asked.trials)
            file = Path(folder) / f"{number}.ledger"
            rows.append(run(_simulate(scenario, jobs, asked.nodes, asked.seed, file)).line(name))
            file.unlink()
            print(*rows[-1], sep=" | ", file=sys.stderr, flush=True)
    _say(Model())
    show(f"{asked.nodes} nodes, a node lost every minute, seed {asked.seed}", HEADS, rows)


if __name__ == "__main__":
    main()
