"""What a change of a service's documents costs: one small document comes in, or goes, among many.

    python benchmarks/service_changes.py [--chunks N ...] [--experiment r1] [--changes N]

The mock profile: vectors are hashed words, so what is left is what the service itself does. Texts are random words, of
the frequency that words have, in documents of twenty chunks. Times are of the wall, and of the processor, which counts
where other work is on the machine; the gap is how long the event loop was held up at most.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from random import Random
from statistics import median
from time import perf_counter, process_time
from typing import Any

from rag_harness.core.settings.loading import load_settings
from rag_harness.core.types import Query
from rag_harness.service.app_state import Options
from rag_harness.service.corpus.contents import DEFAULT
from rag_harness.service.corpus.tenant_collections import Corpora, TenantCollection
from rag_harness.service.database import StateFolder

WORDS, IN_CHUNK, IN_DOCUMENT = 30_000, 120, 20
TICK = 0.001
"""Seconds."""


@dataclass
class Took:
    """Milliseconds of the wall and of the processor, one a change."""

    wall: list[float]
    cpu: list[float]

    def __str__(self) -> str:
        return f"{median(self.wall):7.0f} ms, {median(self.cpu):7.0f} ms of the processor"


class Texts:
    """Random texts, the same each time."""

    def __init__(self) -> None:
        self._random = Random(1)
        self._words = ["".join(self._random.choices("abcdefghijklmnop", k=2 + n % 8)) for n in range(WORDS)]
        self._weights = list(accumulate(1 / (n + 1) for n in range(WORDS)))

    def chunk(self) -> str:
        return " ".join(self._random.choices(self._words, cum_weights=self._weights, k=IN_CHUNK)) + "."

    def write(self, folder: Path, chunks: int) -> None:
        for number in range(chunks // IN_DOCUMENT):
            parts = (f"# Section {n}\n\n{self.chunk()}\n" for n in range(IN_DOCUMENT))
            (folder / f"d{number:05}.md").write_text("\n".join(parts), encoding="utf-8")


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--chunks", type=int, nargs="+", default=[1_000, 20_000])
    asked.add_argument("--experiment", default="r1")
    asked.add_argument("--changes", type=int, default=10)
    chosen = asked.parse_args()
    for chunks in chosen.chunks:
        with tempfile.TemporaryDirectory() as root:
            (Path(root) / "kb").mkdir()
            Texts().write(Path(root) / "kb", chunks)
            asyncio.run(measured(Path(root), chosen.experiment, chosen.changes))


async def measured(root: Path, experiment: str, changes: int) -> None:
    texts = Texts()
    with StateFolder(root / "state") as state:
        async with opened(root, experiment, state, "first start") as corpora:
            collection = corpora.get(DEFAULT)
            print(f"{sum(each.chunks for each in collection.documents()):>7} chunks, load {os.getloadavg()[0]:.1f}")
            with looking_for_gaps() as gap:
                looking = asyncio.ensure_future(gap())
                page = f"# New\n\n{texts.chunk()}\n".encode()
                print("        come in   ", await timed(changes, lambda n: collection.ingest(f"n{n}.md", page)))
                print("        replaced  ", await timed(changes, lambda _: collection.ingest("n0.md", page)))
                print("        question  ", await timed(1, lambda _: ask(collection)), "(the first after a change)")
                ids = [each.doc_id for each in collection.documents() if each.name.startswith("n")]
                print("        go        ", await timed(len(ids), lambda n: collection.delete(ids[n])))
                looking.cancel()
        async with opened(root, experiment, state, "later start"):
            pass


@asynccontextmanager
async def opened(root: Path, experiment: str, state: StateFolder, called: str) -> AsyncIterator[Corpora]:
    settings = load_settings({"profile": "mock", "cache_dir": str(root / "cache")}, rootdir=root)
    corpora = Corpora(settings, Options(experiment, root / "state", root / "kb"), experiment, state)
    print(f"        {called}", await timed(1, lambda _: corpora.open()))
    yield corpora
    await corpora.close()
    gc.unfreeze()


async def timed(count: int, change: Callable[[int], Awaitable[object]]) -> Took:
    took = Took([], [])
    for number in range(count):
        wall, cpu = perf_counter(), process_time()
        await change(number)
        took.wall.append((perf_counter() - wall) * 1000)
        took.cpu.append((process_time() - cpu) * 1000)
    return took


async def ask(collection: TenantCollection) -> None:
    await collection.serving.experiment.pipeline.answer(Query("q", "ab cde fghi"))


@contextmanager
def looking_for_gaps() -> Iterator[Callable[[], Coroutine[Any, Any, None]]]:
    """Say at the end how long the event loop was held up at most."""
    worst, ends = 0.0, False

    async def look() -> None:
        nonlocal worst
        last = perf_counter()
        while not ends:
            await asyncio.sleep(TICK)
            now = perf_counter()
            worst, last = max(worst, now - last - TICK), now

    yield look
    ends = True
    print(f"        gap        {worst * 1000:7.0f} ms")


if __name__ == "__main__":
    main()
