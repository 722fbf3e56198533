"""What ``rag-harness ingest`` does with Parquet, and on the nodes of a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rag_harness.errors import SettingsError

if TYPE_CHECKING:
    from rag_harness.bulk.values import Window
    from rag_harness.dataset.library import Unread
    from rag_harness.settings import Settings


@dataclass(frozen=True)
class Asked:
    """What is to be ingested: ``windows`` of ``total`` files or rows; ``refused`` files are none of them."""

    total: int
    unit: str
    windows: Iterator[Window]
    probes: dict[str, int]
    refused: Sequence[Unread] = ()


def asked_for(paths: Sequence[str]) -> Asked:
    """Look at what paths, URLs and patterns name; no document is read.

    Raises:
        DataError: they name nothing, or Parquet files that are none of documents.
        SettingsError: Parquet files and others are mixed.
    """
    from rag_harness.bulk.places import is_parquet

    tables = [path for path in paths if is_parquet(path)]
    if tables and len(tables) < len(paths):
        raise SettingsError(f"{tables[0]} is Parquet, and other paths are not: ingest them one after the other.")
    return _rows(tables) if tables else _files([Path(path) for path in paths])


def _rows(paths: Sequence[str]) -> Asked:
    from rag_harness.bulk.parquet_rows import looked_at, windows
    from rag_harness.bulk.places import found

    tables = looked_at(found(paths))
    return Asked(sum(table.rows for table in tables), "rows", windows(tables), {})


def _files(paths: Sequence[Path]) -> Asked:
    from rag_harness.bulk.files import probes, windows
    from rag_harness.dataset.collection import sources_of

    sources, refused = sources_of(paths)
    return Asked(len(sources), "files", windows(sources), probes(sources), refused)


def to_parquet(asked: Asked, folder: str, settings: Settings) -> tuple[list[str], bool]:
    """Write chunks and vectors as Parquet; return the summary, and whether all documents could be read."""
    from rag_harness.bulk.parts_folder import PartsFolder
    from rag_harness.bulk.to_parquet import write_parts
    from rag_harness.bulk.values import Opening
    from rag_harness.distributed.bulk_crew import crew_for

    if settings.near_duplicates:
        raise SettingsError("--near-duplicates compares all documents, --to sees a part at a time: name one of them.")
    parts = PartsFolder(folder)
    with crew_for(Opening(settings, asked.probes, parts.held)) as (crew, ready):
        written = write_parts(asked.windows, asked.total, asked.unit, crew, parts, ready.made_by)
    written.failed[:0] = [each.line for each in asked.refused]
    return written.lines(), not written.failed
