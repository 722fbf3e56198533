"""What the options of a graph cost in bytes and in recall, by Qdrant's own engine: a shard of Edge made as they say.

python benchmarks/graph_options.py                  20,000 vectors of 384 numbers; half a minute of a processor
python benchmarks/graph_options.py --chunks 5000    quickly

One shard in this process, no server and no cluster. Bytes are those of its files, which are mapped into memory. The
vectors are those of ``index.py``: texts near 2,000 topics. Each query is asked for 10 chunks.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import qdrant_edge as edge
from index import QUERIES, K, like_text
from side_by_side import show

from rag_harness.core.types import Matrix
from rag_harness.retrieval.indexes.server_connection import GraphOptions

OPTIONS = [
    GraphOptions(),
    GraphOptions(quantize="int8"),
    GraphOptions(quantize="int8", rescore=False),
    GraphOptions(quantize="binary"),
    GraphOptions(quantize="binary", oversampling=8.0),
    GraphOptions(m=32, ef_construct=200, ef=256),
]
_BATCH = 1_000


def quantization(kind: str) -> Any:
    if kind == "none":
        return None
    return (
        edge.BinaryQuantizationConfig(always_ram=True)
        if kind == "binary"
        else edge.ScalarQuantizationConfig(edge.ScalarType.Int8, quantile=0.99, always_ram=True)
    )


def built(folder: Path, rows: Matrix, graph: GraphOptions) -> edge.EdgeShard:
    chosen: dict[str, Any] = {"quantization_config": made} if (made := quantization(graph.quantize)) else {}
    config = edge.EdgeConfig(
        vectors=edge.EdgeVectorParams(rows.shape[1], edge.Distance.Cosine),
        hnsw_config=edge.HnswIndexConfig(graph.m, graph.ef_construct, full_scan_threshold=1),
        optimizers=edge.EdgeOptimizersConfig(indexing_threshold=1, default_segment_number=1, max_segment_size=1 << 40),
        wal_enabled=False,
        max_search_threads=1,
        **chosen,
    )
    shard = edge.EdgeShard.create(str(folder), config)
    for start in range(0, len(rows), _BATCH):
        points = [edge.Point(n, row) for n, row in enumerate(rows[start : start + _BATCH].tolist(), start)]
        shard.update(edge.UpdateOperation.upsert_points(points))
    shard.optimize()
    shard.flush()
    return shard


def asked(shard: edge.EdgeShard, queries: Matrix, graph: GraphOptions) -> tuple[list[set[int]], float]:
    """Return the positions found for each query, and the median milliseconds of one."""
    rescored = edge.QuantizationSearchParams(rescore=graph.rescore, oversampling=graph.oversampling)
    params = edge.SearchParams(hnsw_ef=graph.ef, quantization=None if graph.quantize == "none" else rescored)
    found, times = [], []
    for query in queries:
        started = time.perf_counter()
        points = shard.search(edge.SearchRequest(edge.Query.Nearest(query.tolist()), K, params=params))
        times.append(time.perf_counter() - started)
        found.append({int(point.id) for point in points})
    return found, statistics.median(times) * 1000


def file_bytes(folder: Path, *parts: str) -> int:
    """Return what the files below folders of these names take on disk, holes not counted."""
    files = [file for file in folder.rglob("*") if file.is_file() and any(part in str(file) for part in parts)]
    return sum(file.stat().st_blocks * 512 for file in files)


class Shards:
    """A shard for each graph; options of a search alone share one."""

    def __init__(self, folder: Path, rows: Matrix) -> None:
        self._folder, self._rows = folder, rows
        self._made: dict[str, tuple[edge.EdgeShard, float]] = {}

    def row(self, graph: GraphOptions, queries: Matrix, exact: list[set[int]]) -> list[str]:
        """Return the row of the table."""
        folder = self._folder / graph.name
        if graph.name not in self._made:
            folder.mkdir()
            started = time.process_time()
            self._made[graph.name] = built(folder, self._rows, graph), time.process_time() - started
        shard, seconds = self._made[graph.name]
        found, milliseconds = asked(shard, queries, graph)
        recall = sum(len(some & best) for some, best in zip(found, exact, strict=True)) / (len(queries) * K)
        smaller, all_vectors = file_bytes(folder, "quantized"), file_bytes(folder, "vector_storage")
        sizes = [all_vectors - smaller, smaller, file_bytes(folder, "vector_index")]
        each = [f"{size / len(self._rows):,.0f}" for size in sizes]
        return [said(graph), f"{seconds:.0f} s", *each, f"{milliseconds:.2f} ms", f"{recall:.4f}"]


def said(graph: GraphOptions) -> str:
    name = f"m={graph.m} ef_construct={graph.ef_construct} ef={graph.ef} quantize={graph.quantize}"
    if graph.quantize == "none":
        return name
    return f"{name} oversampling={graph.oversampling:g}" if graph.rescore else f"{name} rescore=no"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", type=int, default=20_000)
    count = parser.parse_args().chunks
    rows, queries = like_text(count, 0), like_text(QUERIES, 1)
    exact = [set(each[:K].tolist()) for each in np.argsort(-(queries @ rows.T), axis=1)]
    with tempfile.TemporaryDirectory() as folder:
        shards = Shards(Path(folder), rows)
        table = [shards.row(graph, queries, exact) for graph in OPTIONS]
    header = ["options", "build, processor", "vector B", "smaller B", "graph B", "search p50", f"recall@{K}"]
    show(f"{count:,} chunks, {QUERIES} queries; bytes a chunk", header, table)


if __name__ == "__main__":
    main()
