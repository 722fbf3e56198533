"""The index ``memory``: qdrant-client's in-memory mode."""

from __future__ import annotations

from pathlib import Path

from rag_harness.core.errors import SettingsError
from rag_harness.core.protocols import Index, RetrievalParts
from rag_harness.core.settings import Settings
from rag_harness.retrieval.indexes import LivePoints, server
from rag_harness.retrieval.indexes.server import ServerPoints


def create(parts: RetrievalParts) -> Index:
    """Return the index of the content digest in the memory of this process.

    Raises:
        SettingsError: a server is named, too.
        PrerequisiteError: qdrant-client is not installed; names the extra.
    """
    _check_no_server(parts.settings)
    return server.create(parts)


def open_points(settings: Settings, _folder: Path, name: str) -> LivePoints:
    """Return an empty index in memory: a service fills it again from its database whenever it starts."""
    _check_no_server(settings)
    return ServerPoints.at("", "", name)


def _check_no_server(settings: Settings) -> None:
    if settings.qdrant_url:
        raise SettingsError(
            f"--rag-index=memory is in this process, and rag_qdrant_url names {settings.qdrant_url}: leave one out."
        )
