"""Series of runs of an experiment without a version. An interrupted run can be resumed; a finished one cannot.

A run opens a series, or continues the open one. A run that finishes closes it. A live run begins a new one, unless it
is to resume. The series is part of the fingerprint, so that rows of another series count as rows of other code.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

from rag_harness.errors import CriticalError
from rag_harness.files.atomic import write_atomically
from rag_harness.files.json_text import read_json
from rag_harness.files.sources import json_digest

SERIES = "unfinished"
"""Folder beside the result files."""


def fingerprint_in_series(output: Path, experiment: str, fingerprint: str) -> str:
    """Return the fingerprint of rows of the open series; open one where there is none.

    Raises:
        CriticalError: the folder cannot be written.
    """
    from filelock import FileLock

    file = output / SERIES / f"{fingerprint}.json"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(file.with_suffix(".lock")):
            known = _read(file)
            if known is None:
                known = {"experiment": experiment, "fingerprint": json_digest([fingerprint, uuid4().hex])}
                write_atomically(file, json.dumps(known).encode())
    except OSError as error:
        raise CriticalError(
            f"{file.parent} cannot be written: {error.strerror or error}. Answers that were paid for would be lost. "
            f"Nothing was called: make it writable, or name another folder with --rag-output."
        ) from error
    return str(known["fingerprint"])


def begin_series_anew(output: Path, experiments: Collection[str]) -> None:
    """Leave unfinished runs of these experiments behind: the next fingerprints are of new series."""
    for file, known in _open(output):
        if known["experiment"] in experiments:
            _remove(file)


def close_series(output: Path, finished: Mapping[str, frozenset[str]]) -> None:
    """Close the series whose fingerprints are ``finished``, by experiment: they have no trial left to ask."""
    for file, known in _open(output):
        if known["fingerprint"] in finished.get(known["experiment"], ()):
            _remove(file)
    folder = output / SERIES
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def _remove(file: Path) -> None:
    file.unlink(missing_ok=True)
    file.with_suffix(".lock").unlink(missing_ok=True)


def _open(output: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    for file in sorted((output / SERIES).glob("*.json")):
        known = _read(file)
        if known is not None:
            yield file, known


def _read(file: Path) -> dict[str, Any] | None:
    """Return the content of a file; None where there is none, or it is damaged."""
    try:
        said = read_json(file.read_bytes())
        return {"experiment": str(said["experiment"]), "fingerprint": str(said["fingerprint"])}
    except (OSError, ValueError, KeyError, TypeError):
        return None
