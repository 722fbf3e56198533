"""`rag-harness ingest DOCS.parquet --qdrant-url=URL`: what it costs the process that asks, and its workers.

    python benchmarks/server_ingest.py [--chunks N,N] [--repetitions N] [--ray] [--package FOLDER]

Every document is one chunk of about 200 words, its vector 512 numbers by hashing. The server is a process that reads
what comes and keeps how many points there were. ``--ray`` adds two nodes with a worker each. ``--package`` is the
folder of another version of the package, which is run beside this one.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import threading
from functools import partial
from pathlib import Path
from urllib.request import urlopen

from ray_ingest import SEEN, Seen, _cluster, _watch, write_documents
from reading_server import reading_server
from side_by_side import TIMES, Run, Took, alternate, run, show, times

INGEST = [sys.executable, "-m", "rag_harness", "ingest", "docs.parquet", "--profile=mock"]


class Field:
    """One file of documents, and what the processes of each line held at most."""

    def __init__(self, folder: Path, chunks: int) -> None:
        self.folder, self.chunks = folder, chunks
        self.seen: dict[str, dict[int, Seen]] = {}
        write_documents(folder / "docs.parquet", chunks)

    def take(self, name: str, package: Path, *options: str) -> Took:
        """Fill a server that has nothing, with nothing kept from before."""
        shutil.rmtree(self.folder / ".rag_cache", ignore_errors=True)
        ended, seen = threading.Event(), self.seen.setdefault(name, {})
        watching = threading.Thread(target=_watch, args=(ended, seen))
        watching.start()
        try:
            with reading_server() as url:
                took = run([*INGEST, f"--qdrant-url={url}", *options], self.folder, {"PYTHONPATH": str(package)})
                self._check(name, url)
        finally:
            ended.set()
            watching.join()
        return took

    def _check(self, name: str, url: str) -> None:
        with urlopen(f"{url}/collections/any/told") as answer:
            points = max(json.load(answer)["result"].values())
        if points != self.chunks:
            raise RuntimeError(f"{name} sent {points} points, not {self.chunks}")

    def cells(self, name: str, rounds: int) -> list[str]:
        """Return the cells for ``SEEN``."""
        workers = [each for each in self.seen[name].values() if each.works]
        others = [each for each in self.seen[name].values() if not each.works]
        cpu = sum(each.cpu for each in workers) / rounds
        peaks = [max((each.megabytes for each in some), default=0) for some in (others, workers)]
        return [f"{cpu:.1f}", *(f"{peak:.0f}" for peak in peaks)]


def measure(chunks: int, asked: argparse.Namespace, address: str) -> None:
    """Print what ``chunks`` cost."""
    here = Path(__file__).parent.parent
    versions = {"": here, **({"other version: ": asked.package} if asked.package else {})}
    with tempfile.TemporaryDirectory() as folder:
        field = Field(Path(folder), chunks)
        runs: dict[str, Run] = {}
        for said, package in versions.items():
            runs[f"{said}one process"] = partial(field.take, f"{said}one process", package)
            if address:
                on_ray = ("--engine=ray", f"--ray-address={address}")
                runs[f"{said}two nodes"] = partial(field.take, f"{said}two nodes", package, *on_ray)
        rounds = asked.repetitions + (asked.repetitions > 1)
        took = alternate(runs, asked.repetitions)
        rows = [[name, *times(each), *field.cells(name, rounds)] for name, each in took.items()]
        show(f"{chunks:,} chunks", ["", *TIMES, *SEEN], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", default="20000,100000")
    parser.add_argument("--repetitions", type=int, default=1)
    parser.add_argument("--ray", action="store_true")
    parser.add_argument("--package", type=Path)
    asked = parser.parse_args()
    os.environ.pop("PYTHONPATH", None)
    cluster = _cluster() if asked.ray else None
    try:
        for chunks in map(int, asked.chunks.split(",")):
            measure(chunks, asked, cluster.address if cluster else "")
    finally:
        if cluster:
            cluster.shutdown()


if __name__ == "__main__":
    main()
