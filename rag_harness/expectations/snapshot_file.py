"""Reads and writes snapshots of answers: syrupy's amber files, one an experiment, an answer under the id of its trial.

syrupy's own folder, ``__snapshots__``, is none for them: it counts what no assertion of a test has asked for as unused,
fails the run for it, and deletes it with ``--snapshot-update``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from rag_harness.errors import DataError, PrerequisiteError
from rag_harness.files.atomic import write_atomically
from rag_harness.registry import missing_package

if TYPE_CHECKING:
    from syrupy.extensions.amber.serializer import AmberDataSerializer

ENDING = ".ambr"


def read_snapshots(file: Path) -> dict[str, str]:
    """Return the answers in a file by their names; none where there is no file.

    Raises:
        PrerequisiteError: syrupy is not installed.
        DataError: it is no such file.
    """
    serializer = _serializer()
    try:
        found = serializer.read_file(str(file))
    except Exception as error:  # syrupy's errors have no base of their own
        raise DataError(f"{file} cannot be read as snapshots: {error}") from error
    if found.tainted:
        raise DataError(
            f"{file} is no file of snapshots that the installed syrupy reads: its first line was to be "
            f"'# serializer version: {serializer.VERSION}'. Take it from git again, or delete it and keep the answers "
            f"anew with --snapshot-update."
        )
    return {each.name: str(each.data) for each in found}


def write_snapshots(file: Path, answers: Mapping[str, str]) -> None:
    """Write a file of snapshots, sorted by name, or delete it where no answer is left.

    Raises:
        OSError: it cannot be written.
    """
    from syrupy.data import Snapshot, SnapshotCollection

    if not answers:
        file.unlink(missing_ok=True)
        return
    with TemporaryDirectory() as folder:
        # syrupy writes in place: a kill would leave half a file.
        whole = Path(folder) / file.name
        collection = SnapshotCollection(location=str(whole))
        for name, text in answers.items():
            # What stands behind a lone carriage return would be lost when the file is read.
            lines = text.replace("\r\n", "\n").replace("\r", "\n")
            collection.add(Snapshot(name=name, data=lines.encode("utf-8", "replace").decode()))
        _serializer().write_file(collection)
        write_atomically(file, whole.read_bytes())


def _serializer() -> type[AmberDataSerializer]:
    try:
        from syrupy.extensions.amber.serializer import AmberDataSerializer
    except ImportError as error:
        raise PrerequisiteError(missing_package("expectation 'snapshot'", error)) from error
    return AmberDataSerializer
