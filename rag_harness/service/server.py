"""One server: its application, its start and end, and uvicorn around them."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from copy import copy
from threading import Timer
from types import FrameType
from typing import TYPE_CHECKING, Any, ClassVar, cast

import h11
import python_multipart  # noqa: F401
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from rag_harness.core.concurrency import IMPORTING
from rag_harness.core.escaping import say
from rag_harness.core.log import log
from rag_harness.core.processes import worker_beside
from rag_harness.core.settings import Settings, access_of
from rag_harness.data.loaders.child_process import end_all
from rag_harness.service import keys, openai_api, routes
from rag_harness.service.app_state import Options, Service
from rag_harness.service.authentication import Access, check_host, listening_on, url_of
from rag_harness.service.corpus.document_table import collection_sizes
from rag_harness.service.corpus.tenant_collections import Corpora
from rag_harness.service.database import StateFolder
from rag_harness.service.middleware import PROBLEM, install
from rag_harness.service.monitoring import Counting, Format, Metrics, logging_to
from rag_harness.service.problems import ProblemError
from rag_harness.service.rate_limits import parsed_rate
from rag_harness.service.schemas import Problem
from rag_harness.service.traces import Exporter, Traces, address, check_export

if TYPE_CHECKING:
    from rag_harness.service.app_state import ServedCollection


# The application: connects the parts of a server to the routes.

OpenService = Callable[[], AbstractAsyncContextManager[Service]]
API_DESCRIPTION = "Answers from documents, with exact citations, and says how sure it is."
_PROBLEM = {
    "description": "What is wrong, and what to do.",
    "content": {PROBLEM: {"schema": Problem.model_json_schema()}},
}
_PROBLEMS: dict[int | str, dict[str, Any]] = {"4XX": _PROBLEM, "5XX": _PROBLEM}


def create_app(opening: OpenService) -> FastAPI:
    """Return the application. It enters ``opening`` when the server starts, and leaves it when the server ends."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with opening() as service:
            app.state.service, app.state.access = service, Access.of(service.database, service.options)
            service.metrics.watch_waiting(lambda: app.state.access.places.waiting)
            yield

    # A path with an extra slash is unknown. A redirect would repeat any Host that a client sends.
    shown: dict[str, Any] = {"redoc_url": None, "docs_url": None, "redirect_slashes": False}
    app = FastAPI(title="rag_harness", description=API_DESCRIPTION, lifespan=lifespan, **shown)
    asking = (routes.query_router, routes.conversations_router, openai_api.router)
    for router in (*asking, routes.documents_router, routes.traces_router, routes.health_router, routes.page_router):
        app.include_router(router, responses=_PROBLEMS)
    install(app)
    app.add_middleware(Counting)
    return app


_COME_BACK_S = 5


class Starting:
    """Collections that are being opened; once they are open, they are those of ``corpora``.

    Args:
        corpora: the collections, not yet opened.
    """

    def __init__(self, corpora: Corpora) -> None:
        self._corpora, self._is_open = corpora, False

    @property
    def progress(self) -> str:
        """How far the loading is; empty where that is not known yet, or all is loaded."""
        return "" if self._is_open else self._corpora.loading.text

    async def open(self) -> None:
        """Open them; see :meth:`Corpora.open`."""
        await self._corpora.open()
        self._is_open = True

    def get(self, name: str) -> ServedCollection:
        """Return a collection; KeyError if it does not exist.

        Raises:
            ProblemError: 503 until the collections are open.
        """
        self._check()
        return self._corpora.get(name)

    async def create(self, name: str) -> ServedCollection:
        """Return a collection; it is made if it does not exist.

        Raises:
            ProblemError: 503 until the collections are open.
        """
        self._check()
        return await self._corpora.create(name)

    def _check(self) -> None:
        if not self._is_open:
            far = self.progress or "its documents are being loaded"
            detail = f"This server is starting: {far}. Ask again in {_COME_BACK_S} s."
            raise ProblemError(503, "starting", detail, {"Retry-After": str(_COME_BACK_S)})


# Makes a server end when it is told to, however busy its threads and its loop are.


@contextmanager
def ending_within(seconds: float, leave: Callable[[], None]) -> Iterator[type[uvicorn.Server]]:
    """Give a uvicorn server that calls ``leave`` after ``seconds`` once it is told to end.

    If the block is left in time, ``leave`` is not called.
    """
    import uvicorn

    late = Timer(seconds, leave)
    late.daemon = True

    class Ending(uvicorn.Server):
        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            if late.ident is None:
                late.start()
            super().handle_exit(sig, frame)

    try:
        yield Ending
    finally:
        late.cancel()
        if late.ident is not None:
            late.join()


