"""The traces of questions: kept for some days with their ratings, and sent to a collector."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib.metadata import version
from threading import Thread
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from rag_harness.core.errors import PrerequisiteError
from rag_harness.core.log import log
from rag_harness.core.package import NAME, install
from rag_harness.core.settings.roles import check_address
from rag_harness.core.types import Hit
from rag_harness.service import observations
from rag_harness.service.database import Database
from rag_harness.service.observations import Observed, Span, spans_of

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan


# The words of a question, of its sources and of its answer. They are kept only if the operator wants it.


def content_of(seen: Observed) -> dict[str, Any]:
    """Return the words of a question, its answer, the sources shown, and the prompts as they were sent."""
    output = seen.output
    return {
        "question": seen.question,
        "inputs": dict(seen.inputs),
        "answer": output.answer.text,
        "cited": list(output.answer.citations),
        "sources": [_source(hit) for hit in output.context],
        "answered": seen.answered,
        "decisions": [{"name": each.name, "reason": each.reason} for each in output.decisions if each.reason],
        "prompts": [[[one.role, one.content] for one in call.messages] for call in output.calls if call.messages],
    }


def _source(hit: Hit) -> dict[str, Any]:
    chunk = hit.chunk
    return {"document": chunk.doc_id, "section": " > ".join(chunk.section), "score": hit.score, "text": chunk.text}


# The last answers with their words, in memory only: a page that is loaded again shows them again.

MOST = 1_000
"""How many answers are kept."""
MOST_KEPT_CHARACTERS = 8 << 20
"""How many characters all of them may have; at most four bytes each."""


@dataclass(frozen=True, slots=True)
class _AnsweredTrace:
    collection: str
    began: float
    text: str


class KeptAnswers:
    """Answers by the id of their trace. Where there are too many, the oldest go."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, _AnsweredTrace] = OrderedDict()
        self._characters = 0

    def keep(self, trace_id: str, collection: str, began: float, answered: Mapping[str, Any]) -> None:
        """Keep an answer, which is plain JSON."""
        kept = _AnsweredTrace(collection, began, json.dumps(answered, ensure_ascii=False, separators=(",", ":")))
        self._kept[trace_id] = kept
        self._characters += len(kept.text)
        while self._kept and (len(self._kept) > MOST or self._characters > MOST_KEPT_CHARACTERS):
            self._characters -= len(self._kept.popitem(last=False)[1].text)

    def get(self, trace_id: str, collection: str | None, oldest: float) -> dict[str, Any] | None:
        """Return an answer to a question that is not older than ``oldest``; None if ``collection`` has no such answer.

        The collection None means any.
        """
        kept = self._kept.get(trace_id)
        if kept is None or kept.began < oldest or collection not in (None, kept.collection):
            return None
        found: dict[str, Any] = json.loads(kept.text)
        return found


# The traces of questions, kept for some days. Keeping them never slows an answer and never fails one.

Thumb = Literal[-1, 1]
DAY = 86_400.0
_MOST_WAITING = 1_000
_TOGETHER = 50
_PRUNED_AT_ONCE = 500
_COLUMNS = "id, collection, key_id, began, ms, body, content, thumb, comment"
_PUT = f"INSERT OR IGNORE INTO traces ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, NULL, '')"
_GET = f"SELECT {_COLUMNS} FROM traces WHERE id = ?"
_RATE = "UPDATE traces SET thumb = ?, comment = ? WHERE id = ? AND (? IS NULL OR collection = ?)"
_PRUNE = "DELETE FROM traces WHERE id IN (SELECT id FROM traces WHERE began < ? LIMIT ?)"


class _Row(NamedTuple):
    """A trace as a row of the table; ``content`` is None if words are not kept."""

    id: str
    collection: str
    key_id: int | None
    began: float
    ms: float
    body: str
    content: str | None


