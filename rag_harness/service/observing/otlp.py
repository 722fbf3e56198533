"""Sends spans to a collector over HTTP, in batches, from a thread of its own. A slow collector delays no answer.

Questions, answers and documents are never exported, even if they are kept here.
"""

from __future__ import annotations

import os
from importlib.metadata import version
from threading import Thread
from typing import TYPE_CHECKING

from rag_harness.errors import PrerequisiteError
from rag_harness.registry.installed import NAME, install
from rag_harness.service.observing import genai_names
from rag_harness.service.observing.observed import Observed
from rag_harness.service.observing.spans import Span
from rag_harness.settings.literal_keys import check_address

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

_ONE_SIGNAL = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
_ALL_SIGNALS = "OTEL_EXPORTER_OTLP_ENDPOINT"
_PATH = "v1/traces"
_SECONDS = 5.0
"""Seconds for one export, and for the last export when the server ends."""


def address(given: str) -> str:
    """Return the address for traces: ``given``, else that of OpenTelemetry's own variables; empty sends nothing.

    Raises:
        SettingsError: a key stands in the address.
    """
    whole = "" if given else os.environ.get(_ONE_SIGNAL, "")
    begin = given or whole or os.environ.get(_ALL_SIGNALS, "")
    where = "--otlp" if given else _ONE_SIGNAL if whole else _ALL_SIGNALS
    check_address(where, begin, "Put it into OTEL_EXPORTER_OTLP_HEADERS.")
    return begin if whole or not begin or begin.endswith(_PATH) else f"{begin.rstrip('/')}/{_PATH}"


def check_export(to: str) -> None:
    """Check that traces can be sent to ``to``. An empty address needs no check.

    Raises:
        PrerequisiteError: the extra ``otlp`` is not installed.
    """
    if not to:
        return
    try:
        import opentelemetry.exporter.otlp.proto.http.trace_exporter  # noqa: F401
    except ImportError as error:
        raise PrerequisiteError(
            f"Traces cannot be exported to {to}: {error.name} is not installed. Install it with "
            f"{install('service', 'otlp')}, or serve without --otlp."
        ) from error


class Exporter:
    """Sends the spans of each question to a collector. Spans that it does not take are dropped, and that is logged.

    The headers come from ``OTEL_EXPORTER_OTLP_HEADERS``, and the service's name from ``OTEL_SERVICE_NAME``.

    Args:
        to: the whole address, as ``address`` returns it.

    Raises:
        PrerequisiteError: the extra ``otlp`` is not installed.
    """

    def __init__(self, to: str) -> None:
        check_export(to)
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.sdk.util.instrumentation import InstrumentationScope

        own = {"service.name": os.environ.get("OTEL_SERVICE_NAME", "rag-harness")}
        self._resource = Resource.create(own)
        self._scope = InstrumentationScope("rag_harness", version(NAME), genai_names.SCHEMA_URL)
        self._exporter = OTLPSpanExporter(endpoint=to, timeout=_SECONDS)
        self._batches = BatchSpanProcessor(self._exporter)

    def export(self, seen: Observed, spans: tuple[Span, ...]) -> None:
        """Queue the spans of a question; returns at once."""
        if not seen.ids.sampled:
            return
        for span in spans:
            self._batches.on_end(self._readable(seen, span))

    def close(self) -> None:
        """Send the spans that wait, for some seconds at most."""
        # The SDK retries a collector that is down without any time limit. So the shutdown runs in a thread.
        last = Thread(target=self._batches.shutdown, name="rag-otlp", daemon=True)
        last.start()
        last.join(_SECONDS)
        if last.is_alive():
            # This ends the wait for the next retry, and so ends the thread.
            self._exporter.shutdown()  # type: ignore[no-untyped-call]
            last.join(_SECONDS)

    def _readable(self, seen: Observed, span: Span) -> ReadableSpan:
        from opentelemetry.sdk.trace import ReadableSpan
        from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

        def context(span_id: str, remote: bool = False) -> SpanContext:
            flags = TraceFlags(TraceFlags.SAMPLED)
            return SpanContext(int(seen.ids.exported, 16), int(span_id, 16), remote, flags)

        parent = span.parent or seen.ids.parent
        return ReadableSpan(
            span.name,
            context(span.span_id),
            context(parent, remote=not span.parent) if parent else None,
            self._resource,
            dict(span.attributes),
            kind=SpanKind[span.kind.upper()],
            status=Status(StatusCode.ERROR if span.failed else StatusCode.UNSET),
            start_time=_nanoseconds(seen.began, span.start_ms),
            end_time=_nanoseconds(seen.began, span.start_ms + span.ms),
            instrumentation_scope=self._scope,
        )


def _nanoseconds(began: float, ms: float) -> int:
    # A float cannot hold whole nanoseconds since 1970.
    return int(began * 1_000_000) * 1_000 + int(ms * 1_000_000)
