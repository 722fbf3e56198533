"""One server: its state folder, its rooms, and uvicorn around the application."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from rag_harness.once import IMPORTING
from rag_harness.service.access import keys
from rag_harness.service.access.binding import check_host
from rag_harness.service.access.listening import settings as listening
from rag_harness.service.access.rates import parsed
from rag_harness.service.app import create_app
from rag_harness.service.corpus.corpora import Corpora
from rag_harness.service.observing.logs import Format, logging_to
from rag_harness.service.observing.metrics import Metrics
from rag_harness.service.observing.otlp import Exporter, address
from rag_harness.service.observing.traces import Traces
from rag_harness.service.options import Options
from rag_harness.service.serviced import Service
from rag_harness.service.state.database import Database
from rag_harness.service.state.folder import StateFolder
from rag_harness.settings import Settings, access_of

_LEAVES_WITHIN = 10
"""Seconds that answers under way get when the server is told to end."""
_HELD = """SELECT name, (SELECT COUNT(*) FROM documents WHERE collection_id = collections.id AND status = 'ready'),
    (SELECT COALESCE(SUM(chunks), 0) FROM documents WHERE collection_id = collections.id AND status = 'ready')
    FROM collections"""


def serve(options: Options, settings: Settings, log_format: Format, log_level: str) -> int:
    """Serve until the process is told to end; return its exit status.

    Raises:
        SettingsError: it would listen where it must not, or its rate is none.
        StateError: the state folder cannot be used, or another server owns it.
    """
    import uvicorn

    # uvicorn ends its work and then raises the signal again, which would leave the state folder as it is.
    signal.signal(signal.SIGTERM, _end)
    parsed(options.rate)
    with StateFolder(options.state) as state:
        check_host(options.host, keys.any_made(state.database))
        with logging_to(level=log_level, shape=log_format):
            app = create_app(lambda: opened(options, settings, state))
            own: dict[str, Any] = {"log_config": None, "timeout_graceful_shutdown": _LEAVES_WITHIN}
            uvicorn.run(app, host=options.host, port=options.port, **own, **listening())
    return 0


def _end(*_: object) -> None:
    raise SystemExit(0)


@asynccontextmanager
async def opened(options: Options, settings: Settings, state: StateFolder) -> AsyncIterator[Service]:
    """Give the rooms of a server, open, for as long as the block lasts."""
    exporter = Exporter(to) if (to := address(options.otlp)) else None
    export = exporter.export if exporter else None
    traces = Traces(state.database, options.trace_days, options.trace_content, export)
    metrics = Metrics(lambda: _held(state.database), lambda: traces.lost)
    corpora = Corpora(settings, options, options.experiment, state, metrics.ingested)
    await corpora.open()
    if not access_of(settings).calls_nobody:
        await asyncio.to_thread(_import_models)
    traces.start()
    try:
        yield Service(options, corpora, state, traces, metrics)
    finally:
        await traces.stop()
        await corpora.close()
        if exporter is not None:
            exporter.close()


def _import_models() -> None:
    """Import what calls models: on the loop it would hold up everybody for a second, at the first question."""
    with IMPORTING:
        import aiohttp  # noqa: F401
        import openai  # noqa: F401


def _held(database: Database) -> dict[str, tuple[int, int]]:
    def read(connection: sqlite3.Connection) -> dict[str, tuple[int, int]]:
        return {name: (documents, chunks) for name, documents, chunks in connection.execute(_HELD)}

    return database.read(read)
