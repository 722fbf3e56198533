"""The state folder of a service: one SQLite file with one writer, its migrations, its lock and its errors."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any, TypeVar

from rag_harness.core.errors import CriticalError

FAULTS = (sqlite3.DatabaseError, UnicodeDecodeError, json.JSONDecodeError)
"""Errors of SQLite, of damaged texts in its own error messages, and of damaged JSON in its rows."""
_DAMAGED = ("malformed", "not a database", "corrupt", "no such", "no column", "decode")
_FULL = ("full", "disk I/O error")


class StateError(CriticalError):
    """The state of a service cannot be used; the message says why and what to do."""

    @classmethod
    def of(cls, file: Path, error: Exception) -> StateError:
        """Return the error for the operator, from an error of SQLite or of reading a row."""
        said = str(error)
        if not isinstance(error, sqlite3.Error) or any(word in said for word in _DAMAGED):
            return cls(
                f"{file.name} is damaged ({_short(said)}). Stop the server, put a copy of it back that you have, or "
                f"move the file away and ingest the documents again: keys and documents are in it."
            )
        if any(word in said for word in _FULL):
            return cls(f"{file.name} cannot be written ({said}): make room on the disk. Nothing was changed.")
        if isinstance(error, sqlite3.OperationalError) and ("readonly" in said or "unable to open" in said):
            return cls(f"{file.name} cannot be written ({said}). Give the server a folder of its own: --state DIR.")
        return cls(f"{file.name}: {said}")


def _short(said: str) -> str:
    """Return the beginning of a message on one line, without the text of a document that SQLite may quote."""
    return "".join(each if each.isprintable() else "?" for each in said.partition(" with text ")[0][:120])


# Runs numbered SQL files, each once and whole. The file's ``user_version`` is the number of the last one.


def migrate(connection: sqlite3.Connection, file: Path) -> None:
    """Bring a database to the newest schema.

    Raises:
        StateError: a newer release wrote it.
    """
    known = _migrations()
    # Two processes may open a new file at once.
    connection.execute("BEGIN IMMEDIATE")
    try:
        found = int(connection.execute("PRAGMA user_version").fetchone()[0])
        if found > len(known):
            raise StateError(
                f"{file.name} is of form {found}, and this release knows forms up to {len(known)}: a newer release "
                f"wrote it. Install that one, or serve another folder: --state DIR."
            )
        for number, script in enumerate(known[found:], found + 1):
            for statement in _statements(script):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {number}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _migrations() -> list[str]:
    folder = files("rag_harness.service") / "migrations"
    named = sorted((each for each in folder.iterdir() if each.name.endswith(".sql")), key=lambda each: each.name)
    return [each.read_text(encoding="utf-8") for each in named]


def _statements(script: str) -> list[str]:
    """Split a script into statements. ``executescript`` is not used, since it would commit first."""
    statements, begun = [], ""
    for line in script.splitlines(keepends=True):
        begun += line
        if sqlite3.complete_statement(begun):
            statements.append(begun)
            begun = ""
    return statements


# Readers never wait for the writer (write-ahead log, https://www.sqlite.org/wal.html). With ``synchronous=NORMAL``,
# commits survive any end of the process. A power cut may lose the last commits, but does not damage the file.

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


# The folder of a service. The process that holds its lock owns it.

DATABASE = "service.sqlite3"


class StateFolder:
    """A state folder that this process owns while the block lasts.

    Args:
        path: made if it does not exist. Only the owner may read its contents, even if another user made the folder.

    Raises:
        StateError: another server owns it, or it cannot be written.
    """

    def __init__(self, path: Path) -> None:
        from filelock import FileLock, Timeout

        self.path = path
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = FileLock(path / "owner.lock", timeout=0)
            self._lock.acquire()
        except Timeout:
            raise StateError(
                f"Another server is running on {path.name}/: a state folder has one owner. Stop that one, or give "
                f"this one a folder of its own: --state DIR."
            ) from None
        except OSError as error:
            why = error.strerror or type(error).__name__
            raise StateError(f"{path.name}/ cannot be written ({why}). Name another: --state DIR.") from error
        self.database: Database = Database(path / DATABASE)
        self._empty_incoming()

    @property
    def incoming(self) -> Path:
        """The folder of uploads that are being read, under random names."""
        return self.path / "incoming"

    def _empty_incoming(self) -> None:
        """Remove uploads that a killed server had begun to read."""
        shutil.rmtree(self.incoming, ignore_errors=True)
        self.incoming.mkdir(mode=0o700, exist_ok=True)

    def of_collection(self, number: int) -> Path:
        """Return the folder of a collection. Its name does not name the tenant."""
        folder = self.path / "collections" / str(number)
        folder.parent.mkdir(mode=0o700, exist_ok=True)
        folder.mkdir(exist_ok=True)
        return folder

    def __enter__(self) -> StateFolder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.database.close()
        self._lock.release()
