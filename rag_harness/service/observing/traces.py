"""The traces of questions, kept for some days. Keeping them never slows an answer and never fails one."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime, timezone
from typing import Any, Literal, NamedTuple

from rag_harness.files.log import log
from rag_harness.service.observing.content import content_of
from rag_harness.service.observing.kept_answers import KeptAnswers
from rag_harness.service.observing.observed import Observed
from rag_harness.service.observing.spans import Span, spans_of
from rag_harness.service.state.database import Database

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
        self._waiting: dict[str, _Row] = {}
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
        found = {**waiting._asdict(), "thumb": None, "comment": ""} if waiting else self._stored(trace_id)
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
        spans = spans_of(seen)
        if self._export is not None:
            self._export(seen, spans)
        if self._days <= 0:
            return
        if len(self._waiting) >= _MOST_WAITING:
            self.lost += 1
            return
        self._waiting[seen.ids.trace_id] = self._row(seen, spans)
        if seen.answered is not None:
            self._answers.keep(seen.ids.trace_id, seen.collection, seen.began, seen.answered)
        self._wake.set()

    def _row(self, seen: Observed, spans: tuple[Span, ...]) -> _Row:
        body = {
            "experiment": seen.experiment,
            "mode": seen.mode,
            "decision": seen.outcome,
            "confidence": seen.output.confidence,
            "continues": seen.ids.exported if seen.ids.parent else None,
            "spans": [span.json() for span in spans],
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
                rows = list(self._waiting.values())[:_TOGETHER]
                try:
                    await self._database.write(lambda c, rows=rows: c.executemany(_PUT, rows))  # type: ignore[misc]
                except Exception as error:
                    self._lose(len(rows), error)
                for row in rows:
                    self._waiting.pop(row.id, None)

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
