"""Monitoring of a service: its log without keys, and its counts and times for Prometheus."""

from __future__ import annotations

import logging
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager, suppress
from queue import Full, Queue
from threading import Thread
from typing import Any, Literal, TextIO

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from rag_harness.core.escaping import terminal_line
from rag_harness.core.log import log, traceback
from rag_harness.core.log import log as harness_log
from rag_harness.core.settings.roles import KEY
from rag_harness.service.corpus.document_table import CollectionSize, total_size
from rag_harness.service.middleware import CLIENT_LEFT
from rag_harness.service.observations import FAILED, LEFT, Observed

# Writes log lines to a stream in a thread of its own, so that logging never waits for a slow reader.

_MOST_WAITING = 10_000
_PATIENCE = 2.0


class LogLines(logging.Handler):
    """Formats in the calling thread, where the trace id is known, and writes in its own. Drops lines when full."""

    def __init__(self, stream: TextIO | None = None) -> None:
        super().__init__()
        self.dropped: int = 0
        self._stream = stream
        self._queue: Queue[str | None] = Queue(_MOST_WAITING)
        self._thread = Thread(target=self._write_all, name="rag-log", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._queue.put_nowait(self.format(record))
        except Full:
            self.dropped += 1
        except Exception:
            self.handleError(record)

    def close(self) -> None:
        """Write the waiting lines, within a short time at most."""
        if self._thread.is_alive():
            with suppress(Full):
                self._queue.put(None, timeout=_PATIENCE)
            self._thread.join(_PATIENCE)
        super().close()

    def _write_all(self) -> None:
        while (line := self._queue.get()) is not None:
            stream = self._stream or sys.stderr
            # An error here cannot be reported anywhere.
            with suppress(OSError, ValueError):
                stream.write(f"{line}\n")
                if self._queue.empty():
                    stream.flush()


NOT_LOGGED = "[not logged]"
_NAMES = {"authorization", "proxy_authorization", "x_api_key", "api_key", "cookie", "set_cookie", "password", "secret"}
_KEYS = re.compile(
    KEY.pattern + r"|(?i:\b(?:rh_|sk-)[\w-]{16,}"  # a log hides more than a setting refuses: also what has no digit
    r"|\b(?:bearer|basic)\s+[\w.~+/=-]{6,})"
    r"|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"
)
_DEEPEST = 4


def without_secrets(value: Any, depth: int = 0) -> Any:
    """Return ``value`` without texts that look like keys, and without values under names of keys."""
    if isinstance(value, str):
        return _KEYS.sub(NOT_LOGGED, value)
    if isinstance(value, Mapping) and depth < _DEEPEST:
        return {name: _under(name, inner, depth) for name, inner in value.items()}
    if isinstance(value, (list, tuple)) and depth < _DEEPEST:
        return [without_secrets(inner, depth + 1) for inner in value]
    return value if value is None or isinstance(value, (bool, int, float)) else _KEYS.sub(NOT_LOGGED, str(value))


def _under(name: Any, inner: Any, depth: int) -> Any:
    is_secret = str(name).lower().replace("-", "_") in _NAMES
    return NOT_LOGGED if is_secret else without_secrets(inner, depth + 1)


# The log of a service: one JSON object a line, with the id of its trace; or lines for people.
#
# All logs come out in one form: the harness's own, uvicorn's, every library's, and Python's warnings.

Format = Literal["json", "text"]
LogEvent = MutableMapping[str, Any]
_UVICORN = ("uvicorn", "uvicorn.error", "uvicorn.access")
_ACCESS = "uvicorn.access"
_TALKATIVE = ("httpx", "httpx2", "httpcore", "openai", "urllib3")
"""Libraries that log each of their requests at level info; the trace already has these."""


@contextmanager
def logging_to(stream: TextIO | None = None, level: str = "info", shape: Format = "json") -> Iterator[None]:
    """Log to ``stream`` until the end of the block; then restore the earlier set-up.

    Args:
        stream: None is standard error.
        level: the lowest level that is logged.
        shape: ``json``, or ``text`` for people.
    """
    lines = LogLines(stream)
    lines.setFormatter(_formatter(shape, stream or sys.stderr))
    lines.setLevel(level.upper())
    undo = [_take_over(logging.getLogger(), lines, level), _take_over(harness_log, lines, level)]
    undo += [_quiet(name) for name in _TALKATIVE] + [_through_the_root(name) for name in _UVICORN]
    logging.captureWarnings(True)
    try:
        yield
    finally:
        logging.captureWarnings(False)
        for step in reversed(undo):
            step()
        lines.close()


@contextmanager
def log_context(**known: str) -> Iterator[None]:
    """Add fields, such as the trace id, to every line that is logged in the block and in what it awaits."""
    with structlog.contextvars.bound_contextvars(**known):
        yield


def _formatter(shape: Format, stream: TextIO) -> logging.Formatter:
    before: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _request,
    ]
    after: list[Any] = [structlog.processors.format_exc_info, _no_secrets]
    if shape == "text":
        colors, plain = stream.isatty(), structlog.dev.plain_traceback
        after += [_one_line, structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=plain)]
    else:
        after.append(structlog.processors.JSONRenderer())
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=before,
        pass_foreign_args=True,
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *after],
    )


