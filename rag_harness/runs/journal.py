"""The journal of a run: finished trials on disk before anybody reads them, one file for each process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from time import sleep

from filelock import FileLock, Timeout

from rag_harness.core.cache import unwritable
from rag_harness.core.errors import CriticalError
from rag_harness.core.files import APPENDING, remove_unless_open

# A process holds a lock beside its file as long as it lives; any death frees the lock. A file whose lock is free
# belongs to no process, and its rows may be taken over.

JOURNALS = "journal"
"""Folder beside the result files."""
_ATTEMPTS = 4
_RESERVE = 2**20
"""Bytes reserved for the rows in flight when the disk gets full; at most an eighth of the free space."""


class Journal:
    """Appends lines to a file of this process.

    Args:
        folder: folder of the journals of all processes.
        name: name of this journal; it begins with the id of the run.

    Raises:
        CriticalError: the folder cannot be written.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.file: Path = folder / f"{name}.jsonl"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            # The lock comes before the file: another process may take over a file whose lock is free.
            self._lock = _locked(self.file)
            self._descriptor = os.open(self.file, APPENDING, 0o644)
        except OSError as error:
            raise CriticalError(
                f"The journal {self.file} cannot be written: {error}. Nothing was asked yet. Make room, or choose "
                f"another folder with --rag-output."
            ) from error
        self._written, self._synced = 0, 0
        self._syncing = asyncio.Lock()
        self._reserve = _Reserve(self.file)
        self._full: OSError | None = None
        self._failure: OSError | None = None
        # A thread of its own: sync pipelines may keep all threads of the loop busy.
        self._thread = ThreadPoolExecutor(1, "rag-journal")

    async def keep(self, line: bytes) -> None:
        """Return when ``line`` is on disk. Lines that wait together share one fsync.

        The line is written at once, before any wait. A later kill of the process does not lose it. The fsync protects
        it from a loss of power.

        Raises:
            CriticalError: the disk is full or broken. Lines in flight are written as long as the reserve lasts. They
                raise the error too because the run must stop.
        """
        if self._failure is None:
            self._write(line)
        mine = self._written
        async with self._syncing:
            # An earlier call may have synced this line with its own.
            if self._synced < mine and self._failure is None:
                upto = self._written
                await asyncio.get_running_loop().run_in_executor(self._thread, self._sync)
                self._synced = upto
        failure = self._failure or self._full
        if failure is not None:
            raise self._unwritable(failure) from failure

    def _write(self, content: bytes) -> None:
        while content and self._failure is None:
            try:
                content = content[os.write(self._descriptor, content) :]
            except OSError as error:
                self._note(error)
        self._written += 1

    def _sync(self) -> None:
        while self._failure is None:
            try:
                os.fsync(self._descriptor)
            except OSError as error:
                self._note(error)
            else:
                return

    def _note(self, error: OSError) -> None:
        """Note that the disk is full, as long as deleting the reserve makes room; else that nothing more is kept."""
        if self._reserve.release():
            self._full = error
        else:
            self._failure = error

    def _unwritable(self, error: OSError) -> CriticalError:
        error.filename = str(self.file)
        return CriticalError(f"Answers that were paid for would be lost, so the run stops: the journal {_said(error)}")

    def close(self) -> None:
        """Close the file and free its lock: the next process that looks may take its rows over."""
        self._thread.shutdown()
        self._reserve.release()
        os.close(self._descriptor)
        self._lock.release()


class _Reserve:
    """A file beside a journal that reserves disk space. Deleting it frees the space."""

    def __init__(self, journal: Path) -> None:
        self._file: Path | None = _reserve_of(journal)
        try:
            room = os.statvfs(journal.parent)
            with self._file.open("wb") as stream:
                os.posix_fallocate(stream.fileno(), 0, max(1, min(_RESERVE, room.f_bavail * room.f_frsize // 8)))
        except (OSError, AttributeError):  # the disk is full already, or the system has no fallocate
            self.release()

    def release(self) -> bool:
        """Delete the file. Return whether that freed space."""
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


def _locked(file: Path) -> FileLock:
    """Return the lock of a new journal. Who tidies up may have deleted it before it was held: then it locks nothing."""
    while True:
        lock = _lock_of(file)
        lock.acquire()
        if file.with_suffix(".lock").exists():
            return lock
        lock.release()


def _lock_of(file: Path) -> FileLock:
    # One thread takes the lock and another frees it.
    return FileLock(file.with_suffix(".lock"), thread_local=False)


@contextmanager
def abandoned(folder: Path) -> Iterator[dict[Path, list[bytes]]]:
    """Lock the journals that belong to no living process, and yield their lines."""
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
    """Return the lines of the journals that belong to no living process, without the ``known`` ones."""
    found: dict[Path, list[bytes]] = {}
    for file in sorted(set(folder.glob("*.jsonl")) - set(known)):
        lock = _try_lock(file)
        if lock is not None:
            # No process writes to it any more, and other workers want to read it too.
            lock.release()
            found |= _lines(file)
    return found


def _try_lock(file: Path) -> FileLock | None:
    """Return the lock of a journal; None where its process lives. Readers hold it for a moment only, so try again."""
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
        return {}  # another process has taken it over meanwhile


def remove(file: Path) -> None:
    """Delete a journal whose rows are safe elsewhere."""
    file.unlink(missing_ok=True)
    _reserve_of(file).unlink(missing_ok=True)
    # Windows removes it when it is let go.
    remove_unless_open(file.with_suffix(".lock"))


def tidy(folder: Path) -> None:
    """Delete what a kill has left of journals that were not there yet, or not any more: their locks and reserves."""
    for beside in (*folder.glob("*.lock"), *folder.glob("*.reserve")):
        file = beside.with_suffix(".jsonl")
        lock = None if file.exists() else _try_lock(file)
        if lock is not None:
            try:
                if not file.exists():  # it may have come before the lock was held
                    remove(file)
            finally:
                lock.release()
