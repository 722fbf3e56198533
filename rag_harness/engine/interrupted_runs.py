"""Interrupted runs of what is asked in each run: what they have left, and whether a run goes on with it.

A run of such an experiment opens a series, or goes on with the open one. A run that finishes closes it. The series is
part of the fingerprint, so that rows of another series count as rows of other code.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TypedDict
from uuid import uuid4

from rag_harness.errors import CriticalError
from rag_harness.files.atomic import write_atomically
from rag_harness.files.json_text import read_json
from rag_harness.files.sources import json_digest
from rag_harness.results.file import all_rows
from rag_harness.results.result_paths import result_path
from rag_harness.types import TrialId

SERIES = "unfinished"
"""Folder beside the result files. A file of it is named by the fingerprint that is the same for all series."""


class _Series(TypedDict):
    """An open series.

    ``fingerprint`` is that of its rows, and ``before`` that of the series that it replaced before its first answer.
    ``is_own``: it is of a user's own, of which a run begins a new series; an experiment of the package goes on.
    """

    experiment: str
    fingerprint: str
    is_own: bool
    before: str


class InterruptedRuns:
    """The open series in a folder of results."""

    def __init__(self, output: Path) -> None:
        self._output = output

    def fingerprint(self, experiment: str, fingerprint: str, *, is_own: bool) -> str:
        """Return the fingerprint of rows of the open series; open one where there is none.

        Args:
            experiment: its name.
            fingerprint: the same for all series.
            is_own: whether it is a user's own.

        Raises:
            CriticalError: the folder cannot be written.
        """
        from filelock import FileLock

        file = self._output / SERIES / f"{fingerprint}.json"
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(file.with_suffix(".lock")):
                known = _read(file)
                if known is None:
                    known = _Series(
                        experiment=experiment, fingerprint=_new_series(fingerprint), is_own=is_own, before=""
                    )
                    _write(file, known)
        except OSError as error:
            raise CriticalError(
                f"{file.parent} cannot be written: {error.strerror or error}. Answers that were paid for would be "
                f"lost. Nothing was called: make it writable, or name another folder with --rag-output."
            ) from error
        return known["fingerprint"]

    def announced(self, trials: Collection[TrialId]) -> Iterator[str]:
        """Yield a line for each experiment with answers of an interrupted run to ``trials``, which are asked again."""
        asked: dict[str, set[str]] = {}
        for trial in trials:
            asked.setdefault(trial.experiment, set()).add(trial.query_id)
        for _, known in self._own(asked):
            name = known["experiment"]
            answered = {*self._answered(name, known["fingerprint"]), *self._answered(name, known["before"])}
            if n := len(answered & asked[name]):
                yield (
                    f"rag: {n:,} of {len(asked[name]):,} answers of an interrupted run of {name}: --rag-resume goes on "
                    "with it. This run asks all of them."
                )

    def begin(self, experiments: Collection[str]) -> None:
        """Begin new series of those of ``experiments`` that are a user's own and have an open one.

        Where the new run is ended before its first answer, ``--rag-resume`` goes on with the series before.
        """
        for file, known in self._own(experiments):
            has_answers = self._answered(known["experiment"], known["fingerprint"])
            known["before"] = known["fingerprint"] if has_answers else known["before"]
            known["fingerprint"] = _new_series(file.stem)
            _write(file, known)

    def resume(self, experiments: Collection[str]) -> None:
        """Open the series before again, where one without an answer has replaced it."""
        for file, known in self._own(experiments):
            if known["before"] and not self._answered(known["experiment"], known["fingerprint"]):
                known["fingerprint"], known["before"] = known["before"], ""
                _write(file, known)

    def made_of(self, fingerprints: Collection[str]) -> list[str]:
        """Return what is the same for all series of the open ones with these fingerprints."""
        return [file.stem for file, known in self._open() if known["fingerprint"] in fingerprints]

    def close(self, finished: Mapping[str, frozenset[str]]) -> None:
        """Close the series whose fingerprints are ``finished``, by experiment: they have no trial left to ask."""
        for file, known in self._open():
            if known["fingerprint"] in finished.get(known["experiment"], ()):
                file.unlink(missing_ok=True)
                file.with_suffix(".lock").unlink(missing_ok=True)
        folder = self._output / SERIES
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()

    def _own(self, experiments: Collection[str]) -> list[tuple[Path, _Series]]:
        return [each for each in self._open() if each[1]["is_own"] and each[1]["experiment"] in experiments]

    def _open(self) -> Iterator[tuple[Path, _Series]]:
        for file in sorted((self._output / SERIES).glob("*.json")):
            known = _read(file)
            if known is not None:
                yield file, known

    def _answered(self, experiment: str, fingerprint: str) -> set[str]:
        """Return the queries with an answer of a series. Journals of dead processes were moved into the files."""
        rows = all_rows(result_path(self._output, experiment), fingerprint).values() if fingerprint else ()
        return {row.query_id for row in rows if row.ok}


def _new_series(fingerprint: str) -> str:
    return json_digest([fingerprint, uuid4().hex])


def _read(file: Path) -> _Series | None:
    """Return the content of a file; None where there is none, or it is damaged."""
    try:
        said = read_json(file.read_bytes())
        return _Series(
            experiment=str(said["experiment"]),
            fingerprint=str(said["fingerprint"]),
            is_own=bool(said.get("is_own", True)),
            before=str(said.get("before", "")),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _write(file: Path, known: _Series) -> None:
    write_atomically(file, json.dumps(known).encode())