def _request(_: Any, __: str, event: LogEvent) -> LogEvent:
    """Turn a line of uvicorn's access log into fields. The query string after the path is left out."""
    said = event.pop("positional_args", ())
    event.pop("color_message", None)
    if event.get("logger") == _ACCESS and isinstance(said, tuple) and len(said) == 5:
        client, method, path, _version, status = said
        asked = {"client": str(client).rpartition(":")[0], "method": method, "path": str(path).partition("?")[0]}
        event.update(asked, event="request", status=status)
    return event


def _no_secrets(_: Any, __: str, event: LogEvent) -> Mapping[str, Any]:
    found: Mapping[str, Any] = without_secrets(dict(event))
    return found


def _one_line(_: Any, __: str, event: LogEvent) -> LogEvent:
    """Escape characters that would move the cursor or begin a new line. JSON does this anyway."""
    for name, value in event.items():
        if isinstance(value, str):
            event[name] = traceback(value) if name == "exception" else terminal_line(value)
    return event


def _take_over(logger: logging.Logger, lines: LogLines, level: str) -> Callable[[], None]:
    handlers, before = list(logger.handlers), logger.level
    logger.handlers = [lines]
    logger.setLevel(level.upper())

    def undo() -> None:
        logger.handlers = handlers
        logger.setLevel(before)

    return undo


def _quiet(name: str) -> Callable[[], None]:
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(logging.WARNING)
    return lambda: logger.setLevel(before)


def _through_the_root(name: str) -> Callable[[], None]:
    logger = logging.getLogger(name)
    handlers, propagate, before = list(logger.handlers), logger.propagate, logger.level
    logger.handlers, logger.propagate = [], True
    logger.setLevel(logging.NOTSET)

    def undo() -> None:
        logger.handlers, logger.propagate = handlers, propagate
        logger.setLevel(before)

    return undo


# A set of labels that cannot grow without limit.

OTHER = "other"


class Bounded:
    """Takes the first labels that come, and replaces the rest with ``other``.

    Args:
        most: how many labels it takes beyond the known ones.
        known: labels that are always there.
    """

    def __init__(self, most: int, known: Iterable[str] = ()) -> None:
        self._known = set(known)
        self._most = len(self._known) + most

    def label(self, text: str) -> str:
        """Return ``text`` if it is one of the labels or may become one, else ``other``."""
        if text in self._known:
            return text
        if len(self._known) >= self._most:
            return OTHER
        self._known.add(text)
        return text


