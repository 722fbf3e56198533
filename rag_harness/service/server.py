"""One server: its state folder, its rooms, and uvicorn around the application."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from rag_harness.service.app import create_app
from rag_harness.service.corpus.corpora import Corpora
from rag_harness.service.options import Options
from rag_harness.service.serviced import Service
from rag_harness.service.state.folder import StateFolder
from rag_harness.settings import Settings


def serve(options: Options, settings: Settings, log_format: str, log_level: str) -> int:
    """Serve until the process is told to end; return its exit status."""
    import uvicorn

    with StateFolder(options.state) as state:

        @asynccontextmanager
        async def opening() -> AsyncIterator[Service]:
            corpora = Corpora(settings, options, state)
            await corpora.open()
            try:
                yield Service(options, corpora, state)
            finally:
                await corpora.close()

        uvicorn.run(
            create_app(opening),
            host=options.host,
            port=options.port,
            server_header=False,
            log_config=None,
            timeout_graceful_shutdown=10,
        )
    return 0
