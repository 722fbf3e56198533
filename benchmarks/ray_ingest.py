"""`rag-harness ingest DOCS.parquet --to FOLDER --engine=ray`: two workers beside one, on two nodes, hashed vectors.

    python benchmarks/ray_ingest.py [--chunks N,N] [--repetitions N]

Needs the extra ``ray``. Every document is one chunk of about 200 words. Both nodes share this machine with the process
that asks. Memory is the peak of the resident set (VmHWM) of each process, shared pages in it. Cutting is done by tasks
of Ray's, which take every CPU of the nodes whatever the number of workers is.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
import threading
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from side_by_side import TIMES, Run, Took, alternate, ratio, run, show, times

ONE, TWO = "one worker", "two workers"
INGEST = [sys.executable, "-m", "rag_harness", "ingest"]
OURS = ("rag_harness ingest", "ray::MapBatches", "ray::MapWorker", "ray::ReadFiles")
SEEN = ["workers' cpu s", "asks MB", "works MB"]


@dataclass(frozen=True)
class Seen:
    """A process: whether it is a worker of Ray's, its seconds of processor time, and its peak of memory."""

    works: bool
    cpu: float
    megabytes: float


class Field:
    """One file of documents, and what each engine's processes held at most."""

    def __init__(self, folder: Path, chunks: int, address: str) -> None:
        self.folder, self.chunks, self.address = folder, chunks, address
        self.rounds = 0
        self.seen: dict[str, dict[int, Seen]] = {}
        write_documents(folder / "docs.parquet", chunks)

    def take(self, name: str, *options: str) -> Took:
        """Make all rows anew."""
        self.rounds = self.rounds + (name == ONE)
        for made in ("out", ".rag_cache"):
            shutil.rmtree(self.folder / made, ignore_errors=True)
        command = [
            *INGEST,
            "docs.parquet",
            "--to=out",
            "--profile=mock",
            "--engine=ray",
            f"--ray-address={self.address}",
            *options,
        ]
        ended, seen = threading.Event(), self.seen.setdefault(name, {})
        watching = threading.Thread(target=_watch, args=(ended, seen))
        watching.start()
        try:
            took = run(command, self.folder)
        finally:
            ended.set()
            watching.join()
        self._check(name)
        return took

    def _check(self, name: str) -> None:
        import pyarrow.parquet

        rows = sum(pyarrow.parquet.read_metadata(file).num_rows for file in (self.folder / "out").glob("*.parquet"))
        if rows != self.chunks:
            raise RuntimeError(f"{name} wrote {rows} chunks, not {self.chunks}")

    def cells(self, name: str) -> list[str]:
        """Return the cells for ``SEEN``."""
        workers = [each for each in self.seen[name].values() if each.works]
        others = [each for each in self.seen[name].values() if not each.works]
        cpu = sum(each.cpu for each in workers) / max(1, self.rounds)
        peaks = [max((each.megabytes for each in some), default=0) for some in (others, workers)]
        return [f"{cpu:.1f}", *(f"{peak:.0f}" for peak in peaks)]


def write_documents(file: Path, count: int) -> None:
    """Write documents of 16 sentences of 12 drawn words."""
    import pyarrow
    import pyarrow.parquet

    drawn, words = random.Random(7), [f"word{number}" for number in range(20_000)]
    schema = pyarrow.schema([("id", pyarrow.string()), ("text", pyarrow.string())])
    with pyarrow.parquet.ParquetWriter(file, schema) as writer:
        for start in range(0, count, 1000):
            numbers = range(start, min(start + 1000, count))
            texts = [". ".join(" ".join(drawn.choices(words, k=12)) for _ in range(16)) for _ in numbers]
            ids = [f"doc{number:08}" for number in numbers]
            writer.write_table(pyarrow.table([ids, texts], schema=schema))


def _watch(ended: threading.Event, seen: dict[int, Seen]) -> None:
    while not ended.wait(0.2):
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError, ValueError, StopIteration, IndexError):
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if any(each in command for each in OURS) and int(folder.name) != os.getpid():
                    seen[int(folder.name)] = _seen(folder, command)


def _seen(folder: Path, command: str) -> Seen:
    peak = next(line for line in (folder / "status").read_text().splitlines() if line.startswith("VmHWM"))
    ticks = (folder / "stat").read_text().rpartition(")")[2].split()[11:13]
    cpu = sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
    return Seen(command.startswith("ray::"), cpu, int(peak.split()[1]) / 1024)


def _cluster() -> Any:
    from ray.cluster_utils import Cluster

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    memory = {"object_store_memory": 300_000_000}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False, **memory})
    cluster.add_node(num_cpus=2, **memory)
    return cluster


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", default="20000,200000")
    parser.add_argument("--repetitions", type=int, default=1)
    asked = parser.parse_args()
    cluster = _cluster()
    try:
        for chunks in map(int, asked.chunks.split(",")):
            _measure(chunks, asked.repetitions, cluster.address)
    finally:
        cluster.shutdown()


def _measure(chunks: int, repetitions: int, address: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        field = Field(Path(folder), chunks, address)
        runs: dict[str, Run] = {
            name: partial(field.take, name, f"--ray-workers={number}") for number, name in enumerate((ONE, TWO), 1)
        }
        took = alternate(runs, repetitions)
        rows = [[name, *times(each), *field.cells(name)] for name, each in took.items()]
        show(f"{chunks:,} chunks, 2 nodes", ["", *TIMES, *SEEN], rows)
        print(f"two / one {ratio(took[TWO], took[ONE]):.2f}", flush=True)


if __name__ == "__main__":
    main()
