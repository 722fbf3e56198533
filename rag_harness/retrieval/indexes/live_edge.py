"""A shard of Qdrant Edge that changes while it is searched. With a write-ahead log, whose lock makes one owner.

The engine holds Python's lock while it works, so points are written in small batches; ``optimize``, which makes the
graph of 20,000 points in 15 s, is for the start of a server alone. What comes later is compared point by point.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import sleep
from typing import Any

import numpy as np
import qdrant_edge as edge

from rag_harness.files.log import log
from rag_harness.retrieval.indexes.edge_shard import config, nearest
from rag_harness.retrieval.indexes.live import LiveIndexError
from rag_harness.types import Matrix, Vector

GRAPH_FROM = 20_000
"""Points. Below, comparing with every vector takes under 3 ms."""
_BATCH = 64
_FLUSH_AFTER = 2_000
"""Points written; the write-ahead log is cut there. What is lost is made again from the vectors."""
_PAGE = 10_000


class EdgePoints:
    """The shard in ``folder``; made when the first points come, for only they say how long a vector is.

    Args:
        folder: of the shard.
        exact: compare with every vector, however many there are.

    Raises:
        LiveIndexError: what is there cannot be opened.
    """

    def __init__(self, folder: Path, exact: bool = False) -> None:
        self._folder, self._exact = folder, exact
        self._written, self._graph = 0, False
        self._shard: edge.EdgeShard | None = None
        if (folder / "edge_config.json").is_file():
            with _speaking("cannot be opened"):
                self._shard = edge.EdgeShard.load(str(folder))
        elif folder.exists():
            shutil.rmtree(folder)  # a process was killed that made it

    def add(self, ids: Sequence[int], vectors: Matrix) -> None:
        """Add points in batches, between which other threads may go on."""
        with _speaking("cannot be written"):
            for start in range(0, len(ids), _BATCH):
                some = zip(ids[start : start + _BATCH], vectors[start : start + _BATCH].tolist(), strict=True)
                points = [edge.Point(number, row) for number, row in some]
                self._made(vectors.shape[1]).update(edge.UpdateOperation.upsert_points(points))
                sleep(0)
            self._flush_after(len(ids))

    def remove(self, ids: Sequence[int]) -> None:
        """Remove points."""
        if self._shard is None or not ids:
            return
        with _speaking("cannot be written"):
            self._shard.update(edge.UpdateOperation.delete_points(list(ids)))
            self._flush_after(len(ids))

    def nearest(self, vector: Vector, limit: int) -> list[tuple[float, int]]:
        """Return the nearest points; by the graph where ``tidy`` has made one."""
        if self._shard is None:
            return []
        with _speaking("does not answer"):
            return nearest(self._shard, vector, limit, exact=not self._graph)

    def tidy(self) -> None:
        """Make the graph, where there are enough points without one to be worth it, and let go of removed ones."""
        if self._shard is None or self._exact:
            return
        with _speaking("cannot be written"):
            about = self._shard.info()
            if about.points_count - about.indexed_vectors_count >= GRAPH_FROM:
                log.info("Making the graph of %d points", about.points_count)
                self._shard.optimize()
            self._graph = self._shard.info().indexed_vectors_count > 0

    def ids(self) -> set[int]:
        """Return the numbers of all points."""
        if self._shard is None:
            return set()
        with _speaking("does not answer"):
            return set(_all_ids(self._shard))

    def vectors(self, ids: Sequence[int]) -> Mapping[int, Vector]:
        """Return vectors as the shard has them."""
        if self._shard is None:
            return {}
        with _speaking("does not answer"):
            found = self._shard.retrieve(list(ids), False, True)
        # Of a damaged shard the engine returns points without one.
        return {int(point.id): np.array(each, np.float32) for point in found if isinstance(each := point.vector, list)}

    def close(self) -> None:
        """Write what is waiting, and let go of the shard."""
        if self._shard is not None:
            shard, self._shard = self._shard, None
            with _speaking("cannot be closed"):
                shard.flush()
                shard.close()

    def _made(self, dimension: int) -> edge.EdgeShard:
        if self._shard is None:
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
    """Say which index failed, in words of ours."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # a panic of the engine is no Exception
        raise LiveIndexError(f"The vector index {what}: {type(error).__name__}: {error}") from error
