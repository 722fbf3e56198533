"""A run in Phoenix: spans a trial with annotations, relevance on each retrieved document, and a span an experiment.

Annotations of the same name on the same span replace each other, so a second export changes nothing.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote

from rag_harness.errors import PrerequisiteError
from rag_harness.exports.destination import Destination
from rag_harness.exports.posting import Posting
from rag_harness.exports.scored_run import ScoredRun
from rag_harness.exports.scored_traces import ScoredTrace, scored_traces
from rag_harness.work.groups import grouped

_BATCH = 100
_WAIT = 60
"""Seconds until a span that Phoenix has taken must be there to be annotated."""
_FURTHER = "(a further chunk of a document above)"
"""Stands for a hit that is no document of its own: Phoenix counts documents without a gap."""
_IDENTIFIER = "rag-harness"
Body = dict[str, Any]


def to_phoenix(run: ScoredRun, destination: Destination) -> Sequence[str]:
    """Send spans and annotations.

    Raises:
        SettingsError: no address is named, neither by ``--url`` nor by ``PHOENIX_COLLECTOR_ENDPOINT``.
        PrerequisiteError: no server answers, or it refuses something.
    """
    key = os.environ.get("PHOENIX_API_KEY")
    url = destination.url or os.environ.get("PHOENIX_COLLECTOR_ENDPOINT", "")
    server = Posting("Phoenix", url, {"Authorization": f"Bearer {key}"} if key else {})
    project = quote(destination.project, safe="")
    sent = annotated = 0
    for traces in grouped(scored_traces(run, destination.output), _BATCH):
        sent += _send_spans(server, project, [span for trace in traces for span in _spans(trace)])
        on_spans = [each for trace in traces for each in _annotations(trace)]
        on_documents = [each for trace in traces for each in _relevance(trace)]
        _annotate(server, "/v1/span_annotations?sync=true", on_spans)
        _annotate(server, "/v1/document_annotations?sync=true", on_documents)
        annotated += len(on_spans) + len(on_documents)
    return [f"{sent:,} new spans; {annotated:,} annotations"]


def _send_spans(server: Posting, project: str, spans: Sequence[Body]) -> int:
    """Send the spans that are not there, and return how many these are. Phoenix takes all of a request or none."""
    path = f"/v1/projects/{project}/spans"
    reply = server.send(path, {"data": spans}, known=(400,))
    if reply.status != 400:
        return len(spans)
    there = _duplicates(reply.content)
    rest = [span for span in spans if span["context"]["span_id"] not in there]
    if not there:
        raise PrerequisiteError(f"Phoenix refused the spans: {str(reply.content)[:300]}")
    if rest:
        server.send(path, {"data": rest})
    return len(rest)


def _duplicates(content: Any) -> set[str]:
    """Return the ids of spans that are there already; the reply holds them as an object, or as JSON in ``detail``."""
    said = content.get("detail", content) if isinstance(content, dict) else content
    try:
        found: Any = json.loads(said) if isinstance(said, str) else said
        return {each["span_id"] for each in found["duplicate_spans"]}
    except (ValueError, TypeError, KeyError):
        return set()


def _annotate(server: Posting, path: str, annotations: Sequence[Body]) -> None:
    """Send annotations; wait until the spans, which Phoenix writes when it has time, are there."""
    until = time.monotonic() + _WAIT
    for group in grouped(annotations, _BATCH):
        while server.send(path, {"data": group}, known=(404,)).status == 404:
            if time.monotonic() > until:
                raise PrerequisiteError(f"Phoenix has not written the spans within {_WAIT} s. Export again.")
            time.sleep(0.2)


def _spans(trace: ScoredTrace) -> Iterator[Body]:
    said = {"input.value": trace.asked, "output.value": trace.answer, "session.id": trace.session}
    metadata = {"metadata": json.dumps(dict(trace.labels))}
    yield _span(trace, _span_id(trace), "CHAIN", {key: value for key, value in (said | metadata).items() if value})
    if trace.documents:
        hits = {
            f"retrieval.documents.{n}.document.{key}": name or _FURTHER
            for n, name in enumerate(trace.documents)
            for key in ("id", "content")
        }
        asked = {"input.value": trace.asked}
        yield {**_span(trace, _search_id(trace), "RETRIEVER", asked | hits), "parent_id": _span_id(trace)}


def _span(trace: ScoredTrace, span_id: str, kind: str, attributes: Body) -> Body:
    return {
        "name": trace.name,
        "context": {"trace_id": trace.trace_id, "span_id": span_id},
        "span_kind": kind,
        "start_time": trace.start.isoformat(),
        "end_time": trace.end.isoformat(),
        "status_code": "ERROR" if trace.error else "OK",
        "status_message": trace.error[:1000],
        "attributes": attributes,
    }


def _annotations(trace: ScoredTrace) -> Iterator[Body]:
    for each in trace.scores:
        found = {"score": each.value, "label": each.label, "explanation": each.comment}
        result = {key: value for key, value in found.items() if value not in (None, "")}
        yield {"span_id": _span_id(trace), **_named(each.name, result), "identifier": _IDENTIFIER}


def _relevance(trace: ScoredTrace) -> Iterator[Body]:
    """Yield whether each retrieved document is gold, where the question has gold."""
    for position, name in enumerate(trace.documents):
        if trace.gold and name:
            is_gold = name in trace.gold
            result = {"score": float(is_gold), "label": "relevant" if is_gold else "irrelevant"}
            yield {"span_id": _search_id(trace), "document_position": position, **_named("gold", result)}


def _named(name: str, result: Body) -> Body:
    return {"name": name, "annotator_kind": "CODE", "result": result}


def _span_id(trace: ScoredTrace) -> str:
    return trace.trace_id[:16]


def _search_id(trace: ScoredTrace) -> str:
    return trace.trace_id[16:]
