"""The index ``qdrant``: a server if the settings name one, else the engine in this process."""

from __future__ import annotations

from pathlib import Path

from rag_harness.core.log import log
from rag_harness.core.protocols import Index, RetrievalParts
from rag_harness.core.settings import Settings
from rag_harness.retrieval.indexes import LivePoints


def create(parts: RetrievalParts) -> Index:
    """Return the index of the settings.

    Only the kind in use is imported: qdrant-client takes a second, Edge a hundredth of a second.
    """
    if not parts.settings.qdrant_url:
        try:
            from rag_harness.retrieval.indexes import edge as qdrant_edge
        except ImportError as error:
            # No wheel for this platform, e.g. Windows on ARM.
            log.info("Qdrant Edge cannot be imported (%s): qdrant-client's memory mode serves", error)
        else:
            return qdrant_edge.create(parts)
    from rag_harness.retrieval.indexes import server as qdrant_server

    return qdrant_server.create(parts)


def open_points(settings: Settings, folder: Path, name: str) -> LivePoints:
    """Return the index in ``folder``; with ``rag_qdrant_url`` that server's collection ``name``.

    Raises:
        LiveIndexError: the existing index is damaged.
        SettingsError: the URL is invalid.
    """
    from rag_harness.retrieval.indexes.server import ServerPoints

    if settings.qdrant_url:
        return ServerPoints.at(settings.qdrant_url, settings.qdrant_api_key, name)
    try:
        from rag_harness.retrieval.indexes.edge import EdgePoints
    except ImportError:  # Edge has no wheel for this platform
        return ServerPoints.at("", "", name)
    # A recording must be found on any machine, but two graphs over the same vectors differ.
    return EdgePoints(folder, exact=settings.mode in ("record", "replay"))
