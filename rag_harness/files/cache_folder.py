"""The cache of a project: what is in it, when each thing was last used, and what goes.

Whatever is in it can be made again: to remove it costs time, and never a result. A run notes what it opens by the time
of the folder, so that last use can be told without a file of its own.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rag_harness.errors import SettingsError
from rag_harness.files.room import used_bytes

KINDS = {
    "vectors": "vectors of texts",
    "tokens": "vectors of words, for the reranker and the judge",
    "pairs": "scores of the reranker",
    "judged": "what the embedded judge has read",
    "scores": "scores of the judges that compute them, for the next replay",
    "causes": "why trials of a replay failed, for the next one",
    "chunks": "cuts of documents",
    "duplicates": "chunks compared with each other",
    "indexes": "indexes of this machine",
    "parsed": "text of files",
    "languages": "languages of documents",
}
"""The folders of a cache, and what is in them."""
LATELY = 3600.0
"""Seconds: what was used since then may be in use now, and stays."""


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """One folder of a cache: of one model, one index or one parser.

    Attributes:
        kind: the folder that it is in.
        path: the folder itself.
        bytes: that it takes on the disk.
        used: when it was last opened or written, in seconds since 1970.
    """

    kind: str
    path: Path
    bytes: int
    used: float


def note_use(folder: Path) -> None:
    """Note that a folder of the cache is used now. Where it may not be written, nothing happens."""
    with suppress(OSError):
        os.utime(folder)


def entries_of(cache: Path) -> list[CacheEntry]:
    """Return what is in a cache, the least used first.

    Raises:
        SettingsError: the folder is no cache.
    """
    if not cache.is_dir():
        raise SettingsError(f"{cache} is no folder: there is no cache yet, or --cache-dir names another place.")
    found = list(_entries(cache))
    others = [each.name for each in cache.iterdir() if each.is_dir() and each.name not in KINDS]
    if others and not found:
        raise SettingsError(f"{cache} is no cache of ours: it has {others[0]}/ and none of {', '.join(KINDS)}.")
    return sorted(found, key=lambda entry: entry.used)


def _entries(cache: Path) -> Iterator[CacheEntry]:
    for kind in KINDS:
        folder = cache / kind
        if folder.is_symlink() or not folder.is_dir():
            continue
        for path in sorted(folder.iterdir()):
            # An unfinished shard begins with a dot; who builds it removes it.
            if path.is_dir() and not path.is_symlink() and not path.name.startswith("."):
                with suppress(FileNotFoundError):  # a run has removed it meanwhile
                    yield CacheEntry(kind, path, used_bytes(path), _used(path))


def _used(path: Path) -> float:
    times = [path.stat().st_mtime]
    for each in path.iterdir():
        with suppress(FileNotFoundError):
            times.append(each.stat().st_mtime)
    return max(times)


def stale(entries: list[CacheEntry], now: float, older: float, most: float) -> list[CacheEntry]:
    """Return what may go: what was not used for ``older`` seconds, and the least used until ``most`` bytes are left.

    Args:
        entries: the least used first.
        now: seconds since 1970.
        older: seconds.
        most: bytes; infinite where size does not matter.
    """
    free = [entry for entry in entries if now - entry.used > LATELY]
    gone = [entry for entry in free if now - entry.used > older]
    left = sum(entry.bytes for entry in entries) - sum(entry.bytes for entry in gone)
    for entry in free:
        if left <= most:
            break
        if entry not in gone:
            gone.append(entry)
            left -= entry.bytes
    return gone


def remove_entry(entry: CacheEntry) -> None:
    """Remove an entry: it is renamed first, so that no process opens half of it.

    Raises:
        OSError: it cannot be removed.
    """
    away = entry.path.with_name(f".{entry.path.name}.pruned")
    if away.exists():
        shutil.rmtree(away)
    entry.path.rename(away)
    shutil.rmtree(away)
