"""SQLite with one writer thread: works that wait together share a transaction, and are safe once it is committed.

Readers never wait for the writer (write-ahead log, https://www.sqlite.org/wal.html). With ``synchronous=NORMAL``,
commits survive any end of the process. A power cut may lose the last commits, but does not damage the file.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from rag_harness.service.state.migrating import migrate
from rag_harness.service.state.problems import FAULTS, StateError

_T = TypeVar("_T")
Work = Callable[[sqlite3.Connection], _T]
_TOGETHER = 64
_PATIENCE_MS = 10_000
"""How long a writer waits for another process: ``rag-harness keys`` writes while the server runs."""


class Database:
    """The service's database. Any thread may use it; close it at the end.

    Args:
        file: made if it does not exist, readable by its owner only; an older schema is brought up to date.

    Raises:
        StateError: the file is damaged, of a newer version, or cannot be written; the message says how to go on.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self._queue: SimpleQueue[tuple[Work[Any], Future[Any]] | None] = SimpleQueue()
        self._readers = threading.local()
        self._opened: list[sqlite3.Connection] = []
        with suppress(OSError):  # if the file cannot be made, SQLite says why below
            # SQLite would let every user of this machine read it; its log gets the same rights. Only a new file is
            # opened here: closing a file that is already open drops this process's locks on it
            # (https://www.sqlite.org/howtocorrupt.html).
            os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        try:
            writer = self._connect()
            migrate(writer, file)
        except FAULTS as error:
            raise StateError.of(file, error) from error
        self._writer = writer
        self._thread = threading.Thread(target=self._write_all, name="rag-state", daemon=True)
        self._thread.start()

    async def write(self, work: Work[_T]) -> _T:
        """Return what ``work`` returns, once its writes are committed. If it raises, only its own writes are undone."""
        return await asyncio.wrap_future(self._submit(work))

    def write_now(self, work: Work[_T]) -> _T:
        """Do the same from a thread without an event loop."""
        return self._submit(work).result()

    def read(self, work: Work[_T]) -> _T:
        """Return what ``work`` reads, at once and in this thread. It sees what was committed when it began."""
        connection = getattr(self._readers, "connection", None)
        if connection is None:
            connection = self._readers.connection = self._connect()
            connection.execute("PRAGMA query_only = ON")
            self._opened.append(connection)
        try:
            return work(connection)
        except FAULTS as error:
            raise StateError.of(self.file, error) from error

    def close(self) -> None:
        """Write the works that wait, and close every connection."""
        self._queue.put(None)
        self._thread.join()
        for connection in (*self._opened, self._writer):
            connection.close()

    def _connect(self) -> sqlite3.Connection:
        # Transactions begin and end only here. The writer's connection is made in another thread than it is used in.
        connection = sqlite3.connect(self.file, isolation_level=None, check_same_thread=False)
        connection.row_factory = sqlite3.Row
        connection.execute(f"PRAGMA busy_timeout = {_PATIENCE_MS}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")
        return connection

    def _submit(self, work: Work[_T]) -> Future[_T]:
        future: Future[_T] = Future()
        self._queue.put((work, future))
        return future

    def _write_all(self) -> None:
        while (first := self._queue.get()) is not None:
            batch, last = self._batch(first)
            self._write(batch)
            if last:
                return

    def _batch(self, first: tuple[Work[Any], Future[Any]]) -> tuple[list[tuple[Work[Any], Future[Any]]], bool]:
        """Return the works that wait, and whether this is the last batch."""
        batch = [first]
        while len(batch) < _TOGETHER:
            try:
                following = self._queue.get_nowait()
            except Empty:
                break
            if following is None:
                return batch, True
            batch.append(following)
        return batch, False

    def _write(self, batch: list[tuple[Work[Any], Future[Any]]]) -> None:
        wanted = [(work, future) for work, future in batch if future.set_running_or_notify_cancel()]
        done: list[tuple[Future[Any], Any]] = []
        try:
            self._writer.execute("BEGIN IMMEDIATE")
            for work, future in wanted:
                self._do(work, future, done)
            self._writer.execute("COMMIT")
        except BaseException as error:
            self._undo()
            failure = StateError.of(self.file, error) if isinstance(error, FAULTS) else error
            for _, future in wanted:
                if not future.done():
                    future.set_exception(failure)
            return
        for future, result in done:
            future.set_result(result)

    def _do(self, work: Work[Any], future: Future[Any], done: list[tuple[Future[Any], Any]]) -> None:
        self._writer.execute("SAVEPOINT work")
        try:
            result = work(self._writer)
        except Exception as error:
            if not self._writer.in_transaction:
                raise  # for example, the disk is full: SQLite has undone everything
            self._writer.execute("ROLLBACK TO work")
            self._writer.execute("RELEASE work")
            future.set_exception(StateError.of(self.file, error) if _is_of_the_file(error) else error)
        else:
            self._writer.execute("RELEASE work")
            done.append((future, result))

    def _undo(self) -> None:
        # This fails, too, if the file is damaged. The waiting works get the first error.
        with suppress(*FAULTS):
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")


def _is_of_the_file(error: Exception) -> bool:
    """Whether an error is about the file, and not about the statement."""
    theirs = (sqlite3.IntegrityError, sqlite3.ProgrammingError)
    return isinstance(error, FAULTS) and not isinstance(error, theirs)