class Traces:
    """The traces of one server. Call ``start`` on its event loop, and ``stop`` at the end.

    Args:
        database: the service's.
        days: how long a trace is kept; 0 keeps none.
        content: whether to keep questions, answers, sources and prompts, too.
        export: is also called with the spans of each question; must neither block nor raise.
    """

    def __init__(
        self,
        database: Database,
        days: int,
        content: bool = False,
        export: Callable[[Observed, tuple[Span, ...]], None] | None = None,
    ) -> None:
        self.lost: int = 0
        self._database, self._days, self._content, self._export = database, days, content, export
        self._waiting: dict[str, Observed] = {}
        self._answers = KeptAnswers()
        self._wake = asyncio.Event()
        self._writing = asyncio.Lock()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin to write and to prune."""
        self._tasks = [asyncio.create_task(self._write_on()), asyncio.create_task(self._prune_on())]

    async def stop(self) -> None:
        """Write the traces that wait."""
        for task in self._tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        await self._flush()

    def keep(self, seen: Observed) -> None:
        """Keep a question's trace. It is written later; it is lost if 1,000 wait already or it cannot be written."""
        try:
            self._keep(seen)
        except Exception as error:
            self._lose(1, error)

    def get(self, trace_id: str, collection: str | None = None) -> dict[str, Any] | None:
        """Return a trace as JSON; None if ``collection`` has no such trace. The collection None means any."""
        waiting = self._waiting.get(trace_id)
        found = {**self._row(waiting)._asdict(), "thumb": None, "comment": ""} if waiting else self._stored(trace_id)
        if found is None or (collection is not None and found["collection"] != collection):
            return None
        return _shown(found)

    def answer(self, trace_id: str, collection: str | None = None) -> dict[str, Any] | None:
        """Return the answer of a trace as the page shows it; None if ``collection`` has no such answer, or no more.

        The last ones are in memory. Older ones are there only if the server keeps content.
        """
        kept = self._answers.get(trace_id, collection, time.time() - self._days * DAY)
        if kept is not None:
            return kept
        content: Mapping[str, Any] = (self.get(trace_id, collection) or {}).get("content", {})
        return content.get("answered")

    async def rate(self, trace_id: str, collection: str | None, thumb: Thumb, comment: str = "") -> bool:
        """Store the rating of an answer; False if ``collection`` has no such trace."""
        await self._flush()
        wanted = (thumb, comment, trace_id, collection, collection)
        return await self._database.write(lambda c: c.execute(_RATE, wanted).rowcount > 0)

    async def prune(self) -> int:
        """Remove old traces, a few at a time, so that others can write in between; return how many."""
        oldest, removed = time.time() - self._days * DAY, 0
        while True:
            count = await self._database.write(lambda c: c.execute(_PRUNE, (oldest, _PRUNED_AT_ONCE)).rowcount)
            removed += count
            if count < _PRUNED_AT_ONCE:
                return removed

    def _keep(self, seen: Observed) -> None:
        if self._export is not None:
            self._export(seen, spans_of(seen))
        if self._days <= 0:
            return
        if len(self._waiting) >= _MOST_WAITING:
            self.lost += 1
            return
        self._waiting[seen.ids.trace_id] = seen
        if seen.answered is not None:
            self._answers.keep(seen.ids.trace_id, seen.collection, seen.began, seen.answered)
        self._wake.set()

    def _rows(self, waiting: Sequence[Observed]) -> Iterator[_Row]:
        for seen in waiting:
            try:
                yield self._row(seen)
            except Exception as error:
                self._lose(1, error)

    def _row(self, seen: Observed) -> _Row:
        body = {
            "experiment": seen.experiment,
            "mode": seen.mode,
            "decision": seen.outcome,
            "confidence": seen.output.confidence,
            "continues": seen.ids.exported if seen.ids.parent else None,
            "spans": [span.json() for span in spans_of(seen)],
        }
        content = _json(content_of(seen)) if self._content else None
        ids = seen.ids.trace_id, seen.collection, seen.key_id
        return _Row(*ids, seen.began, seen.ms, _json(body), content)

    def _stored(self, trace_id: str) -> dict[str, Any] | None:
        def read(connection: sqlite3.Connection) -> dict[str, Any] | None:
            found = connection.execute(_GET, (trace_id,)).fetchone()
            return dict(found) if found is not None else None

        return self._database.read(read)

    async def _write_on(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            await self._flush()

    async def _flush(self) -> None:
        async with self._writing:
            while self._waiting:
                some = list(self._waiting.values())[:_TOGETHER]
                try:
                    # Rows are made in the thread of the database, so that no answer waits for them.
                    await self._database.write(
                        lambda c, some=some: c.executemany(_PUT, list(self._rows(some)))  # type: ignore[misc]
                    )
                except Exception as error:
                    self._lose(len(some), error)
                for seen in some:
                    self._waiting.pop(seen.ids.trace_id, None)

    async def _prune_on(self) -> None:
        while True:
            try:
                await self.prune()
            except Exception as error:
                log.warning("Old traces were not removed: %s", error)
            await asyncio.sleep(DAY)

    def _lose(self, count: int, error: Exception) -> None:
        self.lost += count
        log.warning("Traces lost: %d. %s: %s", count, type(error).__name__, error)


def _json(value: Any) -> str:
    """Return JSON that every reader takes: NaN becomes null, and half a character becomes a question mark."""
    try:
        text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=str, allow_nan=False)
    except ValueError:
        return _json(json.loads(json.dumps(value, default=str), parse_constant=lambda _: None))
    return text.encode(errors="replace").decode()


def _shown(found: dict[str, Any]) -> dict[str, Any]:
    content = {"content": json.loads(found["content"])} if found["content"] else {}
    began = datetime.fromtimestamp(found["began"], timezone.utc).isoformat(timespec="milliseconds")
    head = {"trace_id": found["id"], "collection": found["collection"], "began": began, "ms": found["ms"]}
    return {**head, **json.loads(found["body"]), "thumb": found["thumb"], "comment": found["comment"], **content}


# Sends spans to a collector over HTTP, in batches, from a thread of its own. A slow collector delays no answer.
#
# Questions, answers and documents are never exported, even if they are kept here.

_ONE_SIGNAL = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
_ALL_SIGNALS = "OTEL_EXPORTER_OTLP_ENDPOINT"
_PATH = "v1/traces"
_SECONDS = 5.0
"""Seconds for one export, and for the last export when the server ends."""


def address(given: str) -> str:
    """Return the address for traces: ``given``, else the address in OpenTelemetry's own variables; empty sends nothing.

    Raises:
        SettingsError: the address contains a key.
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
        self._scope = InstrumentationScope("rag_harness", version(NAME), observations.SCHEMA_URL)
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
