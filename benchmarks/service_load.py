"""What HTTP adds to a pipeline: 64 clients ask the study's questions, of a server and of the experiment itself.

    python benchmarks/service_load.py [--requests 20000] [--clients 64] [--experiment r1] [--mode replay]

Both answer from the recordings that ship. The server is another process; the pipeline runs in this one, with as many
questions at once. Prints seconds, percentiles in milliseconds, errors, and how the server's memory grew after its
first pass over the questions.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from itertools import cycle, islice
from pathlib import Path

import aiohttp

from served import Served, percentile, serving

Ask = Callable[[str], Awaitable[bool]]
ROOT = Path(__file__).resolve().parents[1]


def questions() -> list[str]:
    """Return the texts of the study's queries."""
    lines = (ROOT / "data" / "kb" / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["query"] for line in lines if line.strip()]


async def timed(asks: Sequence[str], clients: int, ask: Ask) -> tuple[list[float], int, float]:
    """Ask everything with so many clients; return milliseconds of each, the number that failed, and seconds in all."""
    waiting, took, failed = iter(asks), list[float](), 0

    async def client() -> None:
        nonlocal failed
        for text in waiting:
            began = time.perf_counter()
            failed += not await ask(text)
            took.append((time.perf_counter() - began) * 1000)

    began = time.perf_counter()
    await asyncio.gather(*[client() for _ in range(clients)])
    return took, failed, time.perf_counter() - began


async def of_server(url: str, asks: Sequence[str], clients: int) -> tuple[list[float], int, float]:
    """Ask a server."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=clients)) as session:

        async def ask(text: str) -> bool:
            async with session.post(f"{url}/query", json={"query": text}) as answered:
                body = await answered.json()
                return answered.status == 200 and bool(body["answer"])

        return await timed(asks, clients, ask)


async def of_pipeline(experiment: str, mode: str, asks: Sequence[str], clients: int) -> tuple[list[float], int, float]:
    """Ask the experiment in this process."""
    from rag_harness.pipelines import experiment as built
    from rag_harness.pipelines.parts import RunParts
    from rag_harness.settings.ini_file import ini_values
    from rag_harness.settings.loading import load_settings
    from rag_harness.types import Query

    parts = RunParts(load_settings({"mode": mode}, ini_values(ROOT), ROOT))
    made = built(experiment, parts)

    async def ask(text: str) -> bool:
        return bool((await made.pipeline.answer(Query("q", text))).answer.text)

    await timed(questions(), clients, ask)  # parts are made on first use
    return await timed(asks, clients, ask)


def line(name: str, took: Sequence[float], failed: int, seconds: float) -> str:
    """Return what is printed of one of them."""
    shares = "  ".join(f"p{share:g} {percentile(took, share / 100):7.1f}" for share in (50, 95, 99))
    return (
        f"{name:10} {len(took):6} in {seconds:6.1f} s, {len(took) / seconds:6.0f} a second  {shares}  errors {failed}"
    )


def measure(served: Served, chosen: argparse.Namespace) -> None:
    """Ask both, one after the other, and print."""
    asks = list(islice(cycle(questions()), chosen.requests))
    asyncio.run(of_server(served.url, questions(), chosen.clients))
    before, cpu = served.memory, served.cpu
    there = asyncio.run(of_server(served.url, asks, chosen.clients))
    grown, cpu = served.memory - before, served.cpu - cpu
    here = asyncio.run(of_pipeline(chosen.experiment, chosen.mode, asks, chosen.clients))
    print(line("pipeline", *here))
    print(line("server", *there))
    added = percentile(there[0], 0.95) - percentile(here[0], 0.95)
    print(
        f"p95 of the server above that of the pipeline: {added:.1f} ms; its processor {cpu / len(asks) * 1000:.2f} ms a question"
    )
    print(f"memory grew by {grown / 2**20:.1f} MiB to {served.memory / 2**20:.0f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--experiment", default="r1")
    parser.add_argument("--mode", default="replay")
    arguments = parser.parse_args()
    flags = ["--experiment", arguments.experiment, "--mode", arguments.mode, "--rate", "1000000/second"]
    with serving(*flags, folder=ROOT) as server:
        measure(server, arguments)
