"""One process at a time: a lock that its holder cannot leave behind, and that says who holds it."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout


class HeldError(Exception):
    """Another holds the lock; ``by`` says who, as ``process 4711 on build-3``."""

    def __init__(self, by: str) -> None:
        super().__init__(by)
        self.by = by


@contextmanager
def alone(lock: Path) -> Iterator[None]:
    """Hold the file ``lock``, which is gone afterwards; the system lets it go when this process ends, however it ends.

    Raises:
        HeldError: another process holds it.
        OSError: its folder cannot be written.
    """
    # Read first: filelock before 4 empties the file of whoever holds it.
    by, held = _holder(lock), FileLock(lock, thread_local=False)
    try:
        held.acquire(timeout=0)
    except Timeout:
        raise HeldError(by or _holder(lock) or "another process") from None
    try:
        lock.write_text(f"process {os.getpid()} on {platform.node()}", encoding="utf-8")
        yield
    finally:
        with suppress(OSError):  # a system that removes no open file
            lock.unlink(missing_ok=True)
        held.release()


def _holder(lock: Path) -> str:
    try:
        return lock.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
