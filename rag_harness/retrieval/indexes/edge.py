"""Indexes of Qdrant Edge in this process: shards that are built, copied, searched and changed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from threading import Lock
from time import sleep
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import numpy as np
import qdrant_edge as edge

from rag_harness.core.cache import check_room, fills_when_read, missing, note_use, reserve, used_bytes
from rag_harness.core.errors import CriticalError, NoRoomError
from rag_harness.core.files import regular_bytes
from rag_harness.core.log import log
from rag_harness.core.protocols import RetrievalParts
from rag_harness.core.settings.table import access_of
from rag_harness.core.types import Chunk, Hit, Matrix, Vector
from rag_harness.retrieval.indexes import LiveIndexError
from rag_harness.retrieval.indexes.edge_trial import shard_fault
from rag_harness.retrieval.indexes.shard_files import (
    MARKER,
    Change,
    ContentDigest,
    Numbers,
    ShardFolder,
    ShardPoints,
    change_points,
    copy_shard,
    temporary_folder,
)

# Shards of Qdrant Edge: build, write, open and search. Only ``edge_trial`` also imports the engine.
#
# A shard holds only vectors; text and metadata stay with the chunks, which the process has anyway. In a new one
# point i is chunk i; in one that was changed, ``shard_files`` says which.
# A shard has no write-ahead log, so several processes can open it at once.
#
# The engine cannot open a shard without writing: it replaces some small files of its own with the same content.

EDGES, BUILD_DEPTH, SEARCH_DEPTH = 32, 128, 200
"""Parameters of the HNSW graph: m, ef_construct and ef. ``benchmarks/index.py`` measured them."""

Shard = edge.EdgeShard
_BATCH = 1_000
_SAMPLE = "sample.txt"
_SPARE = 8 << 20
"""Bytes of a shard besides its vectors. With a graph, the vectors are written twice."""
_CHUNK = 32 << 20
"""Least bytes of a file of vectors."""


def build_shard(folder: Path, vectors: Matrix, graph: bool) -> Shard:
    """Build a shard in an empty folder, with or without an HNSW graph. ``vectors`` has shape (n, d).

    Raises:
        NoRoomError: the disk is full. The engine writes memory-mapped files, and would crash the process.
    """
    spare = _SPARE + (_CHUNK if fills_when_read(folder) else 0)
    check_room(folder, vectors.nbytes * (3 if graph else 1) + spare)
    shard = Shard.create(str(folder), shard_config(vectors.shape[1], graph, wal=False))
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
    """Check that the disk has space for a copy of ``taken`` bytes and new vectors of ``added`` bytes.

    Raises:
        NoRoomError: it has not.
    """
    check_room(folder, taken + added + _SPARE + (_CHUNK if fills_when_read(folder) else 0))


def change_shard(shard: Shard, removed: Sequence[int], added: Sequence[int], vectors: Matrix) -> None:
    """Remove points of a shard and add others, which are in no graph: each search compares them one by one."""
    if removed:
        shard.update(edge.UpdateOperation.delete_points(list(removed)))
    _upsert(shard, added, vectors)


def write_shard(folder: Path, vectors: Matrix, graph: bool) -> None:
    """Build a permanent shard. All of it is on disk when this returns."""
    complete_shard(folder, build_shard(folder, vectors, graph), range(len(vectors)))


def complete_shard(folder: Path, shard: Shard, numbers: Sequence[int] | Numbers) -> None:
    """Close a shard with these points. All of it is on disk when this returns."""
    (folder / _SAMPLE).write_text(vectors_digest(shard, numbers), encoding="ascii")
    shard.flush()
    shard.close()
    # The engine completes its configuration at the first load of a shard.
    load_shard(folder, numbers).close()


def load_shard(folder: Path, numbers: Sequence[int] | Numbers) -> Shard:
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
    except BaseException as error:  # a panic of the engine is not an Exception
        raise ValueError(f"the engine says {type(error).__name__}: {error}") from error
    if found != len(numbers):
        raise ValueError(f"it holds {found} points, not {len(numbers)}")
    if vectors != regular_bytes(folder / _SAMPLE).decode("ascii", "replace"):
        raise ValueError("its vectors are not those that were written")
    return shard


def nearest_in_shard(shard: Shard, vector: Vector, limit: int, exact: bool) -> list[tuple[float, int]]:
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


def shard_config(dimension: int, graph: bool, wal: bool) -> edge.EdgeConfig:
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


# Makes a shard of an older one that has most of its texts: its graph is copied, not made again.
#
# What the graph does not have is compared one by one, and what it has in vain is passed over. Where both together are
# more than a tenth of it, a new graph is worth its time.

MOST_BESIDE = 0.1
"""The largest share of points beside the graph: 3,000 of 30,000, compared in under a millisecond."""
_LOOKED_AT = 4
"""Older shards that are looked at, the last used first."""


class Older(NamedTuple):
    """A shard that can be changed into the wanted one, how, and how many points were in its graph."""

    folder: ShardFolder
    points: ShardPoints
    change: Change
    in_graph: int


class OlderShardError(Exception):
    """An older shard is damaged, or has gone meanwhile."""


def older_shard(wanted: ShardFolder, points: ShardPoints) -> Older | None:
    """Return the shard beside ``wanted`` that needs the least change; None where each would need too much."""
    found = [each for folder in _beside(wanted) if (each := _changed(folder, points)) is not None]
    return min(found, key=lambda each: each.change.beside, default=None)


def write_changed(made: Path, older: Older, vectors: Matrix) -> None:
    """Write the changed shard into an empty folder; all of it is on disk then.

    Raises:
        OlderShardError: the older one cannot be used.
        NoRoomError: the disk is full.
        OSError: the folder cannot be written.
    """
    check_change(made, used_bytes(older.folder.path), vectors[older.change.added].nbytes)
    count = len(older.points.numbers)
    try:
        copy_shard(older.folder.path, made)
        # The copy is looked at, not the original: that may have gone while it was copied.
        if fault := ShardFolder(made, older.folder.digest).fault(count):
            raise ValueError(fault)
        shard = load_shard(made, older.points.numbers)
    except (ValueError, OSError) as error:
        raise OlderShardError(str(error)) from error
    (made / MARKER).unlink()
    change_shard(shard, older.change.removed, _added(older.change), vectors[older.change.added])
    complete_shard(made, shard, older.change.points.numbers)
    older.change.points.write(made)


def _added(change: Change) -> list[int]:
    return [int(change.points.numbers[place]) for place in change.added]


def _beside(wanted: ShardFolder) -> list[ShardFolder]:
    """Return other shards of the same embedder with a graph, the last used first."""
    _, _, kind = wanted.path.name.partition("-")
    found = [each for each in wanted.path.parent.glob(f"[!.]*-{kind}") if each.is_dir() and each != wanted.path]
    kept = [shard for path in found if (shard := ShardFolder.kept(path)) and shard.embedder == wanted.embedder]
    return sorted(kept, key=lambda shard: -shard.path.stat().st_mtime)[:_LOOKED_AT]


def _changed(folder: ShardFolder, points: ShardPoints) -> Older | None:
    try:
        in_graph, before = folder.said("graph"), ShardPoints.of(folder.path, folder.said("count"))
    except (OSError, ValueError):
        return None
    if not in_graph or not before.texts:
        return None
    found = change_points(before, points, in_graph)
    return Older(folder, before, found, in_graph) if found.beside <= MOST_BESIDE * in_graph else None


GRAPH_FROM = 20_000
"""Fewest chunks for a graph. With fewer, comparing all vectors takes under 2 ms, and building a graph seconds."""
LAYOUT = 2
"""Version of the shards' format. After a change, older shards are not opened."""

