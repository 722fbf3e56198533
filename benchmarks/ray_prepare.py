"""An experiment made ready on two Ray nodes, its texts spread over both and not, beside one process.

    python benchmarks/ray_prepare.py [--chunks N] [--seconds S] [--nodes N] [--repetitions N] [--real]

Needs the extra ``ray``. The model sleeps ``--seconds`` a text, so that nodes which share this machine do not share its
time: the clock shows what machines of their own would. ``--real`` asks the packaged model, for the processor time of
all workers; the clock then shows a machine whose processors they share. Without a shared folder each worker has a cache
of its own. Workers that have not been told of each other do not spread what they do.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from side_by_side import show

EMBEDDER = """
import os, time
from pathlib import Path
from rag_harness.models.dry_run import MockEmbedder

class Slow(MockEmbedder):
    model = "benchmark/slow"

    def embed_documents(self, texts):
        time.sleep({seconds} * len(texts))
        with (Path(__file__).parent / "counts").open("a") as counts:
            counts.write(f"{{os.getpid()}} {{len(texts)}}\\n")
        return MockEmbedder.embed_documents(self, texts)

    embed_queries = embed_documents

def create(parts):
    return Slow()
"""
POINTS = "[rag_harness.embedders]\nslow = slow_embedder:create\n"
WORDS = ("lamp", "battery", "cable", "socket", "carton", "voucher", "parcel", "receipt", "colour", "shelf", "price")


@dataclass(frozen=True)
class Took:
    """Seconds on the clock, of processors of all workers, and how many texts their models were asked for."""

    wall: float
    cpu: float
    texts: int


class Field:
    """One knowledge base, and what makes an experiment over it ready; everything is embedded anew each time."""

    def __init__(self, folder: Path, asked: argparse.Namespace, address: str) -> None:
        from rag_harness.core.settings.loading import load_settings

        self.folder, self.asked, self.rounds = folder, asked, 0
        _write_kb(folder / "kb", asked.chunks)
        model = {} if asked.real else {"embed_model": "slow:benchmark"}
        given = {"profile": "mock", "kb_dir": "kb", "output": "output", "ray_address": address, **model}
        if asked.real:
            given["embed_model"] = "sentence-transformers/all-MiniLM-L6-v2"
        self.settings = load_settings(given, rootdir=folder)

    def one_process(self) -> Took:
        """Make it ready in this process."""
        from rag_harness.pipelines.experiments import experiment
        from rag_harness.pipelines.parts import RunParts

        parts = RunParts(self._settings("one"))
        made, began, before = experiment("e2", parts), time.perf_counter(), time.process_time()
        assert made.prepare is not None
        made.prepare(_queries())
        return Took(time.perf_counter() - began, time.process_time() - before, self.texts())

    def on_ray(self, spread: bool, shared: bool) -> Took:
        """Make it ready on all nodes at once."""
        return asyncio.run(self._on_ray(spread, shared))

    async def _on_ray(self, spread: bool, shared: bool) -> Took:
        async with self.workers(spread, shared) as workers:
            carried, before, began = self.carried(), _processor_time(), time.perf_counter()
            await asyncio.gather(*(worker.carry(carried) for worker in workers))
            return Took(time.perf_counter() - began, _processor_time() - before, self.texts())

    @asynccontextmanager
    async def workers(self, spread: bool, shared: bool) -> AsyncIterator[list[Any]]:
        """Start a worker a node; they know of each other where they are to spread what they do."""
        from rag_harness.runs.distributed.cluster import RayNodes
        from rag_harness.runs.distributed.messages import RunOpening

        nodes = RayNodes(self.settings)
        ledger = nodes.ledger(self.folder / "ledger")
        workers = [nodes.worker(f"ray{number}", node) for number, node in enumerate(nodes.plan(self.asked.nodes))]
        self.rounds += 1
        for number, worker in enumerate(workers):
            settings = self._settings("shared" if shared else f"own{number}")
            await worker.open(RunOpening(settings, len(workers), "run", worker.name, "run.shared", ledger))
        for worker in workers if spread else ():
            await worker.meet([each.peer for each in workers])
        yield workers
        for worker in workers:
            worker.kill()
        ledger.end()
        nodes.leave()

    def carried(self) -> Any:
        """Return the experiment on its way, with its questions."""
        from rag_harness.pipelines.experiments import experiment
        from rag_harness.pipelines.parts import RunParts
        from rag_harness.runs.distributed.messages import carry

        made = experiment("e2", RunParts(self.settings))
        return carry(made, is_registered=True, queries=_queries(), queries_digest="", settings=self.settings)

    def _settings(self, cache: str) -> Any:
        self.rounds += cache == "one"
        # Workers take turns only where the folder of the cache could be made.
        (self.folder / f"cache/{self.rounds}").mkdir(parents=True, exist_ok=True)
        return replace(self.settings, cache_dir=f"cache/{self.rounds}/{cache}")

    def texts(self) -> int:
        """Return how many texts the models were asked for since this was last asked."""
        counts = self.folder / "counts"
        if not counts.is_file():
            return 0
        found = [int(line.split()[1]) for line in counts.read_text().splitlines()]
        counts.unlink()
        return sum(found)


def _queries() -> Sequence[Any]:
    from rag_harness.core.types import Query

    return [Query(f"q{number}", f"What does lamp {number} cost?") for number in range(200)]


def _write_kb(folder: Path, chunks: int) -> None:
    folder.mkdir()
    for start in range(0, chunks, 50):
        sections = [f"## Lamp {number}\n\n{_text(number)}\n" for number in range(start, min(start + 50, chunks))]
        (folder / f"page{start:06}.md").write_text("\n".join(sections))


def _text(number: int) -> str:
    return " ".join(f"{WORDS[(number * step) % len(WORDS)]} {number * step % 997}" for step in range(1, 30)) + "."


def _processor_time() -> float:
    """Return the seconds of processor time that Ray's workers have used so far."""
    found = 0.0
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (folder / "cmdline").read_bytes().startswith(b"ray::Worker"):
                ticks = (folder / "stat").read_text().rpartition(")")[2].split()[11:13]
                found += sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
    return found


