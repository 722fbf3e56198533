"""Makes the details that the page shows when a trial is opened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rag_harness.expectations import Kept
from rag_harness.page.payload.evidence_places import quotes_in
from rag_harness.page.payload.listed_rows import LineOfMeasure, claims_of
from rag_harness.page.payload.pool import Pool
from rag_harness.page.payload.prompt_pieces import Prompts
from rag_harness.page.payload.told_steps import told_steps
from rag_harness.results.causes import CauseLine
from rag_harness.results.chat import chat_before, inputs_beside
from rag_harness.results.row import ExperimentResult
from rag_harness.results.row_parts import RetrievedChunk, RowCall, RowStage

Chunk = tuple[str, str, str, str, str, str]
"""Id, text, file, section, version, date."""


class Details:
    """Makes the details of a run's trials.

    Args:
        chunks: chunks of all trials of the report.
        names: ids of chunks that were only candidates, and names of measures' reasons.
        prompts: prompts of the run.
        strings: texts of messages.
    """

    def __init__(self, chunks: Pool[Chunk], names: Pool[str], prompts: Prompts, strings: Pool[str]) -> None:
        self._chunks, self._names, self._prompts, self._strings = chunks, names, prompts, strings

    def of(
        self,
        row: ExperimentResult,
        judged: LineOfMeasure,
        quotes: Sequence[str],
        cause: CauseLine | None,
        gaps: Mapping[str, str],
        expected: Sequence[Kept] = (),
    ) -> dict[str, Any]:
        """Return the details, without empty fields.

        Args:
            row: row of the trial.
            judged: its scores by measure.
            quotes: evidence of its case.
            cause: cause of its failure, where that is known.
            gaps: why a measure has no value, by measure.
            expected: what its case expects, and whether the answer keeps to it.
        """
        numbers = [self._chunks.number(_chunk(chunk)) for chunk in row.retrieved_chunks]
        found = {
            "context": [
                _kept(number, chunk, quotes) for number, chunk in zip(numbers, row.retrieved_chunks, strict=True)
            ],
            "candidates": self._candidates(row),
            "claims": claims_of(judged),
            "gaps": {measure: self._names.number(why) for measure, why in gaps.items()},
            "expected": [_expected(each) for each in expected],
            "citations": list(row.citations),
            "invalid": list(row.invalid_citations),
            "stages": list(map(_stage, row.stages, told_steps(row.stages, self._names))),
            "decisions": [[d.name, d.outcome, d.value, d.threshold, d.reason] for d in row.decisions],
            "prompts": self._sent(row, {n: c.text.strip() for n, c in zip(numbers, row.retrieved_chunks, strict=True)}),
            "raw": row.raw_output if row.raw_output != row.llm_answer else "",
            "steps": list(row.reasoning_steps or ()),
            "thought": row.reasoning,
            "inputs": {**inputs_beside(row.asked), **_user(row)},
            "history": self._history(row),
            "usage": [row.usage.prompt_tokens, row.usage.completion_tokens, row.usage.calls],
            "error": [row.error.stage, row.error.type, row.error.message] if row.error else None,
            "cause": _cause(cause) if cause else None,
            "model": self._names.number(row.model),
        }
        return {name: value for name, value in found.items() if value not in (None, "", [], {})}

    def _candidates(self, row: ExperimentResult) -> dict[str, Any]:
        """Return ids and scores by signal, a list each: equal numbers beside each other compress well."""
        if not row.candidates:
            return {}
        signals = sorted({name for candidate in row.candidates for name in candidate.scores})
        scores = {name: [_short(candidate.scores.get(name)) for candidate in row.candidates] for name in signals}
        if not signals:
            scores = {"score": [_short(candidate.score) for candidate in row.candidates]}
        return {"ids": [self._names.number(candidate.chunk_id) for candidate in row.candidates], "scores": scores}

    def _history(self, row: ExperimentResult) -> list[list[object]]:
        """Return role and number of the text of each message before a turn, and 1 of a reply that failed."""
        said = chat_before(row.asked)
        return [[each.role, self._strings.number(each.text), *([1] if each.failed else [])] for each in said]

    def _sent(self, row: ExperimentResult, chunks: Mapping[int, str]) -> list[Any]:
        calls = [call for stage in row.stages for call in stage.calls if call.prompt]
        sent = [self._prompts.pieces(call.prompt, chunks) for call in calls]
        return [pieces for pieces in sent if pieces is not None]


def _user(row: ExperimentResult) -> dict[str, Any]:
    """Return who said the question, where a user is simulated, with the calls of its model."""
    if row.user is None:
        return {}
    calls = [f"{call.usage.prompt_tokens} → {call.usage.completion_tokens} tokens" for call in row.user.calls]
    return {"user": ", ".join([f"simulated by {row.user.detail.get('by', '')}", *calls])}


def _chunk(chunk: RetrievedChunk) -> Chunk:
    about = chunk.metadata
    return chunk.chunk_id, chunk.text, about.filename, about.section, about.version or "", about.date or ""


def _expected(each: Kept) -> list[Any]:
    """Return what is expected, 1 where it is kept, 0 where not, None where nobody can tell; and what stands there."""
    counts = ["must"] if each.expectation.must else []
    counts += [f"weight {each.expectation.weight:g}"] if each.expectation.weight != 1 else []
    said = f"{each.expectation}{' (' + ', '.join(counts) + ')' if counts else ''}"
    return [said, None if each.kept is None else int(each.kept), each.said]


def _kept(number: int, chunk: RetrievedChunk, quotes: Sequence[str]) -> list[Any]:
    """Return the chunk's number, its scores by signal, and the quotes in it: number, start and end of each."""
    scores = chunk.scores or {"score": chunk.score}
    return [number, {name: _short(value) for name, value in scores.items()}, quotes_in(chunk.text, quotes)]


def _stage(stage: RowStage, told: Mapping[str, Any]) -> list[Any]:
    found: list[Any] = [stage.name, _short(stage.ms), [_call(call) for call in stage.calls], dict(stage.detail), told]
    while not found[-1]:
        found.pop()
    return found


def _call(call: RowCall) -> list[Any]:
    tokens = [call.usage.prompt_tokens, call.usage.completion_tokens]
    return [call.role, call.model, _short(call.ms), _short(call.ttft_ms), *tokens, int(call.recorded), call.retries]


def _cause(line: CauseLine) -> dict[str, Any]:
    said = {
        "cause": line.cause,
        "detail": line.detail,
        "evidence": line.evidence,
        "remedy": line.remedy,
        "repaired_by": line.repaired_by,
        "limits": line.limits,
        "observational": line.observational,
        "reviewed": f"{line.reviewed_cause}, by {line.reviewed_by}" if line.reviewed_cause else "",
        "tried": [
            [name, came_to.get("answer", ""), came_to.get("right"), came_to.get("why", "")]
            for name, came_to in line.answers.items()
            if isinstance(came_to, Mapping)
        ],
    }
    return {name: value for name, value in said.items() if value}


def _short(value: float | None) -> float | None:
    """Return a number rounded for people."""
    return None if value is None else float(f"{value:.4g}")
