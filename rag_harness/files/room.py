"""Checks of room on a disk, before memory-mapped files are written. In such a file a full disk kills the process.

A mapped file has its full length from the beginning, but no blocks before somebody writes. If the disk has no block
left at that moment, the system sends SIGBUS.
"""

from __future__ import annotations

import errno
import mmap
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from rag_harness.errors import NoRoomError

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
    """Return whether reading a hole through a map takes room, as it does in memory (tmpfs)."""
    with tempfile.TemporaryFile(dir=folder) as file:
        file.truncate(mmap.PAGESIZE)
        with mmap.mmap(file.fileno(), mmap.PAGESIZE) as mapped:
            _ = mapped[0]
            return _taken(os.fstat(file.fileno())) > 0


def _taken(about: os.stat_result) -> int:
    """Return the bytes on the disk that a file occupies. Windows does not say; there it is the file's length."""
    blocks: int | None = getattr(about, "st_blocks", None)
    return about.st_size if blocks is None else blocks * _BLOCK
