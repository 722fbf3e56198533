"""Qdrant Edge: the engine of Qdrant in this process, on a shard of files.

A shard holds vectors and nothing else: point i is chunk i, and text and metadata stay with the chunks, which the
process has anyway. It is created without a write-ahead log, so any number of processes open it at once.

The engine cannot open a shard without writing: it replaces small files of its own by the same content. Where nothing
may be written, it is given a copy.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import qdrant_edge as edge

from rag_harness.errors import CriticalError
from rag_harness.files.log import log
from rag_harness.protocols import Parts
from rag_harness.retrieval.indexes.shards import ShardFolder, copy_shard, temporary_folder
from rag_harness.settings.access import access_of
from rag_harness.types import Chunk, Hit, Matrix, Vector

GRAPH_FROM = 20_000
"""Chunks. Below, comparing with every vector takes under 2 ms, and a graph half a minute to build."""
EDGES, BUILD_DEPTH, SEARCH_DEPTH = 32, 128, 200
"""Of the HNSW graph: m, ef_construct and ef. Measured by ``benchmarks/index.py``."""
LAYOUT = 1
"""Raised when a shard is made differently: older ones are then not opened."""

_BATCH = 1_000
_SAMPLE = "sample.txt"
_PROCESS = uuid4().hex


class EdgeIndex:
    """Vectors in a shard, cosine; exact below ``GRAPH_FROM`` chunks, by an HNSW graph from there on.

    Args:
        folder: where the shard is kept.
        keeps: whether it may be written; if not, one that is there is copied, and else a temporary one is built.
        exact: compare with every vector, however many; a temporary shard does so too, its graph would cost more.
        rebuild_in: a run in which a shard that another run built does not count.
    """

    def __init__(self, folder: ShardFolder, keeps: bool = True, exact: bool = False, rebuild_in: str = "") -> None:
        self._folder, self._keeps, self._exact, self._rebuild_in = folder, keeps, exact, rebuild_in
        self._chunks: list[Chunk] = []
        self._shard: edge.EdgeShard | None = None
        self._said = ""

    def open(self, chunks: Sequence[Chunk]) -> bool:
        """Open the shard of these chunks; False where there is none that can be used, and the log says why."""
        if chunks:
            self._shard = self._kept(len(chunks))
            if self._shard is None:
                return False
            log.info("Opened the index of %d chunks in %s", len(chunks), self._folder.path)
        self._chunks = list(chunks)
        return True

    def upsert(self, chunks: Sequence[Chunk], vectors: Matrix) -> None:
        """Build the shard, unless a complete one is there. ``vectors`` has shape (n, d); row i belongs to chunk i."""
        try:
            if not self.open(chunks):
                kept = self._build_kept(vectors) if self._keeps else None
                self._shard = self._build_temporary(vectors) if kept is None else kept
        except Exception as error:
            raise CriticalError(f"The Qdrant index cannot be built: {type(error).__name__}: {error}") from error
        self._chunks = list(chunks)

    def search(self, vector: Vector, k: int) -> list[Hit]:
        """Return the ``k`` nearest chunks by cosine; equal scores in the order of the chunks."""
        if self._shard is None:
            return []
        try:
            found = self._nearest(self._shard, vector, k)
        except Exception as error:
            raise CriticalError(f"The Qdrant index does not answer: {type(error).__name__}: {error}") from error
        return [Hit(self._chunks[position], -score, rank) for rank, (score, position) in enumerate(found, 1)]

    def __len__(self) -> int:
        return len(self._chunks)

    def _nearest(self, shard: edge.EdgeShard, vector: Vector, k: int) -> list[tuple[float, int]]:
        query = edge.Query.Nearest(vector.tolist())
        wanted, total = k + 1, len(self._chunks)
        while True:
            points = shard.search(edge.SearchRequest(query, min(wanted, total), params=self._params(wanted)))
            # The engine cuts a tie anywhere: ask for more until all points that tie with the k-th are there.
            if len(points) <= k or points[-1].score < points[k - 1].score or wanted >= total:
                break
            wanted *= 4
        return sorted((-point.score, int(point.id)) for point in points)[:k]

    def _params(self, wanted: int) -> edge.SearchParams:
        if self._exact or len(self._chunks) < GRAPH_FROM:
            return edge.SearchParams(exact=True)
        rescored = edge.QuantizationSearchParams(rescore=True, oversampling=2.0)
        return edge.SearchParams(hnsw_ef=max(SEARCH_DEPTH, 2 * wanted), quantization=rescored)

    def _kept(self, count: int) -> edge.EdgeShard | None:
        """Return the shard that is kept, None where it is not there, is damaged, or is to be built anew."""
        folder = self._folder
        if not folder.path.is_dir() or (self._rebuild_in and not folder.built_by(self._rebuild_in)):
            return None
        fault = folder.fault(count)
        if not fault:
            try:
                return _load(self._place(), count)
            except (ValueError, OSError) as error:
                fault = str(error)
        if fault != self._said:
            log.warning("The index in %s is damaged and is built again: %s", folder.path, fault)
        self._said = fault
        return None

    def _place(self) -> Path:
        if self._keeps and os.access(self._folder.path, os.W_OK):
            return self._folder.path
        copied = temporary_folder(self)
        copy_shard(self._folder.path, copied)
        return copied

    def _build_kept(self, vectors: Matrix) -> edge.EdgeShard | None:
        """Return the shard, built and kept; None where the folder cannot be written."""
        try:
            with self._folder.alone():
                # Another process may have built it while this one waited.
                if (shard := self._kept(len(vectors))) is None:
                    run = self._rebuild_in or _run()
                    with self._folder.building(len(vectors), run) as made:
                        _write(made, vectors)
                    shard = _load(self._folder.path, len(vectors))
                return shard
        except OSError as error:
            log.warning("The index cannot be kept in %s: %s", self._folder.path.parent, error)
            return None

    def _build_temporary(self, vectors: Matrix) -> edge.EdgeShard:
        self._exact = True
        return _build(temporary_folder(self), vectors, graph=False)


def _write(folder: Path, vectors: Matrix) -> None:
    """Build a shard that is to be kept."""
    shard = _build(folder, vectors, graph=len(vectors) >= GRAPH_FROM)
    (folder / _SAMPLE).write_text(_sample(shard, len(vectors)), encoding="ascii")
    shard.flush()
    shard.close()
    # The engine completes its configuration when it first loads a shard.
    _load(folder, len(vectors)).close()


def _build(folder: Path, vectors: Matrix, graph: bool) -> edge.EdgeShard:
    log.info("Indexing %d chunks in %s%s", len(vectors), folder, ", with an HNSW graph" if graph else "")
    shard = edge.EdgeShard.create(str(folder), _config(vectors.shape[1], graph))
    for start in range(0, len(vectors), _BATCH):
        rows = vectors[start : start + _BATCH].tolist()
        points = [edge.Point(position, row) for position, row in enumerate(rows, start)]
        shard.update(edge.UpdateOperation.upsert_points(points))
    if graph:
        shard.optimize()
    return shard


def _config(dimension: int, graph: bool) -> edge.EdgeConfig:
    # One thread: there is one segment to search.
    config: dict[str, Any] = {
        "vectors": edge.EdgeVectorParams(dimension, edge.Distance.Cosine),
        "max_search_threads": 1,
    }
    if graph:
        # The graph is walked on bytes, a quarter of the memory to read; what it finds is scored on the vectors.
        config |= {
            "hnsw_config": edge.HnswIndexConfig(EDGES, BUILD_DEPTH, full_scan_threshold=1),
            "quantization_config": edge.ScalarQuantizationConfig(edge.ScalarType.Int8, quantile=0.99),
            "optimizers": edge.EdgeOptimizersConfig(
                indexing_threshold=1, default_segment_number=1, max_segment_size=1 << 40
            ),
        }
    return edge.EdgeConfig(wal_enabled=False, **config)


def _load(folder: Path, count: int) -> edge.EdgeShard:
    """Open a shard.

    Raises:
        ValueError: it is not what was built: the engine refuses it, or points or vectors are not the same.
    """
    _read_ahead(folder)
    try:
        shard = edge.EdgeShard.load(str(folder))
        found = shard.info().points_count
        sample = _sample(shard, count)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of the engine is no Exception
        raise ValueError(f"the engine says {type(error).__name__}: {error}") from error
    if found != count:
        raise ValueError(f"it holds {found} points, not {count}")
    if sample != (folder / _SAMPLE).read_text(encoding="ascii"):
        raise ValueError("its vectors are not those that were written")
    return shard


def _read_ahead(folder: Path) -> None:
    """Read what the engine reads page by page and then has the system forget: 38 MB in 0.05 s instead of 2 s."""
    for file in folder.glob("segments/*/vector_storage/quantized.data"):
        with file.open("rb", buffering=0) as read:
            while read.read(1 << 22):
                pass


def _sample(shard: edge.EdgeShard, count: int) -> str:
    """Return a digest of some vectors: the engine opens a file of zeros, as a power cut leaves it, in silence."""
    positions: list[int | UUID | str] = list(range(0, count, count // 64 + 1))
    vectors = {point.id: point.vector for point in shard.retrieve(positions, False, True)}
    return blake2b(repr([vectors.get(position) for position in positions]).encode(), digest_size=16).hexdigest()


def _run() -> str:
    """Name the run that this process belongs to: xdist's, or its own."""
    return os.environ.get("PYTEST_XDIST_TESTRUNUID", _PROCESS)


def create(parts: Parts) -> EdgeIndex:
    """Return the index below the cache folder, for the content of that digest."""
    settings = parts.settings
    name = f"{parts.content_digest[:16]}-edge{version('qdrant-edge-py')}-{LAYOUT}"
    return EdgeIndex(
        ShardFolder(settings.path(settings.cache_dir) / "indexes" / name, parts.content_digest),
        keeps=access_of(settings).keeps != "nothing",
        # What is recorded must be found again on any machine, and two graphs over the same vectors differ.
        exact=settings.mode in ("record", "replay"),
        rebuild_in=_run() if settings.overwrite else "",
    )
