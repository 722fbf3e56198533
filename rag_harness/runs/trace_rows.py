"""Rows and answers from a file of traces, for scores without a trial."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path

from rag_harness.core.errors import ModelOutputError, PrerequisiteError
from rag_harness.core.types import Answer, Case, Failure, PipelineOutput, Query
from rag_harness.pipelines.endpoint.answer import most_contexts, placing_in
from rag_harness.pipelines.otel.files import TraceFile
from rag_harness.pipelines.parts import RunParts
from rag_harness.pipelines.traced_app import SOURCE, KeptTrace, kept_trace
from rag_harness.records.row import ExperimentResult, storable
from rag_harness.runs.trial import Trial, make_row

EXPERIMENT = "traces"
"""The name of the experiment that the rows say they are of."""
_TYPE = "traced"


class TracedRows:
    """The traces of a file as rows.

    Args:
        file: the traces.
        parts: have the documents that chunks are looked up in, and the prices of models.

    Raises:
        DataError: the file cannot be read; lists the problems.

    Attributes:
        total: traces in the file.
        answered: those with an answer.
        failed: those whose app failed.
        unread: ids of the others, each with the reason.
    """

    def __init__(self, file: Path, parts: RunParts) -> None:
        self._traces, self._settings = TraceFile(file), parts.settings
        self._placing = placing_in(parts.data(""), EXPERIMENT, SOURCE, most_contexts(parts.settings))
        self.total, self.answered, self.failed = len(self._traces), 0, 0
        self.unread: list[tuple[str, str]] = []

    def write(self, answers: Path, rows: Path | None) -> None:
        """Write a line an answer, as ``judge score`` reads them, and a row a trace.

        Raises:
            PrerequisiteError: a file cannot be written.
        """
        try:
            with ExitStack() as files:
                said = files.enter_context(answers.open("w", encoding="utf-8"))
                kept = files.enter_context(rows.open("w", encoding="utf-8")) if rows is not None else None
                for trace_id, spans in self._traces.traces():
                    try:
                        trace = kept_trace(spans)
                        row = self._row(trace_id, trace)
                    except ModelOutputError as error:
                        self.unread.append((trace_id, str(error)))
                        continue
                    if kept is not None:
                        kept.write(row.line())
                    if row.ok:
                        said.write(_answer_line(row))
                    self.answered, self.failed = self.answered + row.ok, self.failed + (not row.ok)
        except OSError as error:
            raise PrerequisiteError(f"{error.filename} cannot be written: {error.strerror}.") from error

    def _row(self, trace_id: str, trace: KeptTrace) -> ExperimentResult:
        trial = Trial(EXPERIMENT, Case(Query(trace_id, trace.question), _TYPE))
        if trace.failed:
            failure = Failure("pipeline", "Error", trace.message or "the app failed, and did not say why")
            return make_row(trial, PipelineOutput(Answer("")), failure, 0.0, self._settings, "")
        return make_row(trial, trace.output(self._placing), None, 0.0, self._settings, "")


def _answer_line(row: ExperimentResult) -> str:
    line = {
        "id": row.query_id,
        "question": row.query,
        "contexts": [chunk.text for chunk in row.retrieved_chunks],
        "answer": row.llm_answer,
        "abstained": row.abstained,
    }
    return json.dumps(storable(line), ensure_ascii=False) + "\n"