_PROCESS = uuid4().hex


class EdgeIndex:
    """Vectors in a shard, cosine. Search is exact below ``GRAPH_FROM`` chunks, else by an HNSW graph.

    Args:
        folder: the folder of the shard.
        keeps: whether it may be written. If not, an existing shard is copied, or a temporary one is built.
        exact: whether to compare all vectors, however many. A temporary shard does so: a graph would cost more.
        rebuild_in: a run that must not use shards of other runs.
    """

    def __init__(self, folder: ShardFolder, keeps: bool = True, exact: bool = False, rebuild_in: str = "") -> None:
        self._folder, self._keeps, self._exact, self._rebuild_in = folder, keeps, exact, rebuild_in
        self._chunks: list[Chunk] = []
        self._shard: Shard | None = None
        self._places: dict[int, int] = {}
        self._said = ""

    def open(self, chunks: Sequence[Chunk]) -> bool:
        """Open the shard of these chunks. Return False if no shard can be used. The log has the reason."""
        if chunks:
            self._shard = self._kept(len(chunks))
            if self._shard is None:
                return False
            log.info("Opened the index of %d chunks in %s", len(chunks), self._folder.path)
        self._chunks = list(chunks)
        return True

    def upsert(self, chunks: Sequence[Chunk], vectors: Matrix) -> None:
        """Build the shard, unless a complete one exists. ``vectors`` has shape (n, d); row i belongs to chunk i."""
        try:
            if not self.open(chunks):
                kept = self._build_kept(chunks, vectors) if self._keeps else None
                self._shard = self._build_temporary(vectors) if kept is None else kept
        except Exception as error:
            raise CriticalError(f"The Qdrant index cannot be built: {type(error).__name__}: {error}") from error
        self._chunks = list(chunks)

    def search(self, vector: Vector, k: int) -> list[Hit]:
        """Return the ``k`` nearest chunks by cosine. Ties are in the order of the chunks."""
        if self._shard is None:
            return []
        try:
            found = self._nearest(self._shard, vector, k)
        except Exception as error:
            raise CriticalError(f"The Qdrant index does not answer: {type(error).__name__}: {error}") from error
        return [Hit(self._chunks[position], score, rank) for rank, (score, position) in enumerate(found, 1)]

    def __len__(self) -> int:
        return len(self._chunks)

    @property
    def compares_all(self) -> bool:
        """Whether a search compares all vectors."""
        return self._exact or len(self._chunks) < GRAPH_FROM

    def _nearest(self, shard: Shard, vector: Vector, k: int) -> list[tuple[float, int]]:
        wanted, total = k + 1, len(self._chunks)
        found = nearest_in_shard(shard, vector, min(wanted, total), self.compares_all)
        # The engine may cut a tie, so ask for more until all ties with the k-th point are included.
        while wanted < total and len(found) > k and found[-1][0] == found[k - 1][0]:
            wanted *= 4
            found = nearest_in_shard(shard, vector, min(wanted, total), self.compares_all)
        placed = [(score, self._places[number]) for score, number in found] if self._places else found
        return sorted(placed, key=lambda point: (-point[0], point[1]))[:k]

    def _kept(self, count: int) -> Shard | None:
        """Return the stored shard. None where it is missing, damaged, or to be built again."""
        folder = self._folder
        if not folder.path.is_dir() or (self._rebuild_in and not folder.built_by(self._rebuild_in)):
            return None
        fault = folder.fault(count)
        if not fault:
            try:
                return self._load(self._place(), count)
            except (ValueError, OSError) as error:
                fault = str(error)
        if fault != self._said:
            log.warning("The index in %s is damaged and is built again: %s", folder.path, fault)
        self._said = fault
        return None

    def _load(self, place: Path, count: int) -> Shard:
        points = ShardPoints.of(place, count)
        shard = load_shard(place, points.numbers)
        self._places = points.places()
        return shard

    def _place(self) -> Path:
        if self._keeps and os.access(self._folder.path, os.W_OK):
            note_use(self._folder.path)
            return self._folder.path
        copied = temporary_folder(self)
        copy_shard(self._folder.path, copied)
        return copied

    def _build_kept(self, chunks: Sequence[Chunk], vectors: Matrix) -> Shard | None:
        """Build and store the shard, and return it. None where the folder cannot be written."""
        count = len(vectors)
        try:
            with self._folder.alone():
                # Another process may have built the shard while this one waited.
                if (shard := self._kept(count)) is None:
                    points = ShardPoints.fresh(chunk.text for chunk in chunks)
                    if not self._change_older(points, vectors):
                        self._build_new(points, vectors)
                    shard = self._load(self._folder.path, count)
                return shard
        except (OSError, NoRoomError) as error:
            log.warning("The index cannot be kept in %s: %s", self._folder.path.parent, error)
            return None

    def _build_new(self, points: ShardPoints, vectors: Matrix) -> None:
        count, graph = len(vectors), len(vectors) >= GRAPH_FROM
        log.info("Indexing %d chunks%s", count, ", with an HNSW graph" if graph else "")
        with self._folder.building(count, self._rebuild_in or _run(), count if graph else 0) as made:
            write_shard(made, vectors, graph)
            if graph:
                points.write(made)

    def _change_older(self, points: ShardPoints, vectors: Matrix) -> bool:
        """Make the shard from an older one. Return False where none can be used: then the graph is built in full."""
        if len(vectors) < GRAPH_FROM or self._rebuild_in or not self._folder.embedder:
            return False
        older = older_shard(self._folder, points)
        if older is None:
            return False
        removed, added = len(older.change.removed), len(older.change.added)
        log.info("Indexing %d of %d chunks beside an older graph; %d are gone", added, len(vectors), removed)
        try:
            with self._folder.building(len(vectors), _run(), older.in_graph) as made:
                write_changed(made, older, vectors)
        except OlderShardError as error:
            log.info("The index in %s cannot be changed: %s", older.folder.path, error)
            return False
        return True

    def _build_temporary(self, vectors: Matrix) -> Shard:
        log.info("Indexing %d chunks in this process alone", len(vectors))
        self._exact = True
        return build_shard(temporary_folder(self), vectors, graph=False)


