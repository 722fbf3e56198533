"""Shards of Qdrant Edge: build, write, open and search. Only ``live_edge`` and ``edge_trial`` also import the engine.

A shard holds only vectors; text and metadata stay with the chunks, which the process has anyway. In a new one
point i is chunk i; in one that was changed, ``shard_points`` says which.
A shard has no write-ahead log, so several processes can open it at once.

The engine cannot open a shard without writing: it replaces some small files of its own with the same content.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any
from uuid import UUID

import qdrant_edge as edge

from rag_harness.files.regular import regular_bytes
from rag_harness.files.room import check_room, fills_when_read
from rag_harness.retrieval.indexes.shard_points import Numbers
from rag_harness.types import Matrix, Vector

EDGES, BUILD_DEPTH, SEARCH_DEPTH = 32, 128, 200
"""Parameters of the HNSW graph: m, ef_construct and ef. ``benchmarks/index.py`` measured them."""

Shard = edge.EdgeShard
_BATCH = 1_000
_SAMPLE = "sample.txt"
_SPARE = 8 << 20
"""Bytes of a shard besides its vectors. With a graph, the vectors are written twice."""
_CHUNK = 32 << 20
"""Least bytes of a file of vectors."""


def build(folder: Path, vectors: Matrix, graph: bool) -> Shard:
    """Build a shard in an empty folder, with or without an HNSW graph. ``vectors`` has shape (n, d).

    Raises:
        NoRoomError: the disk is full. The engine writes memory-mapped files, and would crash the process.
    """
    spare = _SPARE + (_CHUNK if fills_when_read(folder) else 0)
    check_room(folder, vectors.nbytes * (3 if graph else 1) + spare)
    shard = Shard.create(str(folder), config(vectors.shape[1], graph, wal=False))
    _upsert(shard, range(len(vectors)), vectors)
    if graph:
        shard.optimize()
    return shard


def _upsert(shard: Shard, numbers: Sequence[int], vectors: Matrix) -> None:
    for start in range(0, len(vectors), _BATCH):
        rows = vectors[start : start + _BATCH].tolist()
        points = [edge.Point(number, row) for number, row in zip(numbers[start : start + _BATCH], rows, strict=True)]
        shard.update(edge.UpdateOperation.upsert_points(points))


def check_change(folder: Path, taken: int, added: int) -> None:
    """Check that the disk has room for a copy of ``taken`` bytes and new vectors of ``added`` bytes.

    Raises:
        NoRoomError: it has not.
    """
    check_room(folder, taken + added + _SPARE + (_CHUNK if fills_when_read(folder) else 0))


def change(shard: Shard, removed: Sequence[int], added: Sequence[int], vectors: Matrix) -> None:
    """Remove points of a shard and add others, which are in no graph: each search compares them one by one."""
    if removed:
        shard.update(edge.UpdateOperation.delete_points(list(removed)))
    _upsert(shard, added, vectors)


def write(folder: Path, vectors: Matrix, graph: bool) -> None:
    """Build a permanent shard. All of it is on disk when this returns."""
    complete(folder, build(folder, vectors, graph), range(len(vectors)))


def complete(folder: Path, shard: Shard, numbers: Sequence[int] | Numbers) -> None:
    """Close a shard with these points. All of it is on disk when this returns."""
    (folder / _SAMPLE).write_text(vectors_digest(shard, numbers), encoding="ascii")
    shard.flush()
    shard.close()
    # The engine completes its configuration at the first load of a shard.
    load(folder, numbers).close()


def load(folder: Path, numbers: Sequence[int] | Numbers) -> Shard:
    """Open a shard with these points.

    Raises:
        ValueError: the shard is damaged: the engine refuses it, or points or vectors differ.
    """
    _read_ahead(folder)
    try:
        shard = Shard.load(str(folder))
        found = shard.info().points_count
        vectors = vectors_digest(shard, numbers)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of the engine is no Exception
        raise ValueError(f"the engine says {type(error).__name__}: {error}") from error
    if found != len(numbers):
        raise ValueError(f"it holds {found} points, not {len(numbers)}")
    if vectors != regular_bytes(folder / _SAMPLE).decode("ascii", "replace"):
        raise ValueError("its vectors are not those that were written")
    return shard


def nearest(shard: Shard, vector: Vector, limit: int, exact: bool) -> list[tuple[float, int]]:
    """Return cosine and number of the ``limit`` nearest points, best first. Ties are in any order."""
    rescored = edge.QuantizationSearchParams(rescore=True, oversampling=2.0)
    by_graph = edge.SearchParams(hnsw_ef=max(SEARCH_DEPTH, 2 * limit), quantization=rescored)
    params = edge.SearchParams(exact=True) if exact else by_graph
    points = shard.search(edge.SearchRequest(edge.Query.Nearest(vector.tolist()), limit, params=params))
    return [(point.score, int(point.id)) for point in points]


def vectors_digest(shard: Shard, numbers: Sequence[int] | Numbers) -> str:
    """Return a digest of some vectors. A power cut may leave a file of zeros, which the engine opens silently."""
    positions: list[int | UUID | str] = [int(number) for number in numbers[:: len(numbers) // 64 + 1]]
    vectors = {point.id: point.vector for point in shard.retrieve(positions, False, True)}
    return blake2b(repr([vectors.get(position) for position in positions]).encode(), digest_size=16).hexdigest()


def _read_ahead(folder: Path) -> None:
    """Read the files before the engine does. It reads them page by page: 38 MB take 2 s, but 0.05 s after this."""
    for file in folder.glob("segments/*/vector_storage/quantized.data"):
        with file.open("rb", buffering=0) as read:
            while read.read(1 << 22):
                pass


def config(dimension: int, graph: bool, wal: bool) -> edge.EdgeConfig:
    """Return the configuration of a shard: with a graph or for exact search, with or without a write-ahead log."""
    # One thread, because there is only one segment to search.
    vectors = edge.EdgeVectorParams(dimension, edge.Distance.Cosine)
    chosen: dict[str, Any] = {"vectors": vectors, "max_search_threads": 1}
    if graph:
        # The graph search uses int8 vectors, a quarter of the memory. Its results are scored with the full vectors.
        chosen |= {
            "hnsw_config": edge.HnswIndexConfig(EDGES, BUILD_DEPTH, full_scan_threshold=1),
            "quantization_config": edge.ScalarQuantizationConfig(edge.ScalarType.Int8, quantile=0.99),
            "optimizers": edge.EdgeOptimizersConfig(
                indexing_threshold=1, default_segment_number=1, max_segment_size=1 << 40
            ),
        }
    return edge.EdgeConfig(wal_enabled=wal, **chosen)
