"""Opening of an index that changes: on a named server, else as a shard in this process."""

from __future__ import annotations

from pathlib import Path

from rag_harness.retrieval.indexes.live import LivePoints
from rag_harness.retrieval.indexes.live_server import ServerPoints
from rag_harness.settings import Settings


def open_points(settings: Settings, folder: Path, name: str) -> LivePoints:
    """Return the index in ``folder``; with ``rag_qdrant_url`` that server's collection ``name``.

    Raises:
        LiveIndexError: the existing index is damaged.
        SettingsError: the URL is invalid.
    """
    if settings.qdrant_url:
        return ServerPoints.at(settings.qdrant_url, settings.qdrant_api_key, name)
    try:
        from rag_harness.retrieval.indexes.live_edge import EdgePoints
    except ImportError:  # Edge has no wheel for this platform
        return ServerPoints.at("", "", name)
    # A recording must be found on any machine, but two graphs over the same vectors differ.
    return EdgePoints(folder, exact=settings.mode in ("record", "replay"))