def _run() -> str:
    """Return the name of this process's run: that of xdist, or its own."""
    return os.environ.get("PYTEST_XDIST_TESTRUNUID", _PROCESS)


def create(parts: RetrievalParts) -> EdgeIndex:
    """Return the index in the cache folder for the content digest."""
    settings = parts.settings
    embedder = ContentDigest(parts.embedder.model, parts.embedder.revision).hexdigest()
    name = f"{parts.content_digest[:16]}-edge{version('qdrant-edge-py')}-{LAYOUT}"
    return EdgeIndex(
        ShardFolder(settings.path(settings.cache_dir) / "indexes" / name, parts.content_digest, embedder),
        keeps=access_of(settings).keeps != "nothing",
        # A recording must be found on any machine, but two graphs over the same vectors differ.
        exact=settings.mode in ("record", "replay"),
        rebuild_in=_run() if settings.overwrite else "",
    )


# A shard of Qdrant Edge that changes while it is searched. The lock of its write-ahead log ensures one owner.
#
# The engine holds Python's lock while it works, so points are written in small batches. ``optimize`` makes the graph of
# 20,000 points in 15 s, so it runs only at the start of a server. Later points are searched exactly.
#
# The engine writes memory-mapped files, and crashes the process on a full disk. So room is reserved before each batch,
# and a little is kept free for new files.

