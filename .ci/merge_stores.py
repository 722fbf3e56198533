"""Merge the segments of recorded stores, and keep each file of before whose entries are what they were.

    python .ci/merge_stores.py BEFORE NOW

Runs leave many small segments: each costs 4 kB and an opening. But a computed vector differs from an earlier one in
its last bits, and each rewritten segment stays in the history of the repository for good. So a segment of BEFORE is
kept byte for byte where NOW has nearly all of its keys, and the same arrays for them, also under another identity of
the code; only the entries that are left become new segments. An entry that nobody asks for any more does no harm.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from rag_harness.models.array_store import Array, ArrayStore, _Segment

KINDS = ("vectors", "pairs", "chunks", "judged")
PER_SEGMENT = 1024
LEAST_USED = 0.9
"""Least share of the entries of a segment that are still asked for; below, it is written anew."""
TOLERANCE = 1e-4
"""Of the batches that a vector or score is computed in. Texts are stored as bytes, and have to be equal."""


def merge(before: Path, now: Path) -> None:
    """Make each store of a recording as few segments as it takes, of which those of before stay as they were."""
    for kind in KINDS:
        earlier = sorted((before / kind).glob("*"))
        for folder in sorted((now / kind).glob("*")):
            merge_store(folder, earlier)


def merge_store(folder: Path, earlier: list[Path]) -> None:
    """Write a store anew, with the segments of earlier stores of the same name that are still right."""
    store = ArrayStore([folder])
    left = store.keys()
    merged = folder.with_name(f"{folder.name}.merged")
    merged.mkdir()
    # The same identity first: its segments are the likeliest to be right.
    named = [each for each in earlier if _name(each) == _name(folder)]
    for other in sorted(named, key=lambda each: (each.name != folder.name, each.name)):
        for segment in sorted(other.glob("*.safetensors")):
            kept = _entries(segment)
            used = kept.keys() & left
            if not used or len(used) < LEAST_USED * len(kept):
                continue
            if all(_same(kept[key], array) for key, array in _read(store, used)):
                (merged / segment.name).write_bytes(segment.read_bytes())
                left -= used
    target = ArrayStore([], merged)
    keys = sorted(left)
    for start in range(0, len(keys), PER_SEGMENT):
        target.put(dict(_read(store, keys[start : start + PER_SEGMENT])))
        target.flush()
    for file in folder.glob("*.safetensors"):
        file.unlink()
    for file in sorted(merged.iterdir()):
        file.rename(folder / file.name)
    merged.rmdir()


def _name(folder: Path) -> str:
    """Return what a store is of, without the identity of the code that made it."""
    model, _, made_by = folder.name.partition("@")
    return f"{model}@{made_by.rpartition('-')[0]}" if folder.parent.name == "chunks" else model


def _entries(segment: Path) -> dict[bytes, Array]:
    """Return the entries of one segment; a store reads whole folders."""
    read = _Segment(segment)
    return {key: read.entry(position) for position, key in enumerate(read.keys)}


def _read(store: ArrayStore, keys: object) -> list[tuple[bytes, Array]]:
    asked = list(keys)  # type: ignore[call-overload]
    return [(key, array) for key, array in zip(asked, store.get(asked), strict=True) if array is not None]


def _same(one: Array, other: Array) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    is_number = np.issubdtype(one.dtype, np.floating)
    return bool(
        np.allclose(one, other, TOLERANCE, TOLERANCE, equal_nan=True) if is_number else np.array_equal(one, other)
    )


if __name__ == "__main__":
    merge(Path(sys.argv[1]), Path(sys.argv[2]))
