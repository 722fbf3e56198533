"""The token vectors of a collection's documents, in a file of their own. They are 100 times as large as a vector.

This is a cache: a missing array is computed when a question needs it. A damaged file is deleted.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np

from rag_harness.files.log import log
from rag_harness.files.room import check_room

_TABLE = "CREATE TABLE IF NOT EXISTS tokens (key BLOB PRIMARY KEY, rows INTEGER NOT NULL, data BLOB NOT NULL) STRICT"
_SPARE = 8 << 20
"""Bytes of the disk that token vectors may not use."""
_SIDES = ("", "-wal", "-shm")


class TokenStore:
    """Arrays of float16, shape (tokens, d), by key. Any thread may use it.

    Args:
        file: made if it does not exist.
        made_by: model and revision; arrays of others are removed.
    """

    def __init__(self, file: Path, made_by: str) -> None:
        self._file, self._made_by = file, made_by
        self._lock = RLock()
        try:
            self._connection = self._opened()
        except sqlite3.DatabaseError as error:
            log.warning("Token vectors are computed again: their file is damaged (%s)", error)
            self._throw_away()
            self._connection = self._opened()

    def get(self, keys: Sequence[bytes]) -> list[Any]:
        """Return the array of each key; None if there is none."""
        with self._lock:
            return [self._one(key) for key in keys]

    def lacks(self, keys: Sequence[bytes]) -> list[bool]:
        """Return for each key whether its array is missing."""
        with self._lock:
            found = [self._connection.execute("SELECT 1 FROM tokens WHERE key = ?", (key,)).fetchone() for key in keys]
        return [each is None for each in found]

    def put(self, items: Mapping[bytes, Any]) -> None:
        """Keep arrays. They are on disk when this returns.

        Raises:
            NoRoomError: the disk has no room for them.
        """
        rows = [(key, len(array), np.ascontiguousarray(array, "<f2").tobytes()) for key, array in items.items()]
        # The data are written twice: to the log and to the file.
        check_room(self._file.parent, _SPARE + 2 * sum(len(data) for _, _, data in rows))
        with self._lock, self._connection:
            self._connection.executemany("INSERT OR REPLACE INTO tokens VALUES (?, ?, ?)", rows)

    def remove(self, keys: Iterable[bytes]) -> None:
        """Forget arrays."""
        with self._lock, self._connection:
            self._connection.executemany("DELETE FROM tokens WHERE key = ?", [(key,) for key in keys])

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _one(self, key: bytes) -> Any:
        try:
            found = self._connection.execute("SELECT rows, data FROM tokens WHERE key = ?", (key,)).fetchone()
        except sqlite3.DatabaseError as error:
            log.warning("Token vectors cannot be read and are computed: %s", error)
            return None
        return np.frombuffer(found[1], "<f2").reshape(found[0], -1) if found else None

    def _opened(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._file, check_same_thread=False)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("CREATE TABLE IF NOT EXISTS made_by (name TEXT PRIMARY KEY) STRICT")
            if connection.execute("SELECT count(*) FROM made_by WHERE name <> ?", (self._made_by,)).fetchone()[0]:
                connection.execute("DROP TABLE IF EXISTS tokens")
                connection.execute("DELETE FROM made_by")
            connection.execute(_TABLE)
            connection.execute("INSERT OR IGNORE INTO made_by VALUES (?)", (self._made_by,))
            connection.commit()
        except sqlite3.DatabaseError:
            connection.close()
            raise
        return connection

    def _throw_away(self) -> None:
        for side in _SIDES:
            Path(f"{self._file}{side}").unlink(missing_ok=True)