LIVE_GRAPH_FROM = 20_000
"""Fewest points for a graph. With fewer, comparing all vectors takes under 3 ms."""
_LIVE_BATCH = 64
_FLUSH_AFTER = 2_000
"""Points after which the write-ahead log is truncated. Lost points are made again from the vectors."""
_PAGE = 10_000
_LIVE_SPARE = 4 << 20
"""Free bytes, besides the reserved ones, that writing points needs."""
_LEAST = 1 << 20
"""Free bytes that opening the shard, or removing points, needs."""
_AROUND = 16 << 10
"""Bytes of a batch besides its vectors, in any file."""


class EdgePoints:
    """The shard in ``folder``. It is made with the first points, because only they show the dimension.

    Args:
        folder: the folder of the shard.
        exact: whether to compare all vectors, however many there are.

    Raises:
        LiveIndexError: the existing shard cannot be opened.
        NoRoomError: the disk is full.
    """

    def __init__(self, folder: Path, exact: bool = False) -> None:
        self._folder, self._exact = folder, exact
        self._written, self._graph = 0, False
        self._fills: bool | None = None
        # Room that one thread has reserved must not be used by another.
        self._writing = Lock()
        self._shard: edge.EdgeShard | None = None
        if (folder / "edge_config.json").is_file():
            # When it opens a shard, the engine reads all of the vector files, also their unused part.
            check_room(folder, _LEAST + (missing(self._mapped()) if self._fills_when_read() else 0))
            if fault := shard_fault(folder):
                raise LiveIndexError(f"The vector index cannot be opened: {fault}")
            with _speaking("cannot be opened"):
                self._shard = edge.EdgeShard.load(str(folder))
        elif folder.exists():
            shutil.rmtree(folder)  # a process was killed while making it

    def add(self, ids: Sequence[int], vectors: Matrix) -> None:
        """Add points in batches. Other threads can work between the batches."""
        with _speaking("cannot be written"):
            for start in range(0, len(ids), _LIVE_BATCH):
                some = zip(
                    ids[start : start + _LIVE_BATCH],
                    vectors[start : start + _LIVE_BATCH].tolist(),
                    strict=True,
                )
                points = [edge.Point(number, row) for number, row in some]
                with self._writing:
                    shard = self._made(vectors.shape[1])
                    # Each number takes five bytes in the write-ahead log and four in the vectors.
                    self._make_room(len(points) * vectors.shape[1] * 8 + _AROUND, _LIVE_SPARE)
                    shard.update(edge.UpdateOperation.upsert_points(points))
                sleep(0)
            self._flush_after(len(ids))

    def remove(self, ids: Sequence[int]) -> None:
        """Remove points."""
        if self._shard is None or not ids:
            return
        with _speaking("cannot be written"):
            with self._writing:
                self._make_room(len(ids) * 16 + _AROUND, _LEAST)
                self._shard.update(edge.UpdateOperation.delete_points(list(ids)))
            self._flush_after(len(ids))

    def nearest(self, vector: Vector, limit: int) -> list[tuple[float, int]]:
        """Return the nearest points, by the graph if ``tidy`` has made one."""
        if self._shard is None:
            return []
        with _speaking("does not answer"):
            return nearest_in_shard(self._shard, vector, limit, exact=not self._graph)

    def tidy(self) -> None:
        """Make the graph if enough points are not in it yet, and delete removed points."""
        if self._shard is None or self._exact:
            return
        with _speaking("cannot be written"):
            about = self._shard.info()
            if about.points_count - about.indexed_vectors_count >= LIVE_GRAPH_FROM:
                self._make_graph(about.points_count)
            self._graph = self._shard.info().indexed_vectors_count > 0

    def ids(self) -> set[int]:
        """Return the numbers of all points."""
        if self._shard is None:
            return set()
        with _speaking("does not answer"):
            return set(_all_ids(self._shard))

    def vectors(self, ids: Sequence[int]) -> Mapping[int, Vector]:
        """Return the vectors of the shard."""
        if self._shard is None:
            return {}
        with _speaking("does not answer"):
            found = self._shard.retrieve(list(ids), False, True)
        # For a damaged shard, the engine returns points without a vector.
        return {int(point.id): np.array(each, np.float32) for point in found if isinstance(each := point.vector, list)}

    def close(self) -> None:
        """Write pending changes and close the shard."""
        if self._shard is not None:
            shard, self._shard = self._shard, None
            with _speaking("cannot be closed"):
                shard.flush()
                shard.close()

    def _make_graph(self, count: int) -> None:
        assert self._shard is not None
        try:
            # All vectors are written again, with their links.
            check_room(self._folder, 2 * used_bytes(self._folder) + _LIVE_SPARE)
        except NoRoomError as error:
            log.warning("No graph of %d points is made, and searching takes longer: %s", count, error)
            return
        log.info("Making the graph of %d points", count)
        self._shard.optimize()

    def _make_room(self, ahead: int, spare: int) -> None:
        if self._fills_when_read():
            # Reserved bytes there look like written ones, and the next start reads all of them.
            check_room(self._folder, spare + missing(self._mapped()))
        else:
            reserve(self._folder, ahead)
            check_room(self._folder, spare)

    def _mapped(self) -> Iterator[Path]:
        return self._folder.glob("segments/*/vector_storage/vectors/*.mmap")

    def _fills_when_read(self) -> bool:
        if self._fills is None:
            self._fills = fills_when_read(self._folder)
        return self._fills

    def _made(self, dimension: int) -> edge.EdgeShard:
        if self._shard is None:
            check_room(self._folder, _LIVE_SPARE)
            self._folder.mkdir(parents=True, exist_ok=True)
            self._shard = edge.EdgeShard.create(str(self._folder), shard_config(dimension, graph=True, wal=True))
        return self._shard

    def _flush_after(self, count: int) -> None:
        self._written += count
        if self._written >= _FLUSH_AFTER and self._shard is not None:
            self._shard.flush()
            self._written = 0


def _all_ids(shard: edge.EdgeShard) -> Iterator[int]:
    after: Any = None
    while True:
        asked = edge.ScrollRequest(offset=after, limit=_PAGE, with_payload=False, with_vector=False)
        found, after = shard.scroll(asked)
        yield from (int(point.id) for point in found)
        if after is None:
            return


@contextmanager
def _speaking(what: str) -> Iterator[None]:
    """Raise the engine's errors as a LiveIndexError that names the index."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit, GeneratorExit, NoRoomError):
        raise
    except BaseException as error:  # a panic of the engine is not an Exception
        raise LiveIndexError(f"The vector index {what}: {type(error).__name__}: {error}") from error
