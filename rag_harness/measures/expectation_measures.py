"""Measures of what cases demand of their answers: all of it, and each kind by itself."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from rag_harness.expectations import (
    AnswerSeen,
    Kept,
    Source,
    as_json,
    kept_share,
    kind_of,
    known_kinds,
    looked_at,
    needs_model,
)
from rag_harness.measures.hits import document_in
from rag_harness.measures.judged.judged_expectations import EXPECTATIONS, NOT_JUDGED, JudgedOfKind, as_judged
from rag_harness.measures.measure import Need, RowMeasure, Score
from rag_harness.types import Case, Expectation

if TYPE_CHECKING:
    from rag_harness.results.row import ExperimentResult

PREFIX = "expect_"
"""Begins the name of the measure of one kind: ``expect_contains``."""
_NONE = "no expectations"


class Expectations(RowMeasure):
    """The weighted share of a case's expectations that its answer keeps; 0 where one with ``must`` is not kept.

    Where a model has to be asked about one of them, the value comes from the judged scores.
    """

    called, needs, looks_by_expectations = EXPECTATIONS, ("answer",), True

    def applies(self, case: Case) -> str:
        """Return why there is nothing to keep to."""
        return "" if case.expect else _NONE

    def score(self, case: Case, row: ExperimentResult) -> Score:
        if any(map(needs_model, case.expect)):
            return Score(None, NOT_JUDGED)
        share, said = kept_share(found_in(case, row, explained=False))
        return Score(share, said)


class ExpectationsOfKind(RowMeasure):
    """The weighted share of a case's expectations of one kind that its answer keeps.

    Args:
        kind: the kind's registered name.
        cutoff: number after the ``@``; there is none.
    """

    called = "expectations"
    needs: tuple[Need, ...] = ("answer",)
    looks_by_expectations = True

    def __init__(self, kind: str, cutoff: int | None = None) -> None:
        super().__init__(cutoff)
        self._kind, self.name = kind, f"{PREFIX}{kind}"

    def applies(self, case: Case) -> str:
        """Return why there is nothing of this kind to keep to."""
        return "" if any(each.kind == self._kind for each in case.expect) else f"no {self._kind} expected"

    def score(self, case: Case, row: ExperimentResult) -> Score:
        share, said = kept_share(
            [each for each in found_in(case, row, explained=False) if each.expectation.kind == self._kind]
        )
        return Score(share, said)


def measure_of_kind(name: str) -> ExpectationsOfKind | JudgedOfKind | None:
    """Return the measure called ``expect_<kind>``; None where no kind is called so."""
    kind = name.removeprefix(PREFIX)
    if not name.startswith(PREFIX) or kind not in known_kinds():
        return None
    return ExpectationsOfKind(kind) if kind_of(kind).asks == "nothing" else JudgedOfKind(kind)


def demands_of(cases: Iterable[Case]) -> dict[str, str]:
    """Return a digest of what cases demand, by the measure that is about it. Other demands make another figure."""
    states: dict[str, Any] = {}
    for case in cases:
        for each in case.expect:
            said = json.dumps([case.query.query_id, as_json(each)], sort_keys=True, default=str).encode()
            for measure in (EXPECTATIONS, f"{PREFIX}{each.kind}"):
                states.setdefault(measure, blake2b(digest_size=8)).update(said)
    return {measure: state.hexdigest() for measure, state in states.items()}


def found_in(
    case: Case, row: ExperimentResult, explained: bool = True, judged: Mapping[str, Any] | None = None
) -> list[Kept]:
    """Return each expectation of a case, and what was found in an answer to it.

    Args:
        case: the case.
        row: its answer.
        explained: whether what stands there instead of a missing text is looked for.
        judged: detail of the judged score of ``expectations``, for those that need a model; None without one.
    """
    return as_judged(looked_at(case.expect, _seen(case, row, explained)), judged)


def numbers_kept(case: Case, row: ExperimentResult, expected: Sequence[Expectation]) -> list[int]:
    """Return the places, from 0, of the expectations that a row's answer keeps. None of them needs a model."""
    return [number for number, each in enumerate(found_among(case, row, expected)) if each.kept]


def found_among(case: Case, row: ExperimentResult, expected: Sequence[Expectation]) -> list[Kept]:
    """Return each of these expectations, and what was found in an answer. None of them needs a model."""
    return looked_at(expected, _seen(case, row, explained=False))


def _seen(case: Case, row: ExperimentResult, explained: bool) -> AnswerSeen:
    calls = [call for stage in row.stages for call in stage.calls]
    reports_sources = bool(row.retrieved_chunks) or row.retrieval_time_ms is not None
    sources = [Source(document_in(case, each), each.text) for each in row.retrieved_chunks]
    usage = row.usage
    return AnswerSeen(
        text=row.llm_answer,
        declined=row.abstained,
        sources=sources if reports_sources else None,
        cited=row.citations,
        cited_wrongly=row.invalid_citations,
        decision=next((each.outcome for each in reversed(row.decisions) if each.name == "decision"), ""),
        confidence=row.confidence,
        ms=row.total_time_ms,
        usd=row.cost_usd,
        tokens=usage.prompt_tokens + usage.completion_tokens if usage.calls else None,
        explained=explained,
        finish_reason=next((each.finish_reason for each in reversed(calls) if each.finish_reason), ""),
    )
