"""A shard of Qdrant Edge that changes while it is searched. The lock of its write-ahead log ensures one owner.

The engine holds Python's lock while it works, so points are written in small batches. ``optimize`` makes the graph of
20,000 points in 15 s, so it runs only at the start of a server. Later points are searched exactly.

The engine writes memory-mapped files, and crashes the process on a full disk. So room is reserved before each batch,
and a little is kept free for new files.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from time import sleep
from typing import Any

import numpy as np
import qdrant_edge as edge

from rag_harness.errors import NoRoomError
from rag_harness.files.log import log
from rag_harness.files.room import check_room, fills_when_read, missing, reserve, used_bytes
from rag_harness.retrieval.indexes.edge_shard import config, nearest
from rag_harness.retrieval.indexes.edge_trial import shard_fault
from rag_harness.retrieval.indexes.live import LiveIndexError
from rag_harness.types import Matrix, Vector

GRAPH_FROM = 20_000
"""Fewest points for a graph. With fewer, comparing all vectors takes under 3 ms."""
_BATCH = 64
_FLUSH_AFTER = 2_000
"""Points after which the write-ahead log is truncated. Lost points are made again from the vectors."""
_PAGE = 10_000
_SPARE = 4 << 20
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
            for start in range(0, len(ids), _BATCH):
                some = zip(ids[start : start + _BATCH], vectors[start : start + _BATCH].tolist(), strict=True)
                points = [edge.Point(number, row) for number, row in some]
                with self._writing:
                    shard = self._made(vectors.shape[1])
                    # Each number takes five bytes in the write-ahead log and four in the vectors.
                    self._make_room(len(points) * vectors.shape[1] * 8 + _AROUND, _SPARE)
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
            return nearest(self._shard, vector, limit, exact=not self._graph)

    def tidy(self) -> None:
        """Make the graph if enough points are not in it yet, and delete removed points."""
        if self._shard is None or self._exact:
            return
        with _speaking("cannot be written"):
            about = self._shard.info()
            if about.points_count - about.indexed_vectors_count >= GRAPH_FROM:
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
            check_room(self._folder, 2 * used_bytes(self._folder) + _SPARE)
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
            check_room(self._folder, _SPARE)
            self._folder.mkdir(parents=True, exist_ok=True)
            self._shard = edge.EdgeShard.create(str(self._folder), config(dimension, graph=True, wal=True))
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
    except BaseException as error:  # a panic of the engine is no Exception
        raise LiveIndexError(f"The vector index {what}: {type(error).__name__}: {error}") from error
