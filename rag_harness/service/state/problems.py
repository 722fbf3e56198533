"""Errors of a state folder, with messages that say how to go on."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

from rag_harness.errors import CriticalError

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
