"""A lock for one process at a time, which names its holder and which the system releases when the holder dies."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

RUN_LOCK = "run.lock"
"""The file in an output folder that is locked while a run writes there."""


class LockHeldError(Exception):
    """Another process holds the lock; ``by`` names it, as ``process 4711 on build-3``."""

    def __init__(self, by: str) -> None:
        super().__init__(by)
        self.by = by


@contextmanager
def process_lock(lock: Path) -> Iterator[None]:
    """Hold the lock file ``lock`` during the block, then delete it. A killed process loses the lock, too.

    Raises:
        HeldError: another process holds it.
        OSError: its folder cannot be written.
    """
    # The holder is read before locking: filelock before version 4 empties the file even where another holds it.
    by, held = _holder(lock), FileLock(lock, thread_local=False)
    try:
        held.acquire(timeout=0)
    except Timeout:
        raise LockHeldError(by or _holder(lock) or "another process") from None
    try:
        with suppress(PermissionError):  # Windows lets nobody write to a locked file: there its holder has no name
            lock.write_text(f"process {os.getpid()} on {platform.node()}", encoding="utf-8")
        yield
    finally:
        with suppress(OSError):  # Windows removes no open file
            lock.unlink(missing_ok=True)
        held.release()


def _holder(lock: Path) -> str:
    try:
        return lock.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
