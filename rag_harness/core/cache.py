"""The cache of a project: its entries, their age and trusted content, and the space on its disk."""

from __future__ import annotations

import errno
import json
import mmap
import os
import shutil
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from rag_harness.core.errors import NoRoomError, SettingsError
from rag_harness.core.files import json_digest, regular_bytes, write_atomically

# A file that is cut short, damaged or of another user counts as missing: its content is computed again.

SUFFIX = ".kept"
_DIGEST_BYTES = 16
_LARGEST = 256 << 20
"""Most bytes that a file may hold: one of some kB can be made that holds gigabytes."""
_FAST = 1
"""The level of zlib. Rows repeat their sources, so that already this level leaves a tenth of them."""


def read_kept(file: Path) -> Any:
    """Return the JSON value of a file, and note that it was used; None where the file is not there or not whole."""
    try:
        content = regular_bytes(file)
        digest, packed = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
        if _digest(packed) != digest:
            return None
        found = json.loads(_unpacked(packed))
    except (OSError, ValueError, RecursionError, zlib.error):
        return None
    with suppress(OSError):
        os.utime(file)
    return found


def _unpacked(packed: bytes) -> bytes:
    unpacking = zlib.decompressobj()
    content = unpacking.decompress(packed, _LARGEST)
    if unpacking.unconsumed_tail:
        raise ValueError(f"larger than {_LARGEST} bytes")
    return content


def write_kept(file: Path, value: Any) -> None:
    """Write a JSON value. Where the cache may not be written, nothing happens: it only saves time."""
    packed = zlib.compress(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(), _FAST)
    with suppress(OSError):
        write_atomically(file, _digest(packed) + packed)


MOST_VALUES = 20_000
"""Values in one folder. Larger runs compute the rest again: their values would fill the memory."""
_FILES = 8
"""Files in one folder. A run that finds so many makes one of them, of the values that it has used."""


class KeptValues:
    """JSON values by the digest of all that they depend on, in files of one folder.

    Args:
        folder: belongs to one state of the package.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: list[Path] = []
        self._known: dict[str, Any] | None = None
        self._used: dict[str, Any] = {}
        self._new: dict[str, Any] = {}

    def get(self, key: str) -> Any:
        """Return a value that another run, or ``flush``, has left; None where there is none."""
        found = self._all.get(key)
        if found is not None:
            self._used[key] = found
        return found

    def put(self, key: str, value: Any) -> None:
        """Add a value. It stays in memory until ``flush``."""
        if len(self._used) + len(self._new) < MOST_VALUES:
            self._new[key] = value

    def flush(self) -> None:
        """Write the new values, as a file of their own, so that several processes lose nothing."""
        if not self._new:
            return
        crowded = len(self._files) >= _FILES or len(self._all) + len(self._new) > MOST_VALUES
        content = {**self._used, **self._new} if crowded else self._new
        file = self._folder / f"{json_digest(sorted(content))}{SUFFIX}"
        write_kept(file, content)
        for old in self._files if crowded and file.is_file() else ():
            if old != file:
                old.unlink(missing_ok=True)
        self._used |= self._new
        self._all.update(self._new)
        self._new = {}

    @property
    def _all(self) -> dict[str, Any]:
        """All values of the folder. They are read once, so that it does not matter when the folder goes."""
        if self._known is None:
            note_use(self._folder)
            self._known, self._files = {}, sorted(self._folder.glob(f"*{SUFFIX}"))
            for file in self._files:
                found = read_kept(file)
                self._known.update(found if isinstance(found, dict) else {})
        return self._known


def leave_newest(folder: Path, most: int) -> None:
    """Remove all but the ``most`` last used files of a folder."""
    with suppress(OSError):
        files = sorted(folder.glob(f"*{SUFFIX}"), key=lambda file: file.stat().st_mtime, reverse=True)
        for file in files[most:]:
            file.unlink(missing_ok=True)


def _digest(packed: bytes) -> bytes:
    return blake2b(packed, digest_size=_DIGEST_BYTES).digest()


# Checks of room on a disk, before memory-mapped files are written. In such a file a full disk kills the process.
#
# A mapped file has its full length from the beginning, but no blocks before somebody writes. If the disk has no block
# left at that moment, the system sends SIGBUS.

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Error numbers of a full disk or a full quota."""
_BLOCK = 512
_MIB = 1 << 20


def free(folder: Path) -> int:
    """Return the bytes that this user may still write on the disk of ``folder``, which need not exist yet."""
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free


def check_room(folder: Path, needed: int) -> None:
    """Check that the disk of ``folder`` has ``needed`` bytes free.

    Raises:
        NoRoomError: they are not.
    """
    if (found := free(folder)) < needed:
        raise NoRoomError(
            f"There is no room below {folder.name}/: {found / _MIB:.1f} MiB are free, and {needed / _MIB:.1f} are "
            f"needed. Make room on the disk. Nothing was changed."
        )


