"""The journal of a run: finished trials on disk before anybody reads them, and rows that a run need not make again."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from time import sleep
from typing import TypedDict
from uuid import uuid4

from filelock import FileLock, Timeout

from rag_harness.core.cache import unwritable
from rag_harness.core.errors import CriticalError
from rag_harness.core.files import APPENDING, json_digest, remove_unless_open, write_atomically
from rag_harness.core.json_text import read_json
from rag_harness.core.types import TrialId
from rag_harness.evaluation.measures import Score
from rag_harness.pipelines.experiments import DERIVED, result_path, scores_path
from rag_harness.records.files import (
    PREVIOUS,
    all_rows,
    keep_aside,
    last_rows,
    set_torn_apart,
    sync,
    take_over,
    take_over_scores,
)
from rag_harness.records.row import ExperimentResult, row_or_none, rows_in
from rag_harness.records.scores import BEGIN, SCORES, ScoreLine, parse_score, read_scores, row_digest

# A process holds a lock beside its file as long as it lives; any death frees the lock. A file whose lock is free
# belongs to no process, and its rows may be taken over.

JOURNALS = "journal"
"""Folder beside the result files."""
_ATTEMPTS = 4
_RESERVE = 2**20
"""Bytes reserved for the rows in flight when the disk gets full; at most an eighth of the free space."""


class Journal:
    """Appends lines to a file of this process.

    Args:
        folder: folder of the journals of all processes.
        name: name of this journal; it begins with the id of the run.

    Raises:
        CriticalError: the folder cannot be written.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.file: Path = folder / f"{name}.jsonl"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            # The lock comes before the file: another process may take over a file whose lock is free.
            self._lock = _locked(self.file)
            self._descriptor = os.open(self.file, APPENDING, 0o644)
        except OSError as error:
            raise CriticalError(
                f"The journal {self.file} cannot be written: {error}. Nothing was asked yet. Make room, or choose "
                f"another folder with --rag-output."
            ) from error
        self._written, self._synced = 0, 0
        self._syncing = asyncio.Lock()
        self._reserve = _Reserve(self.file)
        self._full: OSError | None = None
        self._failure: OSError | None = None
        # A thread of its own: sync pipelines may keep all threads of the loop busy.
        self._thread = ThreadPoolExecutor(1, "rag-journal")

    async def keep(self, line: bytes) -> None:
        """Return when ``line`` is on disk. Lines that wait together share one fsync.

        The line is written at once, before any wait. A later kill of the process does not lose it. The fsync protects
        it from a loss of power.

        Raises:
            CriticalError: the disk is full or broken. Lines in flight are written as long as the reserve lasts. They
                raise the error too because the run must stop.
        """
        if self._failure is None:
            self._write(line)
        mine = self._written
        async with self._syncing:
            # An earlier call may have synced this line with its own.
            if self._synced < mine and self._failure is None:
                upto = self._written
                await asyncio.get_running_loop().run_in_executor(self._thread, self._sync)
                self._synced = upto
        failure = self._failure or self._full
        if failure is not None:
            raise self._unwritable(failure) from failure

    def _write(self, content: bytes) -> None:
        while content and self._failure is None:
            try:
                content = content[os.write(self._descriptor, content) :]
            except OSError as error:
                self._note(error)
        self._written += 1

    def _sync(self) -> None:
        while self._failure is None:
            try:
                os.fsync(self._descriptor)
            except OSError as error:
                self._note(error)
            else:
                return

    def _note(self, error: OSError) -> None:
        """Note that the disk is full, as long as deleting the reserve makes room; else that nothing more is kept."""
        if self._reserve.release():
            self._full = error
        else:
            self._failure = error

    def _unwritable(self, error: OSError) -> CriticalError:
        error.filename = str(self.file)
        return CriticalError(f"Answers that were paid for would be lost, so the run stops: the journal {_said(error)}")

    def close(self) -> None:
        """Close the file and free its lock: the next process that looks may take its rows over."""
        self._thread.shutdown()
        self._reserve.release()
        os.close(self._descriptor)
        self._lock.release()


