"""The index registered as ``qdrant``: a server if the settings name one, else the engine in this process."""

from __future__ import annotations

from rag_harness.files.log import log
from rag_harness.protocols import Index, RetrievalParts


def create(parts: RetrievalParts) -> Index:
    """Return the index of the settings.

    Only the kind in use is imported: qdrant-client takes a second, Edge a hundredth of a second.
    """
    if not parts.settings.qdrant_url:
        try:
            from rag_harness.retrieval.indexes import qdrant_edge
        except ImportError as error:
            # No wheel for this platform, e.g. Windows on ARM.
            log.info("Qdrant Edge cannot be imported (%s): qdrant-client's memory mode serves", error)
        else:
            return qdrant_edge.create(parts)
    from rag_harness.retrieval.indexes import qdrant_server

    return qdrant_server.create(parts)