def used_bytes(folder: Path) -> int:
    """Return the bytes on the disk that the files below ``folder`` occupy."""
    return sum(_taken(about) for _, about in _files(folder))


def _files(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield each file below ``folder`` with its state. A file or folder that goes meanwhile is left out."""
    for place, _, names in os.walk(folder):
        for name in names:
            file = Path(place, name)
            with suppress(FileNotFoundError):
                yield file, file.stat()


def reserve(folder: Path, ahead: int) -> None:
    """Reserve the next ``ahead`` bytes on the disk for each file below ``folder`` that still has holes.

    Raises:
        NoRoomError: the disk, or a quota, has less. Bytes that were reserved before stay reserved.
    """
    for file, about in _files(folder):
        if _taken(about) < about.st_size:
            _reserve(file, ahead)


def _reserve(file: Path, ahead: int) -> None:
    if not hasattr(os, "posix_fallocate"):
        return  # macOS and Windows cannot reserve: there ``check_room`` alone must do
    try:
        descriptor = os.open(file, os.O_RDWR)
    except FileNotFoundError:
        return  # the engine has renamed it: a thread of its own makes the next piece of the write-ahead log
    try:
        size = os.fstat(descriptor).st_size
        # Such files are filled from the beginning. The first hole is where the next bytes go, or after that place.
        hole = os.lseek(descriptor, 0, os.SEEK_HOLE)
        if hole < size:
            os.posix_fallocate(descriptor, hole, min(ahead, size - hole))
    except OSError as error:
        if error.errno in NO_ROOM:
            raise NoRoomError(f"There is no room for {file.name} ({error.strerror}). Make room on the disk.") from error
        # Any other error: the file system cannot reserve, or knows no holes.
    finally:
        os.close(descriptor)


def missing(files: Iterable[Path]) -> int:
    """Return the bytes that ``files`` would still take on the disk if all their holes were filled."""
    stats = [file.stat() for file in files]
    return sum(max(0, each.st_size - _taken(each)) for each in stats)


def fills_when_read(folder: Path) -> bool:
    """Return whether reading a hole through a map takes space, as it does in memory (tmpfs)."""
    with tempfile.TemporaryFile(dir=folder) as file:
        file.truncate(mmap.PAGESIZE)
        with mmap.mmap(file.fileno(), mmap.PAGESIZE) as mapped:
            _ = mapped[0]
            return _taken(os.fstat(file.fileno())) > 0


def _taken(about: os.stat_result) -> int:
    """Return the bytes on the disk that a file occupies. Windows does not say; there it is the file's length."""
    blocks: int | None = getattr(about, "st_blocks", None)
    return about.st_size if blocks is None else blocks * _BLOCK


# Whatever is in it can be made again: to remove it costs time, and never a result. A run notes what it opens by the
# time of the folder, so that last use can be told without a file of its own.

KINDS = {
    "vectors": "vectors of texts",
    "tokens": "vectors of words for the reranker and the judge",
    "pairs": "scores of the reranker",
    "judged": "what the embedded judge has read",
    "scores": "scores of the judges that compute them; the next replay reads them",
    "texts": "what was found out about texts: languages, refusals, agreement with the gold; the next run reads it",
    "causes": "why trials of a replay failed; the next one reads it",
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
    """Return the entries of a cache, the least recently used first.

    Raises:
        SettingsError: the folder is not a cache.
    """
    if not cache.is_dir():
        raise SettingsError(f"{cache} is not a folder: there is no cache yet, or --cache-dir names another place.")
    found = list(_entries(cache))
    others = [each.name for each in cache.iterdir() if each.is_dir() and each.name not in KINDS]
    if others and not found:
        raise SettingsError(f"{cache} is not a cache of ours: it has {others[0]}/ and none of {', '.join(KINDS)}.")
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
    """Return the entries to delete: unused for ``older`` seconds, and the least used until ``most`` bytes are left.

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


# Messages for a disk that is full or cannot be written: which file, and what to do.

_TO_DO = {
    errno.ENOSPC: "Make room on its disk",
    errno.EDQUOT: "Make room there, or have the quota raised",
    errno.EROFS: "Its disk can only be read: mount it for writing",
    errno.EIO: "Its disk fails: look at the system's log, and copy what is there first",
}


@contextmanager
def naming(file: Path) -> Iterator[None]:
    """Add the name ``file`` to an OSError of the block. An error of an open stream has no file name."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(file)
        raise


def unwritable(error: OSError, journals: Path) -> str:
    """Return a message: what failed, what to do, and that finished trials are safe in ``journals``."""
    to_do = _TO_DO.get(error.errno or 0, "See that it can be written")
    return (
        f"{error.filename or 'A result'} cannot be written: {error.strerror or error}. {to_do}, and run again: what "
        f"has come back is kept in {journals}, and the next run takes it over and asks only for the rest."
    )
