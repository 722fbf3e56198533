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
_FLAT = "its trace tells no steps, only stages (a StepTrace tells them)"
_OF_A_SERVICE = "its service does not tell its steps"
_SUMMED = "a step that tells neither its query nor its hits may be several searches"
_NO_HITS = "no search tells its hits"
_NO_SEARCHES = "it has found chunks, and no step tells a search"
_LONGEST_ARGUMENTS = 20_000
"""The most characters of arguments that are read as JSON: a row holds no longer ones."""


@dataclass(frozen=True, slots=True)
class ToldSearch:
    """A search of a trial.

    Attributes:
        asked: what was searched for, plain JSON; None where it is not told.
        chunks: the ids of what it found, best first.
        documents: the document of each; empty where nobody knows it.
        number: its number among the searches that ``StepTrace.search`` made; 0 where it was made by other means.
    """

    asked: Any
    chunks: tuple[str, ...]
    documents: tuple[str, ...]
    number: int = 0


@dataclass(frozen=True, slots=True)
class ToldCall:
    """A call of a tool. ``args`` are None where they are not told, or are no object."""

    name: str
    args: Mapping[str, Any] | None


def untold_steps(row: ExperimentResult) -> str:
    """Return why nobody can tell what the trial did; empty where its row has steps.

    A stage that has but a name and a time is no step: a flat trace has such stages, and it would have them if an agent
    had searched and called tools in between.
    """
    if not row.stages:
        return NO_STEPS
    if any(map(_is_step, row.stages)):
        return ""
    asks_service = any(call.role == SERVICE for stage in row.stages for call in stage.calls)
    return _OF_A_SERVICE if asks_service else _FLAT


def untold_searches(row: ExperimentResult) -> str:
    """Return why nobody can tell how many searches there were; empty where each is a step.

    A pipeline with a flat trace sums its stages by name.
    """
    is_summed = any(not _is_step(each) for each in _searching(row))
    return untold_steps(row) or (_SUMMED if is_summed else "") or _unseen(row)


def untold_search(row: ExperimentResult) -> str:
    """Return why nobody can tell whether the trial searched at all; empty where its steps say it."""
    return untold_steps(row) or _unseen(row)


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
            number if isinstance(number := stage.detail.get("search"), int) else 0,
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


def _is_step(stage: RowStage) -> bool:
    return bool(stage.kind or stage.hits) or stage.input is not None


def _unseen(row: ExperimentResult) -> str:
    """Return why a row without searches does not say that there were none: something has found its chunks."""
    return _NO_SEARCHES if (row.candidates or row.retrieved_chunks) and not _searching(row) else ""


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
