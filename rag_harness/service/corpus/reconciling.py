"""Makes an index agree with the database when a server starts."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from rag_harness.files.log import log
from rag_harness.retrieval.indexes.live import LiveIndexError, LivePoints
from rag_harness.retrieval.indexes.live_opening import opening_of
from rag_harness.settings import Settings
from rag_harness.types import Matrix

_BATCH = 1_000
_SAMPLE = 64
_NEAR = 1e-3
"""How much a number of a vector may differ: the engine scales vectors to unit length again."""
DAMAGED = "shard.damaged"

VectorsOf = Callable[[Sequence[int]], Matrix]


def reconciled(
    settings: Settings, index: str, folder: Path, name: str, wanted: Sequence[int], vectors_of: VectorsOf
) -> LivePoints:
    """Return a collection's index with exactly the points ``wanted``. A damaged index is moved away and made anew.

    Raises:
        LiveIndexError: a server does not answer, or the folder cannot be written.
        NoRoomError: the disk is full.
        SettingsError: the server's URL is not valid.
    """
    shard, open_points = folder / "shard", opening_of(index)
    if settings.qdrant_url:
        return _made_same(open_points(settings, shard, name), wanted, vectors_of)
    try:
        points = open_points(settings, shard, name)
        return _made_same(points, wanted, vectors_of)
    except LiveIndexError as error:
        log.warning("The index of collection %s is damaged, moved to %s and made anew: %s", folder.name, DAMAGED, error)
        shutil.rmtree(folder / DAMAGED, ignore_errors=True)
        if shard.exists():
            shard.rename(folder / DAMAGED)
        return _made_same(open_points(settings, shard, name), wanted, vectors_of)


def _made_same(points: LivePoints, wanted: Sequence[int], vectors_of: VectorsOf) -> LivePoints:
    try:
        there = points.ids()
        _check_sample(points, [point for point in wanted if point in there], vectors_of)
        strange = sorted(there.difference(wanted))
        missing = [point for point in wanted if point not in there]
        if strange or missing:
            log.info("%d points too many in the index, %d too few", len(strange), len(missing))
        points.remove(strange)
        for start in range(0, len(missing), _BATCH):
            some = missing[start : start + _BATCH]
            points.add(some, vectors_of(some))
        points.tidy()
    except BaseException:
        with suppress(LiveIndexError):
            points.close()
        raise
    return points


def _check_sample(points: LivePoints, known: Sequence[int], vectors_of: VectorsOf) -> None:
    """Compare some vectors: after a power cut a file may be all zeros, and the engine opens it without an error."""
    some = known[:: len(known) // _SAMPLE + 1]
    if not some:
        return
    # In float64, since squares of damaged numbers may exceed a float32.
    found, kept = points.vectors(some), vectors_of(some).astype(np.float64)
    lengths = np.linalg.norm(kept, axis=1, keepdims=True)
    for point, vector in zip(some, kept / np.where(lengths == 0, 1, lengths), strict=True):
        if point not in found or not np.allclose(found[point], vector, atol=_NEAR):
            raise LiveIndexError(f"point {point} does not have the vector that was written")
