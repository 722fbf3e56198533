"""Finished trials, on disk before anybody has looked at them: one file a process, in ``output/journal/``.

A process holds a lock beside its file for as long as it lives, however it dies. A file whose lock is free belongs to
nobody any more, and its rows may be taken over.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from time import sleep

from filelock import FileLock, Timeout

from rag_harness.errors import CriticalError
from rag_harness.files.full_disk import unwritable

JOURNALS = "journal"
"""Folder beside the result files."""
_ATTEMPTS = 4
_RESERVE = 2**20
"""Bytes that are put aside for what is in flight when the disk gets full; of a small disk an eighth of what is free."""


class Journal:
    """Appends lines to a file of this process.

    Args:
        folder: where the journals of all processes are.
        name: of this one; begins with the id of the run.

    Raises:
        CriticalError: the folder cannot be written.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.file = folder / f"{name}.jsonl"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = _lock_of(self.file)
            # Before the file is there: whoever finds one whose lock is free may take it.
            self._lock.acquire()
            self._descriptor = os.open(self.file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as error:
            raise CriticalError(
                f"The journal {self.file} cannot be written: {error}. Nothing was asked yet. Make room, or choose "
                f"another folder with --rag-output."
            ) from error
        self._waiting: list[bytes] = []
        self._writing = asyncio.Lock()
        self._reserve = _Reserve(self.file)
        self._full: OSError | None = None
        self._failure: OSError | None = None
        # Its own thread: the loop's may all be busy with sync pipelines.
        self._thread = ThreadPoolExecutor(1, "rag-journal")

    async def keep(self, line: bytes) -> None:
        """Return when ``line`` is on disk. Lines that wait together share one fsync.

        Raises:
            CriticalError: the disk is full or broken. What is in flight is kept while the reserve lasts, and is said
                to have failed too, for the run must stop.
        """
        self._waiting.append(line)
        async with self._writing:
            # Empty where the one before took this line along.
            if self._waiting and self._failure is None:
                lines, self._waiting = self._waiting, []
                await asyncio.get_running_loop().run_in_executor(self._thread, self._write, b"".join(lines))
        failure = self._failure or self._full
        if failure is not None:
            raise self._unwritable(failure) from failure

    def _write(self, content: bytes) -> None:
        while True:
            try:
                while content:
                    content = content[os.write(self._descriptor, content) :]
                os.fsync(self._descriptor)
            except OSError as error:
                if self._reserve.release():
                    self._full = error
                    continue
                self._failure = error
            return

    def _unwritable(self, error: OSError) -> CriticalError:
        error.filename = str(self.file)
        return CriticalError(f"Answers that were paid for would be lost, so the run stops: the journal {_said(error)}")

    def close(self) -> None:
        """Let the file go; whoever looks next may take its rows over."""
        self._thread.shutdown()
        self._reserve.release()
        os.close(self._descriptor)
        self._lock.release()


class _Reserve:
    """A file beside a journal that is nothing but room; whoever needs it deletes it."""

    def __init__(self, journal: Path) -> None:
        self._file: Path | None = _reserve_of(journal)
        try:
            room = os.statvfs(journal.parent)
            with self._file.open("wb") as stream:
                os.posix_fallocate(stream.fileno(), 0, max(1, min(_RESERVE, room.f_bavail * room.f_frsize // 8)))
        except (OSError, AttributeError):  # full already, or a system that puts no room aside
            self.release()

    def release(self) -> bool:
        """Return whether there was room to give back."""
        file, self._file = self._file, None
        try:
            if file is not None:
                file.unlink()
        except OSError:
            return False
        return file is not None


def _reserve_of(file: Path) -> Path:
    return file.with_suffix(".reserve")


def _said(error: OSError) -> str:
    return unwritable(error, Path(error.filename).parent)


def _lock_of(file: Path) -> FileLock:
    # Taken in one thread, and let go in another.
    return FileLock(file.with_suffix(".lock"), thread_local=False)


@contextmanager
def abandoned(folder: Path) -> Iterator[dict[Path, list[bytes]]]:
    """Hold the journals that belong to no living process, and give their lines."""
    held: list[FileLock] = []
    found: dict[Path, list[bytes]] = {}
    try:
        for file in sorted(folder.glob("*.jsonl")):
            lock = _try_lock(file)
            if lock is not None:
                held.append(lock)
                found |= _lines(file)
        yield found
    finally:
        for lock in held:
            lock.release()


def left_behind(folder: Path, known: Collection[Path]) -> dict[Path, list[bytes]]:
    """Return the lines of the journals that belong to no living process, but for those that are ``known``."""
    found: dict[Path, list[bytes]] = {}
    for file in sorted(set(folder.glob("*.jsonl")) - set(known)):
        lock = _try_lock(file)
        if lock is not None:
            # Nobody writes to it any more; others want to look too.
            lock.release()
            found |= _lines(file)
    return found


def _try_lock(file: Path) -> FileLock | None:
    """Return the lock of a journal; None where its process lives. Others who look hold it for a moment only."""
    lock = _lock_of(file)
    for attempt in range(_ATTEMPTS):
        try:
            lock.acquire(blocking=False)
        except Timeout:
            sleep(0.005 * attempt)
        else:
            return lock
    return None


def _lines(file: Path) -> dict[Path, list[bytes]]:
    try:
        return {file: file.read_bytes().splitlines(keepends=True)}
    except FileNotFoundError:
        return {}  # adopted meanwhile


def remove(file: Path) -> None:
    """Delete a journal whose rows are safe elsewhere."""
    file.unlink(missing_ok=True)
    _reserve_of(file).unlink(missing_ok=True)
    file.with_suffix(".lock").unlink(missing_ok=True)
