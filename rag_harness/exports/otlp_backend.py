"""A backend of OpenTelemetry that takes spans by OTLP over HTTP, as JSON or, where it refuses JSON, as protobuf."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote

from rag_harness.errors import SettingsError
from rag_harness.exports.posting import Posting
from rag_harness.traces.otlp.otlp_written import request_of
from rag_harness.traces.span_record import SpanRecord

_PATH = "/v1/traces"
_HEADERS = ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS")
_UNKNOWN_TYPE = 415
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
        self._takes_json = True

    def take(self, spans: Sequence[SpanRecord]) -> Refused:
        """Send spans, and return which of them were refused: none, most of the time.

        Raises:
            PrerequisiteError: the backend does not answer, refuses the request, or takes protobuf alone and that cannot
                be written here.
        """
        request = request_of(spans, os.environ.get("OTEL_SERVICE_NAME") or SERVICE)
        if self._takes_json:
            reply = self._posting.send(_PATH, request, known=(_UNKNOWN_TYPE,))
            if reply.status != _UNKNOWN_TYPE:
                return _refused(reply.content)
            self._takes_json = False
        from rag_harness.traces.otlp.otlp_protobuf import protobuf_of, said_of_protobuf

        return _refused(said_of_protobuf(self._posting.send(_PATH, protobuf_of(request)).raw))


def _refused(content: Any) -> Refused:
    said = content.get("partialSuccess") if isinstance(content, dict) else None
    said = said if isinstance(said, dict) else {}
    number = str(said.get("rejectedSpans", 0))
    return Refused(int(number) if number.isascii() and number.isdecimal() else 0, str(said.get("errorMessage", "")))


def _headers() -> dict[str, str]:
    """Return the headers of OpenTelemetry's variables: ``key=value,key=value``, with values as in addresses."""
    said = next((os.environ[name] for name in _HEADERS if os.environ.get(name)), "")
    pairs = (part.partition("=") for part in said.split(",") if "=" in part)
    return {name.strip(): unquote(value.strip()) for name, _, value in pairs}
