"""One server: its state folder, its rooms, and uvicorn around the application."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

# Imported late where it is used. If it is missing, the error should come at the start and name it.
import python_multipart  # noqa: F401

from rag_harness.dataset.ingest.isolated import end_all
from rag_harness.files.log import log
from rag_harness.service.access import service_keys
from rag_harness.service.access.binding import check_host, listening_on, url_of
from rag_harness.service.access.health_door import with_health_beside
from rag_harness.service.access.listening import settings as listening
from rag_harness.service.access.rates import parsed_rate
from rag_harness.service.app import create_app
from rag_harness.service.corpus.corpora import Corpora
from rag_harness.service.corpus.sizes import collection_sizes
from rag_harness.service.ending import ending_within
from rag_harness.service.observing.logs import Format, logging_to
from rag_harness.service.observing.metrics import Metrics
from rag_harness.service.observing.otlp import Exporter, address, check_export
from rag_harness.service.observing.traces import Traces
from rag_harness.service.options import Options
from rag_harness.service.serviced import Service
from rag_harness.service.starting import Starting
from rag_harness.service.state.folder import StateFolder
from rag_harness.settings import Settings, access_of
from rag_harness.shown.terminal import say
from rag_harness.work.once import IMPORTING
from rag_harness.work.worker_process import worker_beside

if TYPE_CHECKING:
    import uvicorn

_LEAVES_WITHIN = 9.5
"""Seconds within which the server ends when it is told to, whatever it is doing."""
_ANSWERS_GET = 6
"""How many of these seconds are for answers under way, and for documents whose clients wait."""
_LOADING_GETS = 6.0
"""How many of these seconds are for the loading of documents. No question is answered meanwhile."""


def serve(options: Options, settings: Settings, log_format: Format, log_level: str) -> int:
    """Serve until the process is told to end; return its exit status.

    Standard output gets the address at once, and a second time when questions can be asked.

    Raises:
        SettingsError: it must not or cannot listen at its address, or its rate cannot be read.
        StateError: the state folder cannot be used, or another server owns it.
        PrerequisiteError: traces are to be exported, and the extra ``otlp`` is not installed.
        RagHarnessError: the documents cannot be loaded.
    """
    # uvicorn ends its work and then raises the signal again. Without a handler, the state folder would not be closed.
    signal.signal(signal.SIGTERM, _end)
    parsed_rate(options.rate)
    check_export(address(options.otlp))
    with ending_within(_LEAVES_WITHIN, _leave) as server_type, StateFolder(options.state) as state:
        check_host(options.host, service_keys.any_made(state.database))
        sockets = listening_on(options.host, options.port)
        with logging_to(level=log_level, shape=log_format), worker_beside():
            failure = _run(options, settings, state, sockets, server_type)
    if failure is not None:
        raise failure
    return 0


def _run(
    options: Options,
    settings: Settings,
    state: StateFolder,
    sockets: list[socket.socket],
    server_type: type[uvicorn.Server],
) -> BaseException | None:
    """Serve; return why the documents could not be loaded, if that ended the server."""
    import uvicorn

    url, failures = url_of(options.host, sockets[0].getsockname()[1]), list[BaseException]()

    def loaded(error: BaseException | None) -> None:
        if error is None:
            say(f"{options.experiment} answers at {url}")
        else:
            failures.append(error)
            server.should_exit = True

    app = create_app(lambda: opened(options, settings, state, loaded))
    own: dict[str, Any] = {"log_config": None, "timeout_graceful_shutdown": _ANSWERS_GET}
    server = with_health_beside(server_type)(uvicorn.Config(app, **own, **listening()))
    # Whoever connects now is answered as soon as uvicorn runs.
    say(f"{options.experiment} loads its documents; see how far at {url}")
    with suppress(KeyboardInterrupt):
        server.run(sockets)
    return failures[0] if failures else None


def _end(*_: object) -> None:
    raise SystemExit(0)


@asynccontextmanager
async def opened(
    options: Options,
    settings: Settings,
    state: StateFolder,
    loaded: Callable[[BaseException | None], None] | None = None,
) -> AsyncIterator[Service]:
    """Give the opened rooms of a server, as long as the block lasts.

    Args:
        options: of the server.
        settings: of the harness.
        state: its state folder.
        loaded: called when the documents are loaded, or with the error that prevented it. Until then questions get 503,
            and ``/health`` answers. Without it, the block begins when the documents are loaded.
    """
    exporter = Exporter(to) if (to := address(options.otlp)) else None
    export = exporter.export if exporter else None
    traces = Traces(state.database, options.trace_days, options.trace_content, export)
    metrics = Metrics(lambda: collection_sizes(state.database), lambda: traces.lost)
    corpora = Corpora(settings, options, options.experiment, state, metrics.ingested)
    collections = Starting(corpora)
    opening = asyncio.ensure_future(_open(collections, settings))
    try:
        if loaded is None:
            await opening
        else:
            opening.add_done_callback(lambda done: loaded(done.exception()))
        traces.start()
        yield Service(options, collections, state, traces, metrics, settings.chat_model, answers=corpora.answers)
    finally:
        # A thread cannot be told to end. What it writes to must stay open until it has ended.
        await asyncio.wait({opening}, timeout=_LOADING_GETS if loaded else None)
        if not opening.done():
            log.warning("The documents are still being loaded, and the server was told to end: the next start goes on.")
            _leave()
        await traces.stop()
        if not await corpora.close():
            log.warning("A document is still being taken in, and the server was told to end: send it again.")
            _leave()
        if exporter is not None:
            exporter.close()


def _leave() -> None:
    """End the process as a kill would; the state folder survives that. Embedding a large folder takes minutes."""
    end_all()
    for handler in log.handlers:
        handler.close()
    os._exit(0)


def _import_models() -> None:
    """Import the libraries that call models. On the loop, this would block everything for a second."""
    with IMPORTING:
        import aiohttp  # noqa: F401
        import openai  # noqa: F401


async def _open(collections: Starting, settings: Settings) -> None:
    # Imported first: once the collections are open, questions come.
    if not access_of(settings).calls_nobody:
        await asyncio.to_thread(_import_models)
    await collections.open()
