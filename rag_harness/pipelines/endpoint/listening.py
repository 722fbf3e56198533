"""What a service's client does about its spans: tells the service whose they are, waits for them, keeps them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rag_harness.errors import DataError, PrerequisiteError, RecordingWriteError, SettingsError
from rag_harness.files.atomic import write_atomically
from rag_harness.files.json_text import read_json
from rag_harness.models.recording.scrubbing import Cleaner
from rag_harness.pipelines.endpoint.cleaned_spans import cleaned_span
from rag_harness.pipelines.endpoint.span_server import SpanServer
from rag_harness.settings import Settings
from rag_harness.settings.endpoint_spec import EndpointSpec
from rag_harness.traces.otlp.otlp_json import spans_of_request
from rag_harness.traces.otlp.otlp_written import request_of
from rag_harness.traces.span_inbox import AwaitedTrace
from rag_harness.traces.span_record import SpanRecord

_WORKERS = "PYTEST_XDIST_WORKER_COUNT"
_servers: dict[int, SpanServer] = {}
"""By port: two services of a run may send to one."""


class Listening:
    """The spans of one service.

    Args:
        spec: the service.
        cleaner: takes secrets and private text out of what is kept.
    """

    def __init__(self, spec: EndpointSpec, cleaner: Cleaner) -> None:
        self._spec, self._cleaner = spec, cleaner
        self._server: SpanServer | None = None

    def open(self) -> None:
        """Listen, unless that is done.

        Raises:
            PrerequisiteError: the port is taken.
        """
        if self._server is None:
            port = self._spec.traces_port
            self._server = _servers.get(port) or SpanServer(port, self._spec.where or self._spec.name)
            _servers[port] = self._server

    @property
    def port(self) -> int:
        """Where it listens, once it does."""
        return self._server.port if self._server is not None else self._spec.traces_port

    @contextmanager
    def expecting(self) -> Iterator[AwaitedTrace]:
        """Keep the spans of a new trace during the block."""
        self.open()
        assert self._server is not None
        trace = self._server.inbox.expect()
        try:
            yield trace
        finally:
            self._server.inbox.forget(trace)

    async def spans_of(self, trace: AwaitedTrace) -> list[SpanRecord]:
        """Return the spans of a trace, once it is whole, without secrets.

        Raises:
            TraceError: it is not whole in time.
        """
        assert self._server is not None
        spans = await self._server.inbox.spans_of(trace, self._spec.traces_wait, self._spec.traces_late)
        return [cleaned_span(span, self._cleaner) for span in spans]

    def close(self) -> None:
        """Stop listening."""
        if self._server is not None and _servers.pop(self._spec.traces_port, None) is not None:
            self._server.close()
        self._server = None


def spans_file(recording: Path) -> Path:
    """Return the file of the spans beside that of an answer."""
    return recording.with_suffix(".spans.json")


def keep_spans(recording: Path, spans: Sequence[SpanRecord] | None, service: str) -> None:
    """Write the spans of an answer beside where it is kept. Those of an earlier answer are gone where it has none.

    Raises:
        RecordingWriteError: the disk is full or broken.
    """
    try:
        if spans is None:
            spans_file(recording).unlink(missing_ok=True)
            return
        said = json.dumps(request_of(spans, service), ensure_ascii=False)
        write_atomically(spans_file(recording), said.encode("utf-8", "replace"))
    except OSError as error:
        raise RecordingWriteError(
            f"Spans cannot be kept: {spans_file(recording)}: {error.strerror or error}. Make room, or name another "
            f"folder with --rag-project."
        ) from error


def kept_spans(recording: Path) -> list[SpanRecord]:
    """Return the spans that were recorded with an answer.

    Raises:
        DataError: the file is damaged.
        TraceError: it holds no spans.
    """
    file = spans_file(recording)
    try:
        return list(spans_of_request(read_json(file.read_bytes())))
    except (OSError, ValueError) as error:
        raise DataError(f"{file} cannot be read: {error}. Delete it and its answer, and record them again.") from error


def check_one_process(spec: EndpointSpec, settings: Settings) -> None:
    """Refuse a run whose processes would all listen at one port.

    Raises:
        SettingsError: trials run on other machines.
        PrerequisiteError: xdist has several workers.
    """
    if settings.engine == "ray":
        raise SettingsError(f"{spec.where}: traces are received by the process that asks. Leave --rag-engine=ray out.")
    if int(os.environ.get(_WORKERS) or 1) > 1:
        raise PrerequisiteError(
            f"{spec.where}: spans come to one port, and -n {os.environ[_WORKERS]} has several processes. Nothing was "
            f"asked. Leave -n out: --rag-concurrency keeps many trials in flight in one."
        )
