"""Counts and times of a service for Prometheus, and the count of every request."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from rag_harness.core.log import log
from rag_harness.service.corpus.document_table import CollectionSize, total_size
from rag_harness.service.middleware import CLIENT_LEFT
from rag_harness.service.observations import FAILED, LEFT, Observed

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
        self._decisions = counter("decisions", "What became of questions.", "outcome")
        self._tokens = counter("tokens", "Of model calls.", "type")
        self._ratings = counter("ratings", "Thumbs.", "thumb")
        self._in_flight = gauge("questions_in_flight", "Being answered.")
        self._waiting = gauge("questions_waiting", "Waiting for their turn.")
        self._ingest = seconds("ingest", "Of a document.", buckets=_INGEST_SECONDS)
        self._refused = counter("ingest_failures", "Documents not taken in.")
        gauge("traces_lost", "Not kept, since the start.").set_function(traces_lost)
        named = "collection", "outcome"
        self._asked = counter("collection_questions", "What became of them.", *named, registry=self._named)

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
