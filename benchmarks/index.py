"""Three indexes side by side: Qdrant Edge as the harness uses it, qdrant-client's memory mode, and NumPy, exact.

python benchmarks/index.py                     20,000 and 100,000 chunks of 384 numbers; minutes, most of it building
python benchmarks/index.py --sizes 2000        quickly
python benchmarks/index.py --vectors FILE.npy  vectors of your own, rows of unit length; the last 200 are the queries
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from side_by_side import show

from rag_harness.core.protocols import Index
from rag_harness.core.types import Chunk, Hit, Matrix, Vector
from rag_harness.retrieval.indexes.edge import EdgeIndex
from rag_harness.retrieval.indexes.server import QdrantIndex
from rag_harness.retrieval.indexes.server_collection import CollectionContent, ServerCollection
from rag_harness.retrieval.indexes.server_connection import ClusterOptions, connect
from rag_harness.retrieval.indexes.shard_files import ShardFolder

DIMENSION, QUERIES, K = 384, 200, 10
DIGEST = "0" * 32

_OPENING = """
import sys, time
from pathlib import Path
from rag_harness.core.types import Chunk
from rag_harness.retrieval.indexes.shard_files import ShardFolder
from rag_harness.retrieval.indexes.edge import EdgeIndex
chunks = [Chunk(f"p#{n}", "p", "", 0, 0) for n in range(int(sys.argv[2]))]
started = time.perf_counter()
index = EdgeIndex(ShardFolder(Path(sys.argv[1]), "0" * 32))
assert index.open(chunks)
print(time.perf_counter() - started)
"""
_IMPORTING = "import numpy, sys, time; t = time.perf_counter(); __import__(sys.argv[1]); print(time.perf_counter() - t)"


class Exact:
    """Every cosine by one product of matrices: what the others are held against."""

    def upsert(self, chunks: Sequence[Chunk], vectors: Matrix) -> None:
        self._chunks, self._vectors = list(chunks), vectors

    def search(self, vector: Vector, k: int) -> list[Hit]:
        scores = self._vectors @ vector
        best = np.argpartition(-scores, k)[:k]
        best = best[np.argsort(-scores[best], kind="stable")]
        return [Hit(self._chunks[n], float(scores[n]), rank) for rank, n in enumerate(best.tolist(), 1)]

    def __len__(self) -> int:
        return len(self._chunks)


def like_text(count: int, seed: int) -> Matrix:
    """Return unit vectors (count, 384) of topics that share subjects: 40 subjects, 2,000 topics, texts near a topic."""
    fixed, free = np.random.default_rng(7), np.random.default_rng(seed)
    subjects = fixed.normal(size=(40, DIMENSION))
    topics = subjects[fixed.integers(40, size=2000)] + fixed.normal(size=(2000, DIMENSION))
    made = topics[free.integers(2000, size=count)] + free.normal(size=(count, DIMENSION))
    unit: Matrix = (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)
    return unit


def compare(vectors: Matrix, queries: Matrix, folder: Path) -> list[list[str]]:
    """Build all three, ask each query of each in turn, and return the rows of the table."""
    chunks = [Chunk(f"p#{n}", "p", "", 0, 0) for n in range(len(vectors))]
    shard = folder / f"edge-{len(vectors)}"
    peers: dict[str, Index] = {
        "Edge": EdgeIndex(ShardFolder(shard, DIGEST)),
        "client, memory": QdrantIndex(
            ServerCollection(connect("", ""), "benchmark", "", ClusterOptions()), CollectionContent(DIGEST, "random", 0)
        ),
        "NumPy, exact": Exact(),
    }
    building = {name: seconds(lambda peer=peer: peer.upsert(chunks, vectors)) for name, peer in peers.items()}  # type: ignore[misc]
    times, found = search(peers, queries)
    opening = {"Edge": f"{opened_in(shard, len(vectors)) * 1000:.0f} ms"}
    exact = found["NumPy, exact"]
    return [
        [
            f"{len(vectors):,} {name}",
            f"{building[name]:.1f} s",
            opening.get(name, "-"),
            f"{statistics.median(times[name]) * 1000:.2f} ms",
            f"{recall(found[name], exact):.4f}",
        ]
        for name in peers
    ]


def search(peers: dict[str, Index], queries: Matrix) -> tuple[dict[str, list[float]], dict[str, list[set[str]]]]:
    """Return seconds and chunk ids found, by peer and query; each query goes to all peers before the next."""
    times: dict[str, list[float]] = {name: [] for name in peers}
    found: dict[str, list[set[str]]] = {name: [] for name in peers}
    for query in queries:
        for name, peer in peers.items():
            started = time.perf_counter()
            hits = peer.search(query, K)
            times[name].append(time.perf_counter() - started)
            found[name].append({hit.chunk.chunk_id for hit in hits})
    return times, found


def recall(found: Sequence[set[str]], exact: Sequence[set[str]]) -> float:
    """Return the share of the exact hits that were found, over all queries."""
    return sum(len(some & best) for some, best in zip(found, exact, strict=True)) / sum(map(len, exact))


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def opened_in(shard: Path, count: int) -> float:
    """Return the median seconds in which a fresh process opens the shard, imports not counted."""
    return in_fresh_process(_OPENING, shard, count)


def in_fresh_process(code: str, *arguments: object, runs: int = 5) -> float:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    printed = [subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(runs)]
    return statistics.median(float(text) for text in printed)


def given_vectors(file: Path) -> tuple[Matrix, Matrix]:
    vectors: Matrix = np.load(file).astype(np.float32)
    return vectors[:-QUERIES], vectors[-QUERIES:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[20_000, 100_000])
    parser.add_argument("--vectors", type=Path)
    options = parser.parse_args()
    if options.vectors:
        data = [given_vectors(options.vectors)]
    else:
        data = [(like_text(size, 0), like_text(QUERIES, 1)) for size in options.sizes]
    with tempfile.TemporaryDirectory() as folder:
        rows = [row for vectors, queries in data for row in compare(vectors, queries, Path(folder))]
    show(f"{QUERIES} queries, k = {K}", ["chunks, index", "build", "open again", "search p50", f"recall@{K}"], rows)
    imports = [
        [name, f"{in_fresh_process(_IMPORTING, name) * 1000:.0f} ms"] for name in ("qdrant_edge", "qdrant_client")
    ]
    show("import, after NumPy", ["package", "median of 5"], imports)


if __name__ == "__main__":
    main()
