"""Measures of the searches of a trial."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar

from rag_harness.measures.agents.steps_told import (
    reached_by,
    searches_of,
    untold_hits,
    untold_search,
    untold_searches,
    untold_steps,
)
from rag_harness.measures.measure import NO_RELEVANT, Need, RowMeasure, Score
from rag_harness.words.same_words import words_of

if TYPE_CHECKING:
    from rag_harness.results.row import ExperimentResult
    from rag_harness.types import Case

_NO_SEARCH = "no search"
_FEWEST = 2
"""Fewest searches of which one can be new."""


class Steps(RowMeasure):
    """Steps of the trial: searches, calls of models and tools, decisions. Those that its pipeline tells."""

    called, unit, better, worst = "steps", "count", "lower", None
    needs: tuple[Need, ...] = ("answer",)

    def score(self, case: Case, row: ExperimentResult) -> Score:  # noqa: ARG002
        why = untold_steps(row)
        return Score(None, why) if why else Score(float(len(row.stages)))


class Searches(RowMeasure):
    """Searches of the trial."""

    called, unit, better, worst = "searches", "count", "lower", None
    needs: tuple[Need, ...] = ("answer",)

    def score(self, case: Case, row: ExperimentResult) -> Score:
        why = untold_searches(row)
        return Score(None, why) if why else Score(float(len(searches_of(case, row))))


class SearchNovelty(RowMeasure):
    """Chunks of the second and later searches that no search before has found / their chunks; 0 if they find none.

    The first search is left out, for all that it finds is new.
    """

    called = "search_novelty"
    needs: tuple[Need, ...] = ("answer",)

    def score(self, case: Case, row: ExperimentResult) -> Score:
        if why := untold_hits(row):
            return Score(None, why)
        each_found = [set(search.chunks) for search in searches_of(case, row)]
        if len(each_found) < _FEWEST:
            return Score(None, "fewer than two searches", undefined=True)
        seen, new = set[str](), list[int]()
        for found in each_found:
            new.append(len(found - seen))
            seen |= found
        later = sum(map(len, each_found[1:]))
        return Score(sum(new[1:]) / later if later else 0.0, detail={"new": new})


class RepeatedSearches(RowMeasure):
    """Searches that ask what an earlier one has asked / searches. Capitals and punctuation do not count."""

    called, better, worst = "repeated_searches", "lower", 1.0
    needs: tuple[Need, ...] = ("answer",)

    def score(self, case: Case, row: ExperimentResult) -> Score:
        if why := untold_searches(row):
            return Score(None, why)
        asked = [search.asked for search in searches_of(case, row)]
        if not asked:
            return Score(None, _NO_SEARCH, undefined=True)
        if None in asked:
            return Score(None, "a search does not tell its query")
        return Score(1 - len({_folded(each) for each in asked}) / len(asked))


class _OfNeededPages(RowMeasure):
    """A measure of when the pages of the gold were found."""

    by_name: ClassVar[bool] = True
    needs: tuple[Need, ...] = ("answer",)

    def applies(self, case: Case) -> str:
        """Return why there is nothing that could be found."""
        return "" if case.context_reference else NO_RELEVANT


class RecallByStep(_OfNeededPages):
    """Needed pages that the first k searches together have found / needed pages."""

    called = "recall_by_step"
    takes_cutoff: ClassVar[bool] = True

    def score(self, case: Case, row: ExperimentResult) -> Score:
        if why := untold_hits(row):
            return Score(None, why)
        reached = reached_by(searches_of(case, row), set(case.context_reference))
        return Score([0.0, *reached[: self.cutoff]][-1], detail={"by_step": reached})


class SearchesAfterEvidence(_OfNeededPages):
    """Searches that come when all needed pages were found already / searches; 1 where they never find all of them."""

    called, better, worst = "searches_after_evidence", "lower", 1.0

    def score(self, case: Case, row: ExperimentResult) -> Score:
        if why := untold_hits(row):
            return Score(None, why)
        reached = reached_by(searches_of(case, row), set(case.context_reference))
        if 1.0 not in reached:
            return Score(1.0, "its searches do not find all that is needed" if reached else _NO_SEARCH)
        return Score((len(reached) - 1 - reached.index(1.0)) / len(reached))


class NeedlessSearches(RowMeasure):
    """1 if the trial searches though its question is answered without: its ``tools`` are an empty list."""

    called, better, worst = "needless_searches", "lower", 1.0
    needs: tuple[Need, ...] = ("answer",)

    def applies(self, case: Case) -> str:
        """Return why the question may need a search."""
        return "" if case.tools == () else "its tools are no empty list"

    def score(self, case: Case, row: ExperimentResult) -> Score:
        why = untold_search(row)
        return Score(None, why) if why else Score(float(bool(searches_of(case, row))))


def _folded(asked: Any) -> str:
    """Return what was asked, without what makes no other question of it."""
    if isinstance(asked, str):
        return " ".join(words_of(asked)) or asked.casefold().strip()
    if isinstance(asked, dict):
        return json.dumps({key: _folded(value) for key, value in asked.items()}, sort_keys=True)
    return json.dumps(asked, sort_keys=True, default=str)
