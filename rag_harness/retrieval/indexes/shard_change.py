"""Makes a shard of an older one that has most of its texts: its graph is copied, not made again.

What the graph does not have is compared one by one, and what it has in vain is passed over. Where both together are
more than a tenth of it, a new graph is worth its time.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from rag_harness.files.room import used_bytes
from rag_harness.retrieval.indexes import edge_shard
from rag_harness.retrieval.indexes.shard_points import Change, ShardPoints, change
from rag_harness.retrieval.indexes.shards import MARKER, ShardFolder, copy_shard
from rag_harness.types import Matrix

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
    edge_shard.check_change(made, used_bytes(older.folder.path), vectors[older.change.added].nbytes)
    count = len(older.points.numbers)
    try:
        copy_shard(older.folder.path, made)
        # The copy is looked at, not the original: that may have gone while it was copied.
        if fault := ShardFolder(made, older.folder.digest).fault(count):
            raise ValueError(fault)
        shard = edge_shard.load(made, older.points.numbers)
    except (ValueError, OSError) as error:
        raise OlderShardError(str(error)) from error
    (made / MARKER).unlink()
    edge_shard.change(shard, older.change.removed, _added(older.change), vectors[older.change.added])
    edge_shard.complete(made, shard, older.change.points.numbers)
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
    found = change(before, points, in_graph)
    return Older(folder, before, found, in_graph) if found.beside <= MOST_BESIDE * in_graph else None