# uvicorn has no time limit for a request's headers, and none for a client that does not read its answer.

_MOST_HEADERS = 16 << 10


class Connection(H11Protocol):
    """One connection."""

    headers_s: ClassVar[float] = 10.0
    """Seconds until a request's headers must be complete, from the connection or from their first byte on."""
    reading_s: ClassVar[float] = 30.0
    """Seconds for which a client may leave sent data unread."""
    most: ClassVar[int] = 512
    """How many connections may be open at once."""

    _due: asyncio.TimerHandle | None = None
    _stuck: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, or answer that there are too many."""
        super().connection_made(transport)
        if len(self.connections) > self.most:
            self._break_off(ProblemError(503, "too_busy", "There are too many connections. Come back later."))
            return
        self._due = self.loop.call_later(self.headers_s, self._without_headers)

    def data_received(self, data: bytes) -> None:
        """Take bytes. Once a request's headers have begun, all of them must come in time."""
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_waiting()
        elif self._due is None and self.conn.trailing_data[0]:
            self._due = self.loop.call_later(self.headers_s, self._without_headers)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a connection."""
        self._stop_waiting()
        self._read_on()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Wait until the client reads, up to a limit."""
        super().pause_writing()
        self._stuck = self.loop.call_later(self.reading_s, self.transport.abort)

    def resume_writing(self) -> None:
        """Continue: the client reads again."""
        self._read_on()
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's words, not ours
        """Answer a request that is not HTTP."""
        self._break_off(ProblemError(400, "no_http", "This is not a request of HTTP/1.1, or its headers are too long."))

    def _stop_waiting(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None

    def _read_on(self) -> None:
        if self._stuck is not None:
            self._stuck.cancel()
            self._stuck = None

    def _without_headers(self) -> None:
        self._due = None
        self._break_off(ProblemError(408, "too_slow", "The request's headers came too slowly."))

    def _break_off(self, problem: ProblemError) -> None:
        """Send an answer below the application, and close the connection."""
        if self.transport.is_closing():
            return
        if self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            self.transport.write(_answer(problem))
        self.transport.close()


def uvicorn_settings(most_connections: int = Connection.most) -> dict[str, Any]:
    """Return the arguments for ``uvicorn.Config`` besides application, host and port.

    Headers of proxies are not trusted, and no header names the server software.
    """
    return {
        "http": type("Connection", (Connection,), {"most": most_connections}),
        "ws": "none",
        "h11_max_incomplete_event_size": _MOST_HEADERS,
        "timeout_keep_alive": 15,
        "proxy_headers": False,
        "server_header": False,
        "access_log": False,
    }


def _answer(problem: ProblemError) -> bytes:
    body = json.dumps(problem.body()).encode()
    head = (
        f"HTTP/1.1 {problem.status} {problem.body()['title']}\r\nContent-Type: application/problem+json\r\n"
        f"Content-Length: {len(body)}\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
        f"Retry-After: 1\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body


# Accepts connections in a thread of its own, and answers ``GET /health`` there: it has a loop that does nothing else.
#
# The loop that serves may be busy for a while: it writes streams, checks bodies and makes JSON of answers. Who asks
# whether the process lives must not wait for that. Two sockets of one port would get connections by chance
# (SO_REUSEPORT), whatever they ask. So one thread accepts all of them, looks at the first bytes without taking them,
# and hands every other connection to the loop that serves.

_ASKED = (b"GET /health ", b"GET /health?")
_FIRST_BYTES_S = 0.05
"""How long the first bytes of a connection are waited for. Probes send them at once; others have limits elsewhere."""
_PAUSE_S = 0.1
"""Pause where no connection can be accepted: too many files are open."""
_ENDS_WITHIN_S = 2.0
Asgi = Any


def with_health_beside(server_type: type[uvicorn.Server]) -> type[uvicorn.Server]:
    """Return a type of servers whose connections come in by a ``HealthDoor``. Each is run with its listening sockets.

    Args:
        server_type: uvicorn's server, or one derived from it.
    """

    class Server(server_type):  # type: ignore[misc, valid-type]
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup([])
            self._door = HealthDoor(self, sockets or [])

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            await self._door.close()
            await super().shutdown(sockets)

    return Server


class HealthDoor:
    """The thread that accepts. Make it on the loop that serves, once the application has started.

    Args:
        server: what serves on this loop.
        sockets: they listen.
    """

    def __init__(self, server: uvicorn.Server, sockets: Sequence[socket.socket]) -> None:
        self._server, self._serving = server, asyncio.get_running_loop()
        self._handed: set[asyncio.Task[Any]] = set()
        # A loop that can look at sockets, on Windows, too.
        self._loop = asyncio.SelectorEventLoop()
        self._state = ServerState()
        self._config = copy(server.config)
        self._config.loaded_app = _answering_once(cast("Asgi", server.config.loaded_app))
        self._tasks = {self._loop.create_task(self._accept(each)) for each in sockets}
        self._thread = threading.Thread(target=self._run, name="rag-health", daemon=True)
        self._thread.start()

    async def close(self) -> None:
        """Accept nothing more, and end the thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        await asyncio.to_thread(self._thread.join, _ENDS_WITHIN_S)
        if self._handed:
            await asyncio.wait(set(self._handed))

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        for connection in list(self._state.connections):
            connection.shutdown()
        for task in self._tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*self._tasks, return_exceptions=True))
        self._loop.close()

    async def _accept(self, listening: socket.socket) -> None:
        listening.setblocking(False)
        while True:
            try:
                connection, _ = await self._loop.sock_accept(listening)
            except OSError:
                await asyncio.sleep(_PAUSE_S)
                continue
            task = self._loop.create_task(self._show_in(connection))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _show_in(self, connection: socket.socket) -> None:
        """Answer a connection here, or hand it over."""
        try:
            connection.setblocking(False)
            begins = _peeked(connection) or await self._first_bytes(connection)
            if begins.startswith(_ASKED):
                self._state.default_headers = self._server.server_state.default_headers
                await self._loop.connect_accepted_socket(lambda: self._protocol(self._config, self._state), connection)
            else:
                self._serving.call_soon_threadsafe(self._hand_over, connection)
        except (OSError, RuntimeError):  # it was reset, or the loop that serves has ended
            connection.close()

    async def _first_bytes(self, connection: socket.socket) -> bytes:
        came: asyncio.Future[None] = self._loop.create_future()
        self._loop.add_reader(connection, _set, came)
        try:
            await asyncio.wait({came}, timeout=_FIRST_BYTES_S)
        finally:
            self._loop.remove_reader(connection)
        return _peeked(connection)

    def _hand_over(self, connection: socket.socket) -> None:
        """Serve a connection on the loop that serves; called there."""
        server = self._server
        made = self._serving.connect_accepted_socket(
            lambda: self._protocol(server.config, server.server_state), connection
        )
        task = self._serving.create_task(made)
        self._handed.add(task)
        task.add_done_callback(self._settle)

    def _settle(self, task: asyncio.Task[Any]) -> None:
        self._handed.discard(task)
        if not task.cancelled():
            task.exception()  # a connection that was reset meanwhile

    def _protocol(self, config: uvicorn.Config, state: ServerState) -> asyncio.Protocol:
        made: Any = config.http_protocol_class
        protocol: asyncio.Protocol = made(config=config, server_state=state, app_state=self._server.lifespan.state)
        return protocol


def _set(came: asyncio.Future[None]) -> None:
    if not came.done():
        came.set_result(None)


def _peeked(connection: socket.socket) -> bytes:
    with suppress(BlockingIOError):
        return connection.recv(len(_ASKED[0]), socket.MSG_PEEK)
    return b""


def _answering_once(app: Asgi) -> Asgi:
    """Return an application that ends each connection with its first answer: what follows may be for the other loop."""

    async def once(scope: Any, receive: Any, send: Any) -> None:
        async def last(message: Any) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), (b"connection", b"close")]}
            await send(message)

        await app(scope, receive, last)

    return once


# Imported late where it is used. If it is missing, the error should come at the start and name it.


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
        check_host(options.host, keys.has_keys(state.database))
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
            gc.collect()
            gc.freeze()  # documents and code stay: the collector need not look at them for each answer's garbage
            say(f"{options.experiment} answers at {url}")
        else:
            failures.append(error)
            server.should_exit = True

    app = create_app(lambda: opened(options, settings, state, loaded))
    own: dict[str, Any] = {"log_config": None, "timeout_graceful_shutdown": _ANSWERS_GET}
    server = with_health_beside(server_type)(uvicorn.Config(app, **own, **uvicorn_settings()))
    # A client that connects now is answered as soon as uvicorn runs.
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
    """Give the opened parts of a server, as long as the block lasts.

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
