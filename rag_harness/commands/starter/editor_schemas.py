"""Schemas by which editors complete the TOML files of services and spaces.

They are files of the suite, so that they work offline. ``init`` writes those of another version anew, and ``doctor``
names them.
"""

from __future__ import annotations

from pathlib import Path

from rag_harness.commands.schema import schema_text
from rag_harness.commands.starter.started import Started
from rag_harness.errors import DataError
from rag_harness.files.atomic import write_atomically

SCHEMAS_FOLDER = ".rag_harness"
_KINDS = ("endpoint", "space")


def write_schemas(folder: Path, done: Started) -> None:
    """Write the schemas below ``folder``, those of another version anew.

    Raises:
        DataError: a file cannot be written.
    """
    for kind in _KINDS:
        file = schema_file(folder, kind)
        if is_current(file, kind):
            continue
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(file, schema_text(kind).encode())
        except OSError as error:
            raise DataError(
                f"{file} cannot be written: {error.strerror}. Choose a folder that you may write to."
            ) from error
        done.written.append(file)


def schema_file(folder: Path, kind: str) -> Path:
    """Return where the schema of a kind of file is."""
    return folder / SCHEMAS_FOLDER / f"{kind}.schema.json"


def is_current(file: Path, kind: str) -> bool:
    """Return whether a file is the schema of the installed version."""
    return file.is_file() and file.read_bytes() == schema_text(kind).encode()


def outdated(folder: Path) -> dict[str, Path]:
    """Return the schemas that are there and of another version than the installed one, by their kind."""
    files = {kind: schema_file(folder, kind) for kind in _KINDS}
    return {kind: file for kind, file in files.items() if file.is_file() and not is_current(file, kind)}
