"""What a trial costs on Ray beside itself: a pipeline that answers at once, through a workplace, without pytest.

    python benchmarks/ray_overhead.py [--trials N] [--workers N] [--in-flight N] [--repetitions N]

Needs the extra ``ray``. The same trials in this process and on workers of a Ray that is started on this machine.
Processor time of this process is what counts where it is the one that everything goes through; on the clock workers
share its processors here. A worker's journal, and the row's way back, are part of it.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

from side_by_side import show

from rag_harness.core.protocols import Experiment
from rag_harness.core.settings import Settings
from rag_harness.core.types import Case, Query
from rag_harness.runs.distributed import RayWorkplace, carry
from rag_harness.runs.distributed.messages import Carried
from rag_harness.runs.engine import LocalWorkplace, Workplace
from rag_harness.runs.trial import Trial


class Echo:
    """Answers at once."""

    async def answer(self, query: Query) -> str:
        """Return the question."""
        return query.text


EXPERIMENT = Experiment("echo", Echo())


async def _run(workplace: Workplace, trials: int, in_flight: int) -> tuple[float, float]:
    """Return milliseconds a trial, of the clock and of this process."""
    numbers = iter(range(trials))

    async def slot(numbers: Iterator[int]) -> None:
        for number in numbers:
            case = Case(Query(f"q{number}", "Are returns free?"), "direct", "", {})
            outcome = await workplace.answer(Trial("echo", case), EXPERIMENT, "print")
            assert outcome.row is not None
            assert outcome.row.ok

    began = perf_counter(), process_time()
    await asyncio.gather(*(slot(numbers) for _ in range(in_flight)))
    return (perf_counter() - began[0]) / trials * 1e3, (process_time() - began[1]) / trials * 1e3


async def _both(settings: Settings, asked: argparse.Namespace) -> dict[str, list[tuple[float, float]]]:
    here = LocalWorkplace(settings, lambda _: "")
    ray = RayWorkplace(settings, "overhead", lambda each: _carried(each, settings), lambda *_: None)
    await ray.open()
    await _run(ray, asked.in_flight * 2, asked.in_flight)
    took: dict[str, list[tuple[float, float]]] = {"here": [], "ray": []}
    for _ in range(asked.repetitions):
        took["here"].append(await _run(here, asked.trials, asked.in_flight))
        took["ray"].append(await _run(ray, asked.trials, asked.in_flight))
    await ray.aclose()
    return took


def _carried(experiment: Experiment, settings: Settings) -> Carried:
    return carry(experiment, is_registered=False, queries=(), queries_digest="", settings=settings)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=5000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--in-flight", type=int, default=256)
    parser.add_argument("--repetitions", type=int, default=3)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        plain = Settings(profile="mock", engine="ray", rootdir=Path(folder), output=f"{folder}/output")
        settings = replace(plain, concurrency=asked.in_flight, ray_workers=asked.workers)
        took = asyncio.run(_both(settings, asked))
    middle = {name: tuple(map(median, zip(*each, strict=True))) for name, each in took.items()}
    rows = [[name, *(f"{value:.2f}" for value in each)] for name, each in middle.items()]
    show(f"{asked.trials} trials that answer at once", ["where", "ms a trial", "ms of this process"], rows)
    print(f"more on Ray: {middle['ray'][1] - middle['here'][1]:.2f} ms of this process a trial")


if __name__ == "__main__":
    main()