def let_import(folder: Path, seconds: float) -> None:
    """Have this process, and all that it starts, find an embedder that sleeps."""
    (folder / "slow_embedder.py").write_text(EMBEDDER.format(seconds=seconds))
    (folder / "slow-1.dist-info").mkdir()
    (folder / "slow-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: slow\nVersion: 1\n")
    (folder / "slow-1.dist-info" / "entry_points.txt").write_text(POINTS)
    sys.path.insert(0, str(folder))
    os.environ["PYTHONPATH"] = os.pathsep.join([str(folder), *os.environ.get("PYTHONPATH", "").split(os.pathsep)])


def cluster_of(nodes: int) -> Any:
    """Start a cluster of nodes with one CPU each."""
    from ray.cluster_utils import Cluster

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    memory = {"object_store_memory": 300_000_000}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False, **memory})
    for _ in range(nodes - 1):
        cluster.add_node(num_cpus=1, **memory)
    return cluster


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", type=int, default=4000)
    parser.add_argument("--seconds", type=float, default=0.005)
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--repetitions", type=int, default=1)
    parser.add_argument("--real", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        let_import(Path(folder), asked.seconds)
        cluster = cluster_of(asked.nodes)
        try:
            _measure(Field(Path(folder), asked, cluster.address), asked)
        finally:
            cluster.shutdown()


def _measure(field: Field, asked: argparse.Namespace) -> None:
    runs: dict[str, Callable[[], Took]] = {
        "one process": field.one_process,
        "each for itself": partial(field.on_ray, spread=False, shared=False),
        "the first for all, shared folder": partial(field.on_ray, spread=False, shared=True),
        "spread": partial(field.on_ray, spread=True, shared=False),
        "spread, shared folder": partial(field.on_ray, spread=True, shared=True),
    }
    took: dict[str, list[Took]] = {name: [] for name in runs}
    for _ in range(asked.repetitions):
        for name, each in runs.items():
            took[name].append(each())
            print(name, took[name][-1], flush=True)
    one = statistics.median(each.wall for each in took["one process"])
    rows = []
    for name, found in took.items():
        wall, cpu = (statistics.median(getattr(each, value) for each in found) for value in ("wall", "cpu"))
        texts = f"{found[0].texts:,}" if found[0].texts else ""
        rows.append([name, f"{wall:.1f}", f"{wall / one:.2f}", f"{cpu:.1f}", texts])
    header = ["made ready", "median s", "over one process", "cpu s", "texts embedded"]
    show(f"{asked.chunks:,} chunks, {asked.nodes} nodes", header, rows)


if __name__ == "__main__":
    main()
