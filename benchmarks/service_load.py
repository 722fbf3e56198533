"""What HTTP adds to a pipeline: 64 clients ask the study's questions, of a server and of the experiment itself.

    python benchmarks/service_load.py [--requests 20000] [--clients 64] [--think 0] [--experiment r1] [--mode replay]

Both answer from the recordings that ship. The server is another process; the pipeline runs in this one, with as many
questions at once. "not the pipeline's" is a client's time less what the server says that the pipeline took (its header
Server-Timing). Prints percentiles in milliseconds, failures, the server's processor, and how its memory grew after its
first pass over the questions.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path

import aiohttp
from served import Served, percentile, serving

Ask = Callable[[str], Awaitable[float]]
"""Asks a text; returns the milliseconds that the pipeline itself took, below 0 where there was no answer."""
ROOT = Path(__file__).resolve().parents[1]


@dataclass
class Taken:
    """Milliseconds of each question, those that the pipeline took of them, and seconds in all."""

    whole: list[float] = field(default_factory=list)
    own: list[float] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def failed(self) -> int:
        """How many had no answer."""
        return sum(own < 0 for own in self.own)

    @property
    def added(self) -> list[float]:
        """What was not the pipeline's."""
        return [whole - own for whole, own in zip(self.whole, self.own, strict=True) if own >= 0]


def questions() -> list[str]:
    """Return the texts of the study's queries."""
    lines = (ROOT / "data" / "kb" / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["query"] for line in lines if line.strip()]


async def timed(asks: Sequence[str], clients: int, ask: Ask, think: float = 0.0) -> Taken:
    """Ask everything with so many clients, each of which thinks for some seconds between two questions."""
    waiting, taken = iter(asks), Taken()

    async def client() -> None:
        await asyncio.sleep(think * random.uniform(0.0, 1.0))  # not all at once
        for text in waiting:
            began = time.perf_counter()
            own = await ask(text)
            taken.whole.append((time.perf_counter() - began) * 1000)
            taken.own.append(own)
            await asyncio.sleep(think * random.uniform(0.5, 1.5))

    began = time.perf_counter()
    await asyncio.gather(*[client() for _ in range(clients)])
    taken.seconds = time.perf_counter() - began
    return taken


async def of_server(url: str, asks: Sequence[str], clients: int, think: float = 0.0) -> Taken:
    """Ask a server."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=clients)) as session:

        async def ask(text: str) -> float:
            async with session.post(f"{url}/query", json={"query": text}) as answered:
                good = b'"answer":"' in await answered.read() and answered.status == 200
                return float(answered.headers["Server-Timing"].rpartition("=")[2]) if good else -1.0

        return await timed(asks, clients, ask, think)


async def of_pipeline(experiment: str, mode: str, asks: Sequence[str], clients: int, think: float) -> Taken:
    """Ask the experiment in this process."""
    from rag_harness.core.settings.loading import ini_values, load_settings
    from rag_harness.core.types import Query
    from rag_harness.pipelines.experiments import experiment as built
    from rag_harness.pipelines.parts import RunParts

    parts = RunParts(load_settings({"mode": mode}, ini_values(ROOT), ROOT))
    made = built(experiment, parts)

    async def ask(text: str) -> float:
        return 0.0 if (await made.pipeline.answer(Query("q", text))).answer.text else -1.0

    await timed(questions(), clients, ask)  # parts are made on first use
    return await timed(asks, clients, ask, think)


def line(name: str, took: Sequence[float]) -> str:
    """Return what is printed of milliseconds."""
    return f"{name:22}" + "  ".join(f"p{share:g} {percentile(took, share / 100):7.1f}" for share in (50, 95, 99))


def measure(served: Served, chosen: argparse.Namespace) -> None:
    """Ask both, one after the other, and print."""
    asks = list(islice(cycle(questions()), chosen.requests))
    asyncio.run(of_server(served.url, questions(), chosen.clients))
    before, cpu = served.memory, served.cpu
    there = asyncio.run(of_server(served.url, asks, chosen.clients, chosen.think))
    grown, cpu = served.memory - before, served.cpu - cpu
    here = asyncio.run(of_pipeline(chosen.experiment, chosen.mode, asks, chosen.clients, chosen.think))
    for name, taken in (("pipeline here", here), ("server", there)):
        rate = len(taken.whole) / taken.seconds
        print(f"{line(name, taken.whole)}  {taken.seconds:.1f} s, {rate:.0f} a second, {taken.failed} failed")
    print(line("  not the pipeline's", there.added))
    print(f"processor of the server: {cpu / len(asks) * 1000:.2f} ms a question")
    print(f"memory grew by {grown / 2**20:.1f} MiB to {served.memory / 2**20:.0f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--think", type=float, default=0.0, help="seconds of a client between two questions")
    parser.add_argument("--experiment", default="r1")
    parser.add_argument("--mode", default="replay")
    arguments = parser.parse_args()
    flags = ["--experiment", arguments.experiment, "--mode", arguments.mode]
    with serving(*flags, folder=ROOT) as server:
        measure(server, arguments)
