"""A run in Langfuse: a trace a trial with its scores, a trace an experiment with means, intervals and verdicts.

Traces are sent as OTLP in JSON and scores to ``/api/public/scores``, as Langfuse's own client 5 does. Ids are made of
run, experiment and question, and Langfuse writes over what has the id of something that is there.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from rag_harness.errors import PrerequisiteError
from rag_harness.exports.destination import Destination
from rag_harness.exports.posting import Posting
from rag_harness.exports.scored_run import ScoredRun
from rag_harness.exports.scored_traces import ScoredTrace, scored_traces
from rag_harness.files.sources import json_digest
from rag_harness.traces.otlp.otlp_written import request_of
from rag_harness.traces.span_record import SpanRecord
from rag_harness.work.groups import grouped

_BATCH = 100
"""Traces, or scores, of a request."""
_LONGEST = 20_000
"""The most characters of a question or an answer."""
_KEYS = ("LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY")
_SCORES = "/api/public/scores"
Body = dict[str, Any]


def to_langfuse(run: ScoredRun, destination: Destination) -> Sequence[str]:
    """Send traces and scores.

    Raises:
        SettingsError: no address is named, neither by ``--url`` nor by ``LANGFUSE_HOST``.
        PrerequisiteError: a key is missing, no server answers, or it refuses something.
    """
    server = _server(destination.url)
    traces = scores = 0
    for group in grouped(scored_traces(run, destination.output), _BATCH):
        server.send("/api/public/otel/v1/traces", request_of(map(_span, group), "rag-harness"))
        for part in grouped((each for trace in group for each in _scores(trace)), _BATCH):
            _send_scores(server, part)
            scores += len(part)
        traces += len(group)
    return [f"{traces:,} traces with {scores:,} scores"]


def _server(url: str) -> Posting:
    missing = [name for name in _KEYS if not os.environ.get(name)]
    if missing:
        raise PrerequisiteError(f"Langfuse takes nothing without keys. Set {' and '.join(missing)}.")
    found = url or os.environ.get("LANGFUSE_HOST") or os.environ.get("LANGFUSE_BASE_URL") or ""
    keys = base64.b64encode(":".join(os.environ[name] for name in _KEYS).encode()).decode()
    return Posting("Langfuse", found, {"Authorization": f"Basic {keys}", "x-langfuse-ingestion-version": "4"})


def _send_scores(server: Posting, scores: Sequence[Body]) -> None:
    """Send scores in one request; one by one where the server is of a version that takes no list."""
    reply = server.send(_SCORES, scores, known=(400,))
    if reply.status == 400:
        for each in scores:
            server.send(_SCORES, each)
    elif isinstance(reply.content, dict) and reply.content.get("rejected"):
        first = str(reply.content.get("errors"))[:300]
        raise PrerequisiteError(f"Langfuse refused {reply.content['rejected']} of {len(scores)} scores: {first}")


def _scores(trace: ScoredTrace) -> Iterator[Body]:
    for each in trace.scores:
        value = {"dataType": "CATEGORICAL", "value": each.label} if each.label else {"value": each.value}
        body = {
            "id": json_digest([trace.trace_id, each.name]),
            "traceId": trace.trace_id,
            "name": each.name,
            "dataType": "NUMERIC",
            **value,
        }
        yield {**body, "comment": each.comment} if each.comment else body


def _span(trace: ScoredTrace) -> SpanRecord:
    said = {
        "langfuse.trace.name": trace.name,
        "session.id": trace.session,
        "langfuse.observation.input": json.dumps(trace.asked[:_LONGEST], ensure_ascii=False) if trace.asked else "",
        "langfuse.observation.output": json.dumps(trace.answer[:_LONGEST], ensure_ascii=False) if trace.answer else "",
        "langfuse.observation.level": "ERROR" if trace.error else "",
        "langfuse.observation.status_message": trace.error[:1000],
        **{f"langfuse.trace.metadata.{key}": value for key, value in trace.labels.items()},
    }
    return SpanRecord(
        trace.name,
        trace.trace_id,
        trace.trace_id[:16],
        start_ns=_nanoseconds(trace.start),
        end_ns=_nanoseconds(trace.end),
        attributes={key: value for key, value in said.items() if value},
        failed=bool(trace.error),
    )


def _nanoseconds(when: datetime) -> int:
    return int(when.timestamp() * 1_000_000) * 1_000
