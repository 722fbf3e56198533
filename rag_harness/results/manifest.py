"""``run.json`` beside the rows: what the run was made of, and what became of each case that it was to look at.

With the result files and ``cases/`` it is all that a report needs, today or in a year.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Collection
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from rag_harness.errors import DataError
from rag_harness.files.atomic import write_atomically
from rag_harness.registry.installed import NAME
from rag_harness.results.row import ExperimentResult, first_problem

MANIFEST = "run.json"
QUERIES = "queries"
"""Name of the data that experiments are run on."""
_PACKAGES = (NAME, "numpy", "qdrant-edge-py", "qdrant-client", "openai", "PyStemmer")

Some = Literal["all"] | list[str]
"""Ids of cases; ``all`` where none of the data is missing."""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class SuiteRecord(_Record):
    """An experiment or ``golden``, in one run.

    Attributes:
        data: name of its cases, ``cases/<data>.jsonl``.
        file: its result file, beside this one.
        fingerprints: of the rows that came in this run; rows of others in the file are not of it.
        total: cases in the data.
        selected: those that the run was to look at.
        lost: selected, but no row came: a crash took them, or a test that never asked.
        not_run: selected, but not asked for: the budget was spent, or somebody interrupted the run.
        settled: selected, but not asked for: every gate of the suite was settled without them.
        resumed: whose row an earlier run has made.
        judged: what its rows were judged on, by name: measures that a judge was asked for, and what is made of them.
        authors: whose judgements are of this run: judge, model and revision each.
        judging: what judging took in this run: tokens, calls, and how many of the calls were replayed.
        made: when its rows were made, where an earlier run made all of them and this one did not look at it.
        pages: digest of the files of documents that its questions are about, when it ran; empty where nobody knows.
        replayed: whether answers of it are recorded ones: after new recordings they may be others.
        is_current: whether they are what this run would have made: same code, settings, data. None: nobody knows.
    """

    data: str
    file: str
    fingerprints: list[str]
    total: int
    selected: Some
    lost: list[str] = []
    not_run: list[str] = []
    settled: list[str] = []
    resumed: Some = []
    judged: list[str] = []
    authors: list[tuple[str, str, str]] = []
    judging: dict[str, int] = {}
    made: str = ""
    is_current: bool | None = None
    pages: str = ""
    replayed: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether every case of the data was asked, and came back."""
        return self.selected == "all" and not (self.lost or self.not_run or self.settled)


class RunManifest(_Record):
    """A run. ``digests`` say which data it was about; ``settings`` are without keys; ``date`` is ISO 8601, UTC."""

    schema_version: Literal[1] = 1
    date: str
    commit: str = ""
    packages: dict[str, str] = {}
    settings: dict[str, Any]
    digests: dict[str, str] = {}
    suites: dict[str, SuiteRecord]


def write_manifest(output: Path, manifest: RunManifest) -> None:
    """Write ``run.json``; a reader sees the old file or all of the new one."""
    write_atomically(output / MANIFEST, (manifest.model_dump_json(indent=1) + "\n").encode())


def read_manifest(output: Path) -> RunManifest:
    """Read ``run.json``.

    Raises:
        DataError: there is none, or it is damaged; says what to do.
    """
    file = output / MANIFEST
    try:
        return RunManifest.model_validate_json(file.read_bytes())
    except FileNotFoundError:
        problem = "there is no such file"
    except ValidationError as error:
        problem = first_problem(error)
    raise DataError(f"{file} does not describe a run: {problem}. Run pytest with --rag-output={output} first.")


def ids_or_all(ids: Collection[str], total: int) -> Some:
    """Return ``ids`` in the shortest form."""
    return "all" if ids and len(ids) == total else list(ids)


def chosen(some: Some) -> Callable[[str], bool]:
    """Return what says of an id whether it is among ``some``."""
    return (lambda _: True) if some == "all" else frozenset(some).__contains__


def awaited(record: SuiteRecord) -> Callable[[str], bool]:
    """Return what says of a case whether a row of it has come in the run: it was selected, asked for, and not lost."""
    is_selected, missing = chosen(record.selected), missing_of(record)
    return lambda case_id: is_selected(case_id) and case_id not in missing


def missing_of(record: SuiteRecord) -> frozenset[str]:
    """Return the cases that no row has come of, though they were selected."""
    return frozenset([*record.lost, *record.not_run, *record.settled])


def of_run(record: SuiteRecord) -> Callable[[ExperimentResult], bool]:
    """Return what says of a row in the suite's file whether it is of the run, by its fingerprint and its case."""
    has_come, fingerprints = awaited(record), frozenset(record.fingerprints)
    return lambda row: row.fingerprint in fingerprints and has_come(row.query_id)


def now() -> str:
    """Return the time as the files have it."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def package_versions() -> dict[str, str]:
    """Return the versions of the packages that move a result, of those that are installed."""
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def commit_of(folder: Path) -> str:
    """Return the git commit that ``folder`` is at; empty where there is none."""
    try:
        found = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True, timeout=5, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return found.stdout.strip() if found.returncode == 0 else ""