class _Reserve:
    """A file beside a journal that reserves disk space. Deleting it frees the space."""

    def __init__(self, journal: Path) -> None:
        self._file: Path | None = _reserve_of(journal)
        try:
            room = os.statvfs(journal.parent)
            with self._file.open("wb") as stream:
                os.posix_fallocate(stream.fileno(), 0, max(1, min(_RESERVE, room.f_bavail * room.f_frsize // 8)))
        except (OSError, AttributeError):  # the disk is full already, or the system has no fallocate
            self.release()

    def release(self) -> bool:
        """Delete the file. Return whether that freed space."""
        file, self._file = self._file, None
        try:
            if file is not None:
                file.unlink()
        except OSError:
            return False
        return file is not None


def _reserve_of(file: Path) -> Path:
    return file.with_suffix(".reserve")


def _said(error: OSError) -> str:
    return unwritable(error, Path(error.filename).parent)


def _locked(file: Path) -> FileLock:
    """Return the lock of a new journal. Who tidies up may have deleted it before it was held: then it locks nothing."""
    while True:
        lock = _lock_of(file)
        lock.acquire()
        if file.with_suffix(".lock").exists():
            return lock
        lock.release()


def _lock_of(file: Path) -> FileLock:
    # One thread takes the lock and another frees it.
    return FileLock(file.with_suffix(".lock"), thread_local=False)


@contextmanager
def abandoned(folder: Path) -> Iterator[dict[Path, list[bytes]]]:
    """Lock the journals that belong to no living process, and yield their lines."""
    held: list[FileLock] = []
    found: dict[Path, list[bytes]] = {}
    try:
        for file in sorted(folder.glob("*.jsonl")):
            lock = _try_lock(file)
            if lock is not None:
                held.append(lock)
                found |= _lines(file)
        yield found
    finally:
        for lock in held:
            lock.release()


def left_behind(folder: Path, known: Collection[Path]) -> dict[Path, list[bytes]]:
    """Return the lines of the journals that belong to no living process, without the ``known`` ones."""
    found: dict[Path, list[bytes]] = {}
    locks = {file: _lock_of(file) for file in sorted(set(folder.glob("*.jsonl")) - set(known))}
    for attempt in range(_ATTEMPTS):
        # Readers hold a lock for a moment only. The others belong to processes that live: waiting for each of them in
        # turn would take longer than a worker's replayed answers.
        sleep(0.005 * attempt if locks else 0)
        for file, lock in [*locks.items()]:
            with suppress(Timeout):
                lock.acquire(blocking=False)
                # No process writes to it any more, and other workers want to read it too.
                lock.release()
                found |= _lines(file)
                del locks[file]
    return dict(sorted(found.items()))


def _try_lock(file: Path) -> FileLock | None:
    """Return the lock of a journal; None where its process lives. Readers hold it for a moment only, so try again."""
    lock = _lock_of(file)
    for attempt in range(_ATTEMPTS):
        try:
            lock.acquire(blocking=False)
        except Timeout:
            sleep(0.005 * attempt)
        else:
            return lock
    return None


def _lines(file: Path) -> dict[Path, list[bytes]]:
    try:
        return {file: file.read_bytes().splitlines(keepends=True)}
    except FileNotFoundError:
        return {}  # another process has taken it over meanwhile


def remove(file: Path) -> None:
    """Delete a journal whose rows are safe elsewhere."""
    file.unlink(missing_ok=True)
    _reserve_of(file).unlink(missing_ok=True)
    # Windows removes it when it is let go.
    remove_unless_open(file.with_suffix(".lock"))


def tidy(folder: Path) -> None:
    """Delete what a kill has left of journals that were not there yet, or not any more: their locks and reserves."""
    for beside in (*folder.glob("*.lock"), *folder.glob("*.reserve")):
        file = beside.with_suffix(".jsonl")
        lock = None if file.exists() else _try_lock(file)
        if lock is not None:
            try:
                if not file.exists():  # it may have come before the lock was held
                    remove(file)
            finally:
                lock.release()


_Key = tuple[str, str, str]


class ResumeStore:
    """The scores and rows of earlier runs, and of dead workers of this run. Trials with an error are run again.

    Args:
        output: folder of the result files.
        run: id of this run; its journals' names begin with it.
        overwrite: whether to ignore earlier runs.
    """

    def __init__(self, output: Path, run: str, overwrite: bool) -> None:
        self._output, self._run, self._overwrite = output, run, overwrite
        self._earlier: dict[tuple[str, str], dict[str, ExperimentResult]] = {}
        self._left_behind: dict[_Key, tuple[ExperimentResult, bool]] = {}
        self._failed: dict[_Key, ExperimentResult] = {}
        self._scores: dict[str, dict[tuple[str, ...], ScoreLine]] = {}
        self._scores_left: dict[TrialId, list[bytes]] = {}
        self._read: set[Path] = set()

    def find(self, experiment: str, fingerprint: str, query_id: str) -> tuple[ExperimentResult, bool] | None:
        """Return the row of a trial, and whether an earlier run has made it; None where the trial has to be run."""
        earlier = self._earlier_row(experiment, fingerprint, query_id)
        if earlier is not None and earlier.ok:
            return earlier, True
        return self._left_behind.get((experiment, fingerprint, query_id))

    def last(
        self, experiment: str, fingerprint: str, query_id: str, *, of_any_run: bool = False
    ) -> ExperimentResult | None:
        """Return the last row of a trial, also one that ended with an error; None where there is none.

        ``of_any_run``: the last row in the file counts, whatever its fingerprint, where this run has none.
        """
        found = self.find(experiment, fingerprint, query_id)
        if found is not None:
            return found[0]
        left = self._failed.get((experiment, fingerprint, query_id))
        return left or self._earlier_row(experiment, "" if of_any_run else fingerprint, query_id)

    def _earlier_row(self, experiment: str, fingerprint: str, query_id: str) -> ExperimentResult | None:
        if self._overwrite:
            return None
        wanted = experiment, fingerprint
        if wanted not in self._earlier:
            file = result_path(self._output, experiment)
            self._earlier[wanted] = all_rows(file, fingerprint) if fingerprint else last_rows(file)
        return self._earlier[wanted].get(query_id)

    def score(self, experiment: str, key: tuple[str, ...]) -> ScoreLine | None:
        """Return the known score with this key; None where the row has to be judged."""
        if experiment not in self._scores:
            earlier = () if self._overwrite else read_scores(scores_path(self._output, experiment))
            self._scores[experiment] = {score.key: score for score in earlier if score.is_final}
        return self._scores[experiment].get(key)

    def scores_of(self, experiment: str, query_id: str) -> list[ScoreLine]:
        """Return the known scores of an experiment's query."""
        self.score(experiment, ())
        return [each for each in self._scores[experiment].values() if each.query_id == query_id]

    def reread(self, journal: Path, trial: TrialId) -> ExperimentResult:
        """Return a row that this process has put into its journal."""
        rows = [row for row in map(row_or_none, journal.read_bytes().splitlines()) if row]
        return [row for row in rows if row.trial == trial][-1]

    def reread_scores(self, journal: Path, trial: TrialId) -> dict[str, Score]:
        """Return the scores of a trial, by measure, that this process has put into its journal."""
        found = self.reread_lines(journal, trial)
        return {one.measure: Score(one.value, one.reason, one.detail, one.undefined) for one in found}

    def reread_lines(self, journal: Path, trial: TrialId) -> list[ScoreLine]:
        """Return the lines of a trial's scores that this process has put into its journal; none of repeats."""
        lines = [line for line in journal.read_bytes().splitlines() if line.startswith(BEGIN)]
        found = [score for score in map(parse_score, lines) if score is not None and score.trial == trial]
        return [one for one in found if not one.repeat]

    def scores_left_of(self, trial: TrialId) -> list[bytes]:
        """Return the lines of a trial's scores that dead workers of this run have left."""
        return self._scores_left.get(trial, [])

    def look_for_the_dead(self) -> None:
        """Read the journals of processes that have died since the last look."""
        for file, lines in left_behind(self._output / JOURNALS, self._read).items():
            ours = file.name.startswith(self._run)
            if ours or not self._overwrite:
                self._add(lines, earlier=not ours)
            self._read.add(file)

    def _add(self, lines: list[bytes], earlier: bool) -> None:
        for line in lines:
            if line.startswith(BEGIN):
                self._add_score(parse_score(line), line, earlier)
                continue
            row = row_or_none(line)
            if row is not None and row.ok:
                self._left_behind[row.experiment, row.fingerprint, row.query_id] = row, earlier
            elif row is not None:
                self._failed[row.experiment, row.fingerprint, row.query_id] = row

    def _add_score(self, score: ScoreLine | None, line: bytes, earlier: bool) -> None:
        if score is None or not score.is_final:
            return
        self.score(score.experiment, score.key)
        self._scores[score.experiment][score.key] = score
        if not earlier:
            self._scores_left.setdefault(score.trial, []).append(line)


@dataclass
class AdoptedRows:
    """What was taken over from journals: the numbers of new rows and scores, and of damaged lines."""

    rows: int = 0
    scores: int = 0
    damaged: int = 0


def adopt_journals(output: Path) -> AdoptedRows:
    """Move the lines of dead processes' journals into the result files. Unreadable lines go to ``previous/``.

    So do lines that a full disk has torn in the result files, whether or not anything is written to them later.
    """
    adopted = AdoptedRows(damaged=_torn_set_apart(output))
    if not (output / JOURNALS).is_dir():
        return adopted
    with abandoned(output / JOURNALS) as journals:
        recorded = _lines_in_files(output) if journals else {}
        by_file: dict[Path, list[tuple[ExperimentResult, bytes]]] = {}
        scores: dict[Path, list[tuple[ScoreLine, bytes]]] = {}
        damaged: list[bytes] = []
        # Most lines are already in a result file, byte for byte. They are compared as bytes: to parse them as rows
        # took most of the time at the end of a run.
        safe: set[Path] = set()
        for line in (line for lines in journals.values() for line in lines):
            file = recorded.get(hash(line))
            score = parse_score(line) if file is None and line.startswith(BEGIN) else None
            row = row_or_none(line) if file is None and score is None and line.endswith(b"\n") else None
            if file is not None:
                safe.add(file)
            elif score is not None:
                scores.setdefault(scores_path(output, score.experiment), []).append((score, line))
            elif row is None:
                damaged.append(line)
            else:
                by_file.setdefault(result_path(output, row.experiment), []).append((row, line))
        adopted.rows = sum(take_over(file, rows) for file, rows in by_file.items())
        adopted.scores = sum(take_over_scores(file, _of_rows(file, lines)) for file, lines in scores.items())
        adopted.damaged += keep_aside(output / PREVIOUS / "journal-damaged.jsonl", damaged)
        # The journals are removed below, so these files must be safe on the disk first.
        for file in safe:
            sync(file)
        for journal in journals:
            remove(journal)
    tidy(output / JOURNALS)
    return adopted


def _torn_set_apart(output: Path) -> int:
    return sum(set_torn_apart(file, output / PREVIOUS / "torn.jsonl") for file in _files(output))


def _files(output: Path) -> list[Path]:
    folders = (output, output / SCORES, output / DERIVED, output / DERIVED / SCORES)
    return [file for folder in folders for file in folder.glob("*.jsonl")]


def _of_rows(file: Path, scores: list[tuple[ScoreLine, bytes]]) -> list[tuple[ScoreLine, bytes]]:
    """Leave out scores of rows that were not taken. Two workers may have run one trial: the first row counts."""
    rows = {(row.query_id, row_digest(row)) for row in rows_in(file.parent.parent / file.name)}
    return [(score, line) for score, line in scores if (score.query_id, score.row) in rows]


def _lines_in_files(output: Path) -> dict[int, Path]:
    """Return the file of each whole line of the result files, by the line's hash: there are many long lines."""
    found: dict[int, Path] = {}
    for file in _files(output):
        with file.open("rb") as stream:
            found |= dict.fromkeys((hash(line) for line in stream if line.endswith(b"\n")), file)
    return found


# A run of such an experiment opens a series, or goes on with the open one. A run that finishes closes it. The series is
# part of the fingerprint, so that rows of another series count as rows of other code.

SERIES = "unfinished"
"""Folder beside the result files. A file of it is named by the fingerprint that is the same for all series."""


class _Series(TypedDict):
    """An open series.

    ``fingerprint`` is the fingerprint of its rows. ``before`` is the fingerprint of the series that it replaced before
    its first answer. ``is_own`` marks the series of a user's own experiment: each run begins a new one. An experiment
    of the package continues its series.
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
