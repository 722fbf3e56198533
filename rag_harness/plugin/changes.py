"""What has changed in a run's data since a git revision: pages, questions, and code."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rag_harness.errors import DataError, SettingsError

if TYPE_CHECKING:
    from rag_harness.authoring.questions.since import DataChange
    from rag_harness.dataset.data import Data
    from rag_harness.files.git import Since
    from rag_harness.settings import Settings

_CODE = (".py", ".toml", ".ini", ".cfg", ".env")
"""Endings of files in which pipelines and settings are written."""


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes in one set of data.

    Attributes:
        change: pages and questions.
        folder: of the documents, as it was named.
        unknown: the file of questions, if git had no file of that name; else empty.
        code: changed files of the repository that may change answers but are not documents.
    """

    change: DataChange
    folder: str
    unknown: str
    code: tuple[str, ...]


def changes_of(data: Data, settings: Settings, golden: bool) -> Changes:
    """Return what has changed in one set of data since the revision that the settings name.

    Args:
        data: the set.
        settings: of the run.
        golden: whether the golden set is meant instead of the questions.

    Raises:
        SettingsError: git cannot say what changed.
        DataError: the questions cannot be read.
    """
    from rag_harness.authoring.questions.since import DataChange
    from rag_harness.files.git import since

    if data.collection is not None:
        raise SettingsError(
            f"--rag-affected-by={settings.affected_by} looks at a folder of documents, and rag_dataset names a "
            f"collection in its place. Leave one of the two out."
        )
    folder = settings.path(data.folder)
    at = since(folder, settings.affected_by)
    tracked = at.changed()
    pages = _pages(at, folder, tracked | at.untracked(folder)) | _told_otherwise(at, folder, tracked)
    file = data.golden_file if golden else data.queries_file
    now, before = _now_and_before(at, file, tracked, _golden_rows if golden else partial(_rows, mapped=data.mapped))
    rows = frozenset(name for name, row in now.items() if before.get(name) != row)
    return Changes(
        DataChange(pages, rows), data.folder, file.name if now and not before else "", _code(at, folder, tracked)
    )


def _pages(at: Since, folder: Path, paths: frozenset[str]) -> frozenset[str]:
    """Return the ids of the documents among paths, deleted ones included."""
    from rag_harness.dataset.ingest import is_page, is_page_named

    below = at.path_of(folder)
    start = f"{below}/" if below else ""
    found = (path.removeprefix(start) for path in paths if path.startswith(start))
    found = (name for name in found if not any(part.startswith(".") for part in name.split("/")))
    # Of a file that is gone, only the name is left.
    return frozenset(
        name
        for name in found
        if (is_page(folder / name, folder) if (folder / name).exists() else is_page_named(Path(name)))
    )


def _told_otherwise(at: Since, folder: Path, tracked: frozenset[str]) -> frozenset[str]:
    """Return the pages whose entry in structure.json has changed: titles, versions, dates."""
    from rag_harness.dataset.knowledge_base import read_structure

    file = folder / "structure.json"
    now, before = _now_and_before(at, file, tracked, read_structure)
    return frozenset(name for name in now.keys() | before.keys() if now.get(name) != before.get(name))


def _now_and_before(
    at: Since, file: Path, tracked: frozenset[str], read: Callable[[Path], Mapping[str, object]]
) -> tuple[Mapping[str, object], Mapping[str, object]]:
    """Return what a file says now and what it said; two empty mappings if it has not changed."""
    path = at.path_of(file)
    content = at.content(path) if path is not None else None
    if content is not None and path not in tracked:
        return {}, {}
    now = read(file) if file.is_file() else {}
    return now, _read_content(content, file.suffix, read) if content is not None else {}


def _read_content(content: bytes, suffix: str, read: Callable[[Path], Mapping[str, object]]) -> Mapping[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        before = Path(folder, f"before{suffix}")
        before.write_bytes(content)
        try:
            return read(before)
        except DataError:
            return {}  # if the old file cannot be read, everything in the file counts as new


def _rows(file: Path, mapped: Mapping[str, str]) -> Mapping[str, object]:
    from rag_harness.dataset.queries import read_queries

    # Lines that cannot be used stop the run elsewhere, or are skipped.
    return {case.query.query_id: repr(case) for case in read_queries(file, skipped=[], mapped=mapped)}


def _golden_rows(file: Path) -> Mapping[str, object]:
    from rag_harness.dataset.golden import read_golden

    return {entry.entry_id: repr(entry) for entry in read_golden(file)}


def _code(at: Since, folder: Path, tracked: frozenset[str]) -> tuple[str, ...]:
    """Return the changed files that may change answers but are not documents."""
    below = at.path_of(folder)
    start = f"{below}/" if below else ""
    return tuple(sorted(path for path in tracked if path.endswith(_CODE) and not (start and path.startswith(start))))
