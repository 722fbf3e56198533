"""Series of runs of an experiment that is asked in each run. An interrupted run can be resumed; a finished one cannot.

A run opens a series, or continues the open one if it is to resume. A run that finishes closes it. The series is part of
the fingerprint, so that rows of another series count as rows of other code.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

from rag_harness.errors import CriticalError
from rag_harness.files.atomic import write_atomically
from rag_harness.files.json_text import read_json
from rag_harness.files.sources import json_digest

SERIES = "unfinished"
"""Folder beside the result files."""
HasRows = Callable[[str, str], bool]
"""Returns whether an experiment has a row with a fingerprint."""


def fingerprint_in_series(output: Path, experiment: str, fingerprint: str, *, is_own: bool = True) -> str:
    """Return the fingerprint of rows of the open series; open one where there is none.

    Args:
        output: folder of the result files.
        experiment: its name.
        fingerprint: the same for all series.
        is_own: whether it is a user's own, of which a run begins anew; an experiment of the package goes on.

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
                known = {
                    "experiment": experiment,
                    "fingerprint": _new_series(fingerprint),
                    "is_own": is_own,
                    "before": "",
                }
                write_atomically(file, json.dumps(known).encode())
    except OSError as error:
        raise CriticalError(
            f"{file.parent} cannot be written: {error.strerror or error}. Answers that were paid for would be lost. "
            f"Nothing was called: make it writable, or name another folder with --rag-output."
        ) from error
    return str(known["fingerprint"])


def _new_series(fingerprint: str) -> str:
    return json_digest([fingerprint, uuid4().hex])


def begin_series_anew(output: Path, experiments: Collection[str], has_rows: HasRows) -> None:
    """Begin new series of those of ``experiments`` that are a user's own and have an open one.

    The series before is noted: where the new run is ended before its first answer, ``--rag-resume`` goes on with that.
    """
    for file, known in _own(output, experiments):
        before = known["fingerprint"] if has_rows(known["experiment"], known["fingerprint"]) else known["before"]
        known |= {"fingerprint": _new_series(file.stem), "before": before}
        write_atomically(file, json.dumps(known).encode())


def resume_series(output: Path, experiments: Collection[str], has_rows: HasRows) -> None:
    """Open the series before again, where one without an answer has replaced it."""
    for file, known in _own(output, experiments):
        if known["before"] and not has_rows(known["experiment"], known["fingerprint"]):
            known |= {"fingerprint": known["before"], "before": ""}
            write_atomically(file, json.dumps(known).encode())


def unfinished_runs(output: Path, experiments: Collection[str]) -> list[tuple[str, str]]:
    """Return experiment and fingerprint of the unfinished runs of those of ``experiments`` that are a user's own."""
    own = [known for _, known in _own(output, experiments)]
    return [(known["experiment"], known[which]) for known in own for which in ("fingerprint", "before") if known[which]]


def _own(output: Path, experiments: Collection[str]) -> list[tuple[Path, dict[str, Any]]]:
    return [(file, known) for file, known in _open(output) if known["is_own"] and known["experiment"] in experiments]


def made_of(output: Path, fingerprints: Collection[str]) -> list[str]:
    """Return what is the same for all series of the open ones with these fingerprints."""
    return [file.stem for file, known in _open(output) if known["fingerprint"] in fingerprints]


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
        known = {name: str(said[name]) for name in ("experiment", "fingerprint")}
        return {**known, "is_own": bool(said.get("is_own", True)), "before": str(said.get("before", ""))}
    except (OSError, ValueError, KeyError, TypeError):
        return None
