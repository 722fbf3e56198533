"""The parts of ``rag-harness ingest`` for Parquet files and for the nodes of a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rag_harness.errors import DataError, SettingsError

if TYPE_CHECKING:
    from rag_harness.dataset.library import Library, Unread
    from rag_harness.retrieval.bulk.survey import Survey, Windows
    from rag_harness.retrieval.bulk.to_server import Filled
    from rag_harness.retrieval.retrieval import Retrieval
    from rag_harness.settings import Settings


@dataclass(frozen=True)
class IngestInput:
    """What is to be ingested: ``windows`` of ``total`` files or rows. The ``refused`` files are not among them."""

    total: int
    unit: str
    windows: Windows
    probes: dict[str, int]
    refused: Sequence[Unread] = ()


def asked_for(paths: Sequence[str]) -> IngestInput:
    """Return what the paths, URLs and patterns name. No document is read.

    Raises:
        DataError: they name nothing, Parquet files without rows, or Parquet files that hold no documents.
        SettingsError: Parquet files and others are mixed.
    """
    from rag_harness.retrieval.bulk.arrow_files import is_parquet

    tables = [path for path in paths if is_parquet(path)]
    if tables and len(tables) < len(paths):
        raise SettingsError(f"{tables[0]} is Parquet, and other paths are not: ingest them one after the other.")
    return _rows(tables) if tables else _files([Path(path) for path in paths])


def _rows(paths: Sequence[str]) -> IngestInput:
    from rag_harness.retrieval.bulk.arrow_files import found
    from rag_harness.retrieval.bulk.parquet_rows import looked_at, windows

    tables = looked_at(found(paths))
    total = sum(table.rows for table in tables)
    if not total:
        raise DataError(f"No row in {', '.join(paths)}: documents are rows with id and text.")
    return IngestInput(total, "rows", lambda: windows(tables), {})


def _files(paths: Sequence[Path]) -> IngestInput:
    from rag_harness.dataset.named_files import sources_of
    from rag_harness.retrieval.bulk.files import probes, windows

    sources, refused = sources_of(paths)
    return IngestInput(len(sources), "files", lambda: windows(sources), probes(sources), refused)


def by_crew(paths: Sequence[str], settings: Settings) -> bool:
    """Return whether a crew makes the index: for Parquet files, or on a cluster."""
    from rag_harness.retrieval.bulk.arrow_files import is_parquet

    return settings.engine == "ray" or any(map(is_parquet, paths))


def to_index(asked: IngestInput, settings: Settings) -> tuple[Library, Retrieval | None]:
    """Update an index to the documents, which the crew reads, cuts and embeds."""
    from rag_harness.commands.ingest_crew import crew_for
    from rag_harness.pipelines.parts import RunParts
    from rag_harness.retrieval.bulk.bulk_messages import IngestOpening
    from rag_harness.retrieval.bulk.to_library import embedding_by, read_by
    from rag_harness.retrieval.retrieval import Retrieval, spec_of

    parts, spec = RunParts(settings), spec_of(settings)
    embedder = parts.embedder(spec.embedder)
    with crew_for(IngestOpening(settings, asked.probes)) as (crew, _):
        found = read_by(crew, asked.windows(), asked.total, asked.unit, parts.stores)
        library = replace(found, unread=(*asked.refused, *found.unread))
        if not library.documents:
            return library, None
        embedder.elsewhere = embedding_by(crew)
        made = Retrieval(spec, lambda: library.documents, settings, parts.stores, embedder)
        made.prepare([])
        embedder.elsewhere = None
    return library, made


def by_nodes(settings: Settings) -> bool:
    """Return whether the crew can send points to a server itself. It cannot if chunks are left out by comparing all."""
    return bool(settings.qdrant_url) and settings.index == "qdrant" and not settings.near_duplicates


def to_server(asked: IngestInput, settings: Settings) -> tuple[Survey, Filled | None]:
    """Let the crew update a collection on a Qdrant server; None if there is no chunk."""
    from rag_harness.commands.ingest_crew import crew_for
    from rag_harness.retrieval.bulk.bulk_messages import IngestOpening
    from rag_harness.retrieval.bulk.kept_cuts import keeping_cuts
    from rag_harness.retrieval.bulk.survey import survey
    from rag_harness.retrieval.bulk.to_server import check, fill_by

    check(settings)
    opening = IngestOpening(settings, asked.probes, sends=True)
    with keeping_cuts(settings) as keep, crew_for(opening) as (crew, ready):
        model, revision = ready.made_by["embedded_by"]
        found = survey(asked.windows, asked.total, asked.unit, crew, (model, revision), keep)
        found.failed[:0] = [each.line for each in asked.refused]
        filled = fill_by(crew, asked.windows, found, f"{model}@{revision}", settings) if found.chunks else None
    return found, filled


def to_parquet(asked: IngestInput, folder: str, settings: Settings) -> tuple[list[str], bool]:
    """Write chunks and vectors as Parquet; return the summary, and whether all documents could be read."""
    from rag_harness.commands.ingest_crew import crew_for
    from rag_harness.retrieval.bulk.bulk_messages import IngestOpening
    from rag_harness.retrieval.bulk.parts_folder import PartsFolder
    from rag_harness.retrieval.bulk.to_parquet import write_parts

    if settings.near_duplicates:
        raise SettingsError("--near-duplicates compares all documents, --to sees a part at a time: name one of them.")
    parts = PartsFolder(folder)
    with crew_for(IngestOpening(settings, asked.probes, parts.held)) as (crew, ready):
        written = write_parts(asked.windows(), asked.total, asked.unit, crew, parts, ready.made_by)
    written.failed[:0] = [each.line for each in asked.refused]
    return written.lines(), not written.failed
