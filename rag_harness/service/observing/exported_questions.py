"""Questions by the traces of a file, in the form for labelling, whoever has answered them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from rag_harness.errors import ModelOutputError
from rag_harness.pipelines.endpoint.placing import Placing
from rag_harness.pipelines.traced.kept_trace import KeptTrace, kept_trace
from rag_harness.service.observing.labelling import Logged
from rag_harness.service.observing.observed import FAILED
from rag_harness.traces.exported.trace_file import TraceFile
from rag_harness.words.abstention import declines


class ExportedQuestions:
    """The questions of a file of OTLP/JSON, Phoenix or Langfuse.

    Raises:
        DataError: the file cannot be read; lists the problems.

    Attributes:
        logged: a trace each.
        unread: ids of traces without a question, each with the reason.
    """

    def __init__(self, file: Path) -> None:
        self.logged: list[Logged] = []
        self.unread: list[tuple[str, str]] = []
        self._content: dict[str, Mapping[str, Any]] = {}
        for trace_id, spans in TraceFile(file).traces():
            try:
                trace = kept_trace(spans)
            except ModelOutputError as error:
                self.unread.append((trace_id, str(error)))
                continue
            began = datetime.fromtimestamp(trace.began_ns / 1e9, timezone.utc).isoformat()
            self.logged.append(Logged(trace_id, began, _decision(trace), None, None, "", trace.question, {}))
            self._content[trace_id] = _words(trace)

    def content(self, trace_id: str) -> Mapping[str, Any]:
        """Return the words of a trace: its answer, the sources that a model was given."""
        return self._content[trace_id]


def _decision(trace: KeptTrace) -> str:
    if trace.failed:
        return FAILED
    return "abstain" if declines(trace.answer) else "pass"


def _words(trace: KeptTrace) -> Mapping[str, Any]:
    try:
        hits = trace.output(Placing(lambda: (), "traces", "search")).context
    except ModelOutputError:
        # Somebody labels a question whose sources are not told all the same.
        hits = ()
    return {"answer": trace.answer, "sources": [{"score": hit.score, "text": hit.chunk.text} for hit in hits]}
