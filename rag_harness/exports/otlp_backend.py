"""A backend of OpenTelemetry that takes spans by OTLP over HTTP, as JSON or, where it refuses JSON, as protobuf."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple
from urllib.parse import unquote

from rag_harness.errors import PrerequisiteError, SettingsError
from rag_harness.exports.posting import Posting, Reply
from rag_harness.traces.otlp.otlp_written import request_of
from rag_harness.traces.span_record import SpanRecord

_PATH = "/v1/traces"
_HEADERS = ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS")
_UNKNOWN_TYPE = 415
_PASSING = (429, 502, 503, 504)
"""Statuses after which OTLP asks for another try: https://opentelemetry.io/docs/specs/otlp/#failures-1"""
_WAITS = (1.0, 2.0, 4.0)
"""Seconds before each further try, where the backend names none."""
_LONGEST_WAIT = 30.0
"""Seconds that a backend may ask to wait, all its requests together: a run that has ended does not wait for long."""
_JSON = "application/json"
_PAGES = ("text/html", "application/xhtml+xml")
_DIGITS = 8
_SECONDS = 10.0
_ADDRESS = re.compile(r"https?://[^\s?#@]{1,2000}")
SERVICE = "rag-harness"
"""The name of the service that spans are said to be of; ``OTEL_SERVICE_NAME`` names another."""


class Refused(NamedTuple):
    """How many spans of a request were not taken, and why."""

    spans: int
    why: str


class OtlpBackend:
    """A backend.

    Args:
        url: its address, with or without ``/v1/traces``. Keys come from ``OTEL_EXPORTER_OTLP_HEADERS``.

    Raises:
        SettingsError: there is no address, it is none of http, or it holds a key.
    """

    def __init__(self, url: str) -> None:
        if url and not _ADDRESS.fullmatch(url):
            raise SettingsError(
                "This is no address of a backend. Write it whole, http://127.0.0.1:4318, and without keys: they come "
                "from OTEL_EXPORTER_OTLP_HEADERS."
            )
        self.url = url.rstrip("/").removesuffix(_PATH)
        self._posting = Posting("OTLP", self.url, _headers(), _SECONDS)
        self._takes_json, self._left = True, _LONGEST_WAIT

    def take(self, spans: Sequence[SpanRecord]) -> Refused:
        """Send spans, and return which of them were refused: none, most of the time.

        Raises:
            PrerequisiteError: the backend does not answer, refuses the request, says what is no reply of OTLP, or takes
                protobuf alone and that cannot be written here.
        """
        request = request_of(spans, os.environ.get("OTEL_SERVICE_NAME") or SERVICE)
        if self._takes_json:
            reply = self._sent(request, (_UNKNOWN_TYPE,))
            if reply.status != _UNKNOWN_TYPE:
                # Some say nothing where the protocol has an empty object.
                return self._refused(reply, reply.content if reply.raw.strip() else {})
            self._takes_json = False
        from rag_harness.traces.otlp.otlp_protobuf import protobuf_of, said_of_protobuf

        reply = self._sent(protobuf_of(request))
        return self._refused(reply, reply.content if reply.kind == _JSON else said_of_protobuf(reply.raw))

    def _sent(self, body: Any, known: tuple[int, ...] = ()) -> Reply:
        """Return the reply to a request, which is sent again while the backend is busy, for so long."""
        reply = self._posting.send(_PATH, body, (*known, *_PASSING))
        for usual in _WAITS:
            seconds = _asked_to_wait(reply.retry_after, usual)
            if reply.status not in _PASSING or seconds > self._left:
                break
            self._left -= seconds
            time.sleep(seconds)
            reply = self._posting.send(_PATH, body, (*known, *_PASSING))
        if reply.status in _PASSING:
            raise self._posting.refusal(_PATH, reply)
        return reply

    def _refused(self, reply: Reply, said: Any) -> Refused:
        if not isinstance(said, dict) or reply.kind in _PAGES:
            raise PrerequisiteError(
                f"OTLP at {self.url} answered {_PATH} with {reply.status} and {reply.kind or 'a text'}. That is no "
                f"reply of OTLP, so nobody knows whether anything was taken. Does the backend take OTLP over HTTP here?"
            )
        partial = said.get("partialSuccess")
        partial = partial if isinstance(partial, dict) else {}
        number = str(partial.get("rejectedSpans", 0))
        rejected = int(number) if number.isascii() and number.isdecimal() else 0
        return Refused(rejected, str(partial.get("errorMessage", "")))


def _asked_to_wait(said: str, usual: float) -> float:
    """Return the seconds of a header Retry-After, which has a number or a date; ``usual`` where it has neither."""
    if said.isascii() and said.isdecimal() and len(said) < _DIGITS:
        return float(said)
    try:
        at = parsedate_to_datetime(said)
    except ValueError:
        return usual
    now = datetime.now(timezone.utc)
    return max((at if at.tzinfo is not None else at.replace(tzinfo=timezone.utc)).timestamp() - now.timestamp(), 0.0)


def _headers() -> dict[str, str]:
    """Return the headers of OpenTelemetry's variables: ``key=value,key=value``, with values as in addresses."""
    said = next((os.environ[name] for name in _HEADERS if os.environ.get(name)), "")
    pairs = (part.partition("=") for part in said.split(",") if "=" in part)
    return {name.strip(): unquote(value.strip()) for name, _, value in pairs}
