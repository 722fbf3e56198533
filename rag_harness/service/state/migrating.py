"""Runs numbered SQL files, each once and whole. The file's ``user_version`` is the number of the last one."""

from __future__ import annotations

import sqlite3
from importlib.resources import files
from pathlib import Path

from rag_harness.service.state.problems import StateError


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
    folder = files("rag_harness.service.state") / "migrations"
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
