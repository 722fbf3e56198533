"""The index in this process: a shard of Qdrant Edge below the cache folder, named by its content."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from uuid import uuid4

from rag_harness.errors import CriticalError, NoRoomError
from rag_harness.files.cache_folder import note_use
from rag_harness.files.log import log
from rag_harness.protocols import RetrievalParts
from rag_harness.retrieval.content_digest import ContentDigest
from rag_harness.retrieval.indexes import edge_shard
from rag_harness.retrieval.indexes.shard_change import OlderShardError, older_shard, write_changed
from rag_harness.retrieval.indexes.shard_points import ShardPoints
from rag_harness.retrieval.indexes.shards import ShardFolder, copy_shard, temporary_folder
from rag_harness.settings.access import access_of
from rag_harness.types import Chunk, Hit, Matrix, Vector

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
        self._shard: edge_shard.Shard | None = None
        self._places: dict[int, int] = {}
        self._said = ""

    def open(self, chunks: Sequence[Chunk]) -> bool:
        """Open the shard of these chunks. Return False if no shard can be used; the log says why."""
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

    def _nearest(self, shard: edge_shard.Shard, vector: Vector, k: int) -> list[tuple[float, int]]:
        wanted, total = k + 1, len(self._chunks)
        found = edge_shard.nearest(shard, vector, min(wanted, total), self.compares_all)
        # The engine may cut a tie, so ask for more until all ties with the k-th point are included.
        while wanted < total and len(found) > k and found[-1][0] == found[k - 1][0]:
            wanted *= 4
            found = edge_shard.nearest(shard, vector, min(wanted, total), self.compares_all)
        placed = [(score, self._places[number]) for score, number in found] if self._places else found
        return sorted(placed, key=lambda point: (-point[0], point[1]))[:k]

    def _kept(self, count: int) -> edge_shard.Shard | None:
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

    def _load(self, place: Path, count: int) -> edge_shard.Shard:
        points = ShardPoints.of(place, count)
        shard = edge_shard.load(place, points.numbers)
        self._places = points.places()
        return shard

    def _place(self) -> Path:
        if self._keeps and os.access(self._folder.path, os.W_OK):
            note_use(self._folder.path)
            return self._folder.path
        copied = temporary_folder(self)
        copy_shard(self._folder.path, copied)
        return copied

    def _build_kept(self, chunks: Sequence[Chunk], vectors: Matrix) -> edge_shard.Shard | None:
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
            edge_shard.write(made, vectors, graph)
            if graph:
                points.write(made)

    def _change_older(self, points: ShardPoints, vectors: Matrix) -> bool:
        """Make the shard of an older one. Return False where none can be used: then the graph is made anew."""
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

    def _build_temporary(self, vectors: Matrix) -> edge_shard.Shard:
        log.info("Indexing %d chunks, for this process alone", len(vectors))
        self._exact = True
        return edge_shard.build(temporary_folder(self), vectors, graph=False)


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
