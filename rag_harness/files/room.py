"""Is there room on a disk? Asked before anything is written by way of memory maps, where a full disk ends the process.

A file that is mapped is as long as the map from the beginning, and has no blocks until somebody writes there. Where the
disk has none left then, the system has no other way to say so than SIGBUS.
"""

from __future__ import annotations

import errno
import mmap
import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

from rag_harness.errors import NoRoomError

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What the system says of a disk, or of a quota, that is full."""
_BLOCK = 512
_MIB = 1 << 20


def free(folder: Path) -> int:
    """Return the bytes that this user may still write where ``folder`` is, or will be."""
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free


def check_room(folder: Path, needed: int) -> None:
    """Check that ``needed`` bytes are free where ``folder`` is.

    Raises:
        NoRoomError: they are not.
    """
    if (found := free(folder)) < needed:
        raise NoRoomError(
            f"There is no room below {folder.name}/: {found / _MIB:.1f} MiB are free, and {needed / _MIB:.1f} are "
            f"needed. Make room on the disk. Nothing was changed."
        )


def used(folder: Path) -> int:
    """Return the bytes that the files below ``folder`` take of the disk."""
    return sum(_taken(file.stat()) for file in folder.rglob("*") if file.is_file())


def reserve(folder: Path, ahead: int) -> None:
    """Have the disk set aside the next ``ahead`` bytes of each file below ``folder`` that is longer than what it takes.

    Raises:
        NoRoomError: the disk, or a quota, has less. What was set aside stays so.
    """
    for file in folder.rglob("*"):
        about = file.stat()
        if _taken(about) < about.st_size and file.is_file():
            _reserve(file, ahead)


def _reserve(file: Path, ahead: int) -> None:
    if not hasattr(os, "posix_fallocate"):
        return  # macOS and Windows: what ``check_room`` found must do
    descriptor = os.open(file, os.O_RDWR)
    try:
        size = os.fstat(descriptor).st_size
        # Such files grow from their beginning: the first hole is where the next bytes go, or lies behind.
        hole = os.lseek(descriptor, 0, os.SEEK_HOLE)
        if hole < size:
            os.posix_fallocate(descriptor, hole, min(ahead, size - hole))
    except OSError as error:
        if error.errno in NO_ROOM:
            raise NoRoomError(f"There is no room for {file.name} ({error.strerror}). Make room on the disk.") from error
        # A file system that sets nothing aside, or knows no holes.
    finally:
        os.close(descriptor)


def missing(files: Iterable[Path]) -> int:
    """Return the bytes that files would take of the disk beyond what they take, were they written everywhere."""
    stats = [file.stat() for file in files]
    return sum(max(0, each.st_size - _taken(each)) for each in stats)


def fills_when_read(folder: Path) -> bool:
    """Return whether a file takes room where it is read through a map and was never written, as in memory (tmpfs)."""
    with tempfile.TemporaryFile(dir=folder) as file:
        file.truncate(mmap.PAGESIZE)
        with mmap.mmap(file.fileno(), mmap.PAGESIZE) as mapped:
            _ = mapped[0]
            return _taken(os.fstat(file.fileno())) > 0


def _taken(about: os.stat_result) -> int:
    """Return the bytes that a file takes of the disk; all of its length where the system does not say (Windows)."""
    blocks: int | None = getattr(about, "st_blocks", None)
    return about.st_size if blocks is None else blocks * _BLOCK
