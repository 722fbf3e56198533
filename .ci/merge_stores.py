"""Merges the segments of recorded stores: runs leave many small files, and each costs 4 kB and an opening."""

from __future__ import annotations

import sys
from pathlib import Path

from rag_harness.models.recording.store import ArrayStore


def merge(folder: Path) -> None:
    """Have all entries of a store in as few segments as it writes."""
    files = sorted(folder.glob("*.safetensors"))
    store = ArrayStore([folder])
    keys = sorted(store.keys())
    merged = folder.with_name(f"{folder.name}.merged")
    target = ArrayStore([], merged)
    for start in range(0, len(keys), 1024):
        some = keys[start : start + 1024]
        target.put({key: array for key, array in zip(some, store.get(some), strict=True) if array is not None})
        target.flush()
    for file in files:
        file.unlink()
    for file in sorted(merged.iterdir()):
        file.rename(folder / file.name)
    merged.rmdir()


for given in sys.argv[1:]:
    for each in sorted(Path(given).iterdir()):
        merge(each)
