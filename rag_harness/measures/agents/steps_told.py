"""What a row tells of the steps of its trial: searches with what they found, calls of tools with their arguments."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rag_harness.measures.hits import document_in
from rag_harness.types import SERVICE

if TYPE_CHECKING:
    from rag_harness.results.row import ExperimentResult
    from rag_harness.results.row_parts import RowStage
    from rag_harness.types import Case

NO_STEPS = "its pipeline tells no steps"
_OF_A_SERVICE = "its service does not tell its steps"
_SUMMED = "a step that tells neither its query nor its hits may be several searches"
_NO_HITS = "no search tells its hits"
_LONGEST_ARGUMENTS = 20_000
"""The most characters of arguments that are read as JSON: a row holds no longer ones."""


@dataclass(frozen=True, slots=True)
class ToldSearch:
    """A search of a trial.

    Attributes:
        asked: what was searched for, plain JSON; None where it is not told.
        chunks: the ids of what it found, best first.
        documents: the document of each; empty where nobody knows it.
    """

    asked: Any
    chunks: tuple[str, ...]
    documents: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ToldCall:
    """A call of a tool. ``args`` are None where they are not told, or are no object."""

    name: str
    args: Mapping[str, Any] | None


def untold_steps(row: ExperimentResult) -> str:
    """Return why nobody can tell what the trial did; empty where its row has steps."""
    if not row.stages:
        return NO_STEPS
    asks_service = any(call.role == SERVICE for stage in row.stages for call in stage.calls)
    return _OF_A_SERVICE if asks_service and not any(stage.kind for stage in row.stages) else ""


def untold_searches(row: ExperimentResult) -> str:
    """Return why nobody can tell how many searches there were; empty where each is a step.

    A pipeline with a flat trace sums its stages by name.
    """
    is_summed = any(not (each.kind or each.hits or each.input is not None) for each in _searching(row))
    return untold_steps(row) or (_SUMMED if is_summed else "")


def untold_hits(row: ExperimentResult) -> str:
    """Return why nobody can tell what searches found; empty where they say it, or found nothing.

    A row does not tell a search that found nothing from one that keeps its hits to itself. Where no search has hits
    and the trial has some, they were kept.
    """
    searching = _searching(row)
    is_kept = searching and not any(each.hits for each in searching) and (row.candidates or row.retrieved_chunks)
    return untold_searches(row) or (_NO_HITS if is_kept else "")


def searches_of(case: Case, row: ExperimentResult) -> list[ToldSearch]:
    """Return the searches of a trial in their order."""
    placed = {chunk.chunk_id: document_in(case, chunk) for chunk in row.retrieved_chunks}
    return [
        ToldSearch(
            stage.input,
            tuple(hit.chunk_id for hit in stage.hits),
            tuple(hit.filename or placed.get(hit.chunk_id, "") for hit in stage.hits),
        )
        for stage in _searching(row)
    ]


def calls_of(case: Case, row: ExperimentResult) -> list[ToldCall]:
    """Return the calls of tools of a trial in their order.

    A search is a call of a tool where the case expects a tool of its name, and then it has the argument ``query``.
    """
    expected = {each.name for each in case.tools or ()}
    return [
        ToldCall(stage.name, _arguments(stage))
        for stage in row.stages
        if stage.does == "tool" or (stage.does == "retrieve" and stage.name in expected)
    ]


def reached_by(searches: Sequence[ToldSearch], needed: set[str]) -> list[float]:
    """Return the share of the needed documents that was found, after each search."""
    found: set[str] = set()
    shares = []
    for search in searches:
        found |= needed & {*search.documents}
        shares.append(len(found) / len(needed))
    return shares


def _searching(row: ExperimentResult) -> list[RowStage]:
    return [stage for stage in row.stages if stage.does == "retrieve"]


def _arguments(stage: RowStage) -> Mapping[str, Any] | None:
    given = stage.input
    if stage.does == "retrieve" and isinstance(given, str):
        return {"query": given}
    if isinstance(given, str) and len(given) <= _LONGEST_ARGUMENTS:  # models write arguments as JSON
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            return None
    return given if isinstance(given, Mapping) else None