# Counts and times for Prometheus. Tenants are not named unless asked for, and no label grows without limit.
#
# https://prometheus.io/docs/practices/naming/

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_INGEST_SECONDS = (0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
_METHODS = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT")
_OUTCOMES = ("pass", "warn", "abstain", "unchecked", FAILED, LEFT)
_MOST_ROUTES, _MOST_STAGES, _MOST_COLLECTIONS = 64, 32, 200

Counted = Callable[[], Mapping[str, CollectionSize]]
"""Returns the size of each collection, by name."""
_GAUGES = {"documents": "Ready.", "chunks": "Of those.", "index_size": "Vectors in the index."}


class Metrics:
    """The metrics of one server, in its own registries: two servers of a process share none.

    Args:
        counted: gives the size of each collection; called whenever the metrics are read.
        traces_lost: gives how many traces were lost so far.
    """

    def __init__(self, counted: Counted = dict, traces_lost: Callable[[], int] = lambda: 0) -> None:
        self._all, self._named = CollectorRegistry(), CollectorRegistry()
        self._routes, self._methods = Bounded(_MOST_ROUTES), Bounded(0, _METHODS)
        self._stages, self._outcomes = Bounded(_MOST_STAGES), Bounded(0, _OUTCOMES)
        self._collections = Bounded(_MOST_COLLECTIONS)
        ProcessCollector(registry=self._all)
        self._all.register(_Documents(counted))
        self._named.register(_DocumentsByName(counted, self._collections))
        self._made(traces_lost)

    def _made(self, traces_lost: Callable[[], int]) -> None:
        def counter(name: str, about: str, *labels: str, registry: CollectorRegistry = self._all) -> Counter:
            return Counter(f"rag_harness_{name}", about, labels, registry=registry)

        def gauge(name: str, about: str) -> Gauge:
            return Gauge(f"rag_harness_{name}", about, registry=self._all)

        def seconds(name: str, about: str, *labels: str, buckets: tuple[float, ...] = _SECONDS) -> Histogram:
            return Histogram(f"rag_harness_{name}_seconds", about, labels, buckets=buckets, registry=self._all)

        self._requests = counter("requests", "Requests.", "method", "route", "status")
        self._answer = seconds("answer", "Until an answer was ready.")
        self._first = seconds("first_token", "Until its first words were sent.")
        self._stage = seconds("stage", "Of a stage.", "stage")
        self._decisions = counter("decisions", "Outcomes of questions.", "outcome")
        self._tokens = counter("tokens", "Of model calls.", "type")
        self._ratings = counter("ratings", "Thumbs.", "thumb")
        self._in_flight = gauge("questions_in_flight", "Being answered.")
        self._waiting = gauge("questions_waiting", "Waiting for their turn.")
        self._ingest = seconds("ingest", "Of a document.", buckets=_INGEST_SECONDS)
        self._refused = counter("ingest_failures", "Documents not taken in.")
        gauge("traces_lost", "Not kept, since the start.").set_function(traces_lost)
        named = "collection", "outcome"
        self._asked = counter("collection_questions", "Their outcomes.", *named, registry=self._named)

    def request(self, method: str, route: str, status: int) -> None:
        """Count a request; ``route`` is the template of its path (``/documents/{id}``), empty if no route fits."""
        labels = self._methods.label(method), self._routes.label(route or "none"), str(status)
        self._requests.labels(*labels).inc()

    def answered(self, seen: Observed) -> None:
        """Count a question, its time and its tokens."""
        outcome = self._outcomes.label(seen.outcome)
        self._decisions.labels(outcome).inc()
        self._asked.labels(self._collections.label(seen.collection), outcome).inc()
        if outcome != LEFT:
            self._answer.observe(seen.ms / 1000)
        if seen.first_token_ms is not None:
            self._first.observe(seen.first_token_ms / 1000)
        for stage in seen.output.stages:
            self._stage.labels(self._stages.label(stage.name)).observe(stage.ms / 1000)
        for call in seen.output.calls:
            self._tokens.labels("input").inc(max(0, call.usage.prompt_tokens))
            self._tokens.labels("output").inc(max(0, call.usage.completion_tokens))

    def rated(self, thumb: int) -> None:
        """Count a rating."""
        self._ratings.labels("up" if thumb > 0 else "down").inc()

    def ingested(self, seconds: float, ok: bool) -> None:
        """Count a document that was taken in or refused."""
        self._ingest.observe(seconds)
        if not ok:
            self._refused.inc()

    @contextmanager
    def in_flight(self) -> Iterator[None]:
        """Count a question as being answered, while the block lasts."""
        with self._in_flight.track_inprogress():
            yield

    def watch_waiting(self, how_many: Callable[[], float]) -> None:
        """Read the number of waiting questions from ``how_many`` whenever the metrics are read."""
        self._waiting.set_function(how_many)

    def text(self, by_collection: bool = False) -> bytes:
        """Return all metrics in Prometheus's format. Collections are named only if that is asked for."""
        said = generate_latest(self._all)
        return said + generate_latest(self._named) if by_collection else said


class _Documents(Collector):
    def __init__(self, counted: Counted) -> None:
        self._counted = counted

    def collect(self) -> Iterator[GaugeMetricFamily]:
        total = total_size(self._counted().values())
        for (name, about), value in zip(_GAUGES.items(), total, strict=True):
            yield GaugeMetricFamily(f"rag_harness_{name}", about, value=value)

    def describe(self) -> list[GaugeMetricFamily]:
        """Return nothing when it is registered: the counts are not asked for then."""
        return []


class _DocumentsByName(_Documents):
    def __init__(self, counted: Counted, names: Bounded) -> None:
        super().__init__(counted)
        self._names = names

    def collect(self) -> Iterator[GaugeMetricFamily]:
        summed = self._summed()
        for place, (name, about) in enumerate(_GAUGES.items()):
            gauge = GaugeMetricFamily(f"rag_harness_collection_{name}", about, labels=["collection"])
            for label, size in summed.items():
                gauge.add_metric([label], size[place])
            yield gauge

    def _summed(self) -> dict[str, CollectionSize]:
        summed: dict[str, CollectionSize] = {}
        for name, size in self._counted().items():
            label = self._names.label(name)
            summed[label] = total_size((summed.get(label, CollectionSize()), size))
        return summed


# Counts and logs every request, outside everything that could answer it.

Asgi = Any
_QUIET = ("/health", "/ready", "/metrics")
"""Paths that machines ask every few seconds. A log line for each would bury the others."""


class Counting:
    """Middleware: one count and one log line for each request, by the template of its route.

    Args:
        app: the application; its ``state.service.metrics`` counts.
    """

    def __init__(self, app: Asgi) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), CLIENT_LEFT

        async def watched(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, watched)
        finally:
            _count(scope, status, (time.perf_counter() - began) * 1000)


def _count(scope: Any, status: int, ms: float) -> None:
    metrics: Metrics = scope["app"].state.service.metrics
    route = getattr(scope.get("route"), "path", "")
    metrics.request(scope["method"], route, status)
    if route not in _QUIET:
        said = {"method": scope["method"], "route": route or "none", "status": status, "ms": round(ms, 1)}
        log.info("request", extra={**said, "trace_id": scope.get("state", {}).get("trace_id", "")})
