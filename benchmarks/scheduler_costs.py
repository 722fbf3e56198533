"""What dispatch, ledger and an actor's call cost the processor: the figures that `scheduler_simulation.py` assumes.

    python benchmarks/scheduler_costs.py [--ray]

Processor time of this process, so that other work on the machine counts little. ``--ray`` needs the extra ``ray``, and
starts one on this machine.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from time import process_time
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from rag_harness.core.settings import Settings
from rag_harness.core.types import Answer, Case, PipelineOutput, Query
from rag_harness.runs.distributed.dispatch import Dispatch
from rag_harness.runs.distributed.ledger import Caps, RunLedger
from rag_harness.runs.distributed.messages import AnsweredTrial, Carried, Done, Job, TrialJob
from rag_harness.runs.trial import Trial, TrialOutcome, make_row

JOB = TrialJob(Trial("e3", Case(Query("q1", "Are returns free?"), "direct", "", {})), "print")
CARRIED = Carried("e3", b"", "", (), "", {})


class Echo:
    """A worker that has done a job as soon as it has it."""

    def __init__(self, name: str) -> None:
        self.name, self._done, self._has_done = name, list[Done](), asyncio.Event()

    async def carry(self, carried: Carried) -> None:
        """Nothing to learn."""

    async def take(self, jobs: Sequence[tuple[int, Job]]) -> None:
        """Do jobs."""
        self._done += [Done(number, AnsweredTrial(TrialOutcome(None))) for number, _ in jobs]
        self._has_done.set()

    async def finished(self, jobs: Sequence[tuple[int, Job]]) -> list[Done]:
        """Do jobs, and return those that are done."""
        if jobs:
            await self.take(jobs)
        await self._has_done.wait()
        self._has_done.clear()
        done, self._done = self._done, []
        return done

    async def close(self) -> None:
        """Nothing to close."""

    def kill(self) -> None:
        """Nothing to end."""


async def _dispatch(workers: int, in_flight: int, jobs: int) -> float:
    async def no_other(*_: object) -> None: ...

    dispatch = Dispatch([Echo(str(number)) for number in range(workers)], no_other)
    numbers = iter(range(jobs))

    async def slot(numbers: Iterator[int]) -> None:
        for _ in numbers:
            await dispatch.do(JOB, CARRIED)

    began = process_time()
    await asyncio.gather(*(slot(numbers) for _ in range(in_flight)))
    took = process_time() - began
    await dispatch.close(1)
    return took / jobs


def _turn(ledger: RunLedger, tpm: float, turns: int = 20_000, block: int = 16) -> float:
    began = process_time()
    for first in range(0, turns, block):
        ledger.calls("server", Caps(1e6, tpm), {f"w:{first + each}": 1000.0 for each in range(block)}, {})
    return (process_time() - began) / turns


def _reservation(ledger: RunLedger, open_ones: int, blocks: int = 100, block: int = 16) -> float:
    ledger.money({f"open:{number}": 0.01 for number in range(open_ones)}, {})
    began = process_time()
    for number in range(blocks):
        asked = {f"{open_ones}:{number}:{each}": 0.01 for each in range(block)}
        ledger.money(asked, {})
        ledger.money({}, dict.fromkeys(asked, 0.005))
    return (process_time() - began) / blocks / block


class Actor:
    """What is called over Ray."""

    def __init__(self, answered: AnsweredTrial) -> None:
        self._answered = answered

    async def take(self, jobs: Sequence[tuple[int, Job]]) -> None:
        """Take jobs."""

    async def finished(self, count: int) -> list[AnsweredTrial]:
        """Return answers."""
        return [self._answered] * count


async def _calls(call: Callable[[], Awaitable[Any]], times: int = 500) -> float:
    await call()
    began = process_time()
    for _ in range(times):
        await call()
    return (process_time() - began) / times


async def _time_calls(actor: Any) -> None:
    for count in (1, 16, 128):
        took = await _calls(lambda count=count: actor.take.remote([(1, JOB)] * count))  # type: ignore[misc]
        gave = await _calls(lambda count=count: actor.finished.remote(count))  # type: ignore[misc]
        print(
            f"an actor's call: {count} jobs there {took * 1e3:.2f} ms, {count} rows back {gave * 1e3:.2f} ms",
            flush=True,
        )


def _over_ray() -> None:
    import ray

    ray.init(address="local", num_cpus=1, include_dashboard=False, log_to_driver=False, configure_logging=False)
    row = make_row(JOB.trial, PipelineOutput(Answer("yes")), None, 1.0, Settings(profile="mock"), "print")
    actor: Any = ray.remote(Actor).remote(AnsweredTrial(TrialOutcome(row)))
    asyncio.run(_time_calls(actor))
    ray.shutdown()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ray", action="store_true")
    asked = parser.parse_args()
    for workers, in_flight in ((1, 100), (10, 1000), (100, 3200)):
        cost = asyncio.run(_dispatch(workers, in_flight, 20_000))
        print(f"a job, {workers} workers, {in_flight} in flight: {cost * 1e6:.0f} µs")
    with tempfile.TemporaryDirectory() as folder:
        for tpm in (0.0, 1e9):
            cost = _turn(RunLedger(Path(folder) / f"turns{tpm}", 0.0), tpm)
            tokens = "with" if tpm else "without"
            print(f"a turn {tokens} tokens, up to 20,000 calls in the last minute: {cost * 1e6:.0f} µs")
        for open_ones in (0, 12_800):
            cost = _reservation(RunLedger(Path(folder) / f"money{open_ones}", 1e6), open_ones)
            print(f"a reservation, put aside and settled, {open_ones} open: {cost * 1e6:.0f} µs")
    if asked.ray:
        _over_ray()


if __name__ == "__main__":
    main()
