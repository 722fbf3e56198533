"""Measures of an agent: its searches, its calls of tools and its steps."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, ClassVar

from rag_harness.core.text.comparison import words_of
from rag_harness.core.types import SERVICE
from rag_harness.evaluation.measures.measure import NO_RELEVANT, Need, RowMeasure, Score
from rag_harness.records.document_ranking import document_in

if TYPE_CHECKING:
    from rag_harness.core.types import Case, ExpectedTool
    from rag_harness.records.row import ExperimentResult, RowStage


NO_STEPS = "its pipeline tells no steps"
_FLAT = "its trace tells no steps, only stages (a StepTrace tells them)"
_OF_A_SERVICE = "its service does not tell its steps"
_SUMMED = "a step that tells neither its query nor its hits may be several searches"
_NO_HITS = "no search tells its hits"
_NO_SEARCHES = "it has found chunks, and no step tells a search"
_LONGEST_ARGUMENTS = 20_000
"""The most characters of arguments that are read as JSON: a row holds no longer ones."""


@dataclass(frozen=True, slots=True)
class TracedSearch:
    """A search of a trial.

    Attributes:
        asked: the query of the search, plain JSON; None where the row lacks it.
        chunks: the ids of the chunks that it found, best first.
        documents: the document of each; empty where it is not known.
        number: its number among the searches that ``StepTrace.search`` made; 0 where other code made it.
    """

    asked: Any
    chunks: tuple[str, ...]
    documents: tuple[str, ...]
    number: int = 0


@dataclass(frozen=True, slots=True)
class TracedCall:
    """A call of a tool. ``args`` are None where the row lacks them, or where they are not an object."""

    name: str
    args: Mapping[str, Any] | None


def untold_steps(row: ExperimentResult) -> str:
    """Return why the steps of the trial are not known; empty where its row has steps.

    A stage with only a name and a time does not count as a step. A flat trace has such stages, and would have them even
    if an agent had searched and called tools in between.
    """
    if not row.stages:
        return NO_STEPS
    if any(map(_is_step, row.stages)):
        return ""
    asks_service = any(call.role == SERVICE for stage in row.stages for call in stage.calls)
    return _OF_A_SERVICE if asks_service else _FLAT


def untold_searches(row: ExperimentResult) -> str:
    """Return why the number of searches is not known; empty where each is a step.

    A pipeline with a flat trace sums its stages by name.
    """
    is_summed = any(not _is_step(each) for each in _searching(row))
    return untold_steps(row) or (_SUMMED if is_summed else "") or _unseen(row)


def untold_search(row: ExperimentResult) -> str:
    """Return why it is not known whether the trial searched at all; empty where its steps tell."""
    return untold_steps(row) or _unseen(row)


def untold_hits(row: ExperimentResult) -> str:
    """Return why the hits of searches are not known; empty where their steps have them, or nothing was found.

    A row does not distinguish a search that found nothing from a search that hides its hits. Where no search has hits
    and the trial has some, they were hidden.
    """
    searching = _searching(row)
    is_kept = searching and not any(each.hits for each in searching) and (row.candidates or row.retrieved_chunks)
    return untold_searches(row) or (_NO_HITS if is_kept else "")


def searches_of(case: Case, row: ExperimentResult) -> list[TracedSearch]:
    """Return the searches of a trial in their order."""
    placed = {chunk.chunk_id: document_in(case, chunk) for chunk in row.retrieved_chunks}
    return [
        TracedSearch(
            stage.input,
            tuple(hit.chunk_id for hit in stage.hits),
            tuple(hit.filename or placed.get(hit.chunk_id, "") for hit in stage.hits),
            number if isinstance(number := stage.detail.get("search"), int) else 0,
        )
        for stage in _searching(row)
    ]


def calls_of(case: Case, row: ExperimentResult) -> list[TracedCall]:
    """Return the calls of tools of a trial in their order.

    A search is a call of a tool where the case expects a tool of its name, and then it has the argument ``query``.
    """
    expected = {each.name for each in case.tools or ()}
    return [
        TracedCall(stage.name, _arguments(stage))
        for stage in row.stages
        if stage.does == "tool" or (stage.does == "retrieve" and stage.name in expected)
    ]


def reached_by(searches: Sequence[TracedSearch], needed: set[str]) -> list[float]:
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
        return "" if case.tools == () else "its tools are not an empty list"

    def score(self, case: Case, row: ExperimentResult) -> Score:
        why = untold_search(row)
        return Score(None, why) if why else Score(float(bool(searches_of(case, row))))


def _folded(asked: Any) -> str:
    """Return a query without case and punctuation, which do not make it another query."""
    if isinstance(asked, str):
        return " ".join(words_of(asked)) or asked.casefold().strip()
    if isinstance(asked, dict):
        return json.dumps({key: _folded(value) for key, value in asked.items()}, sort_keys=True)
    return json.dumps(asked, sort_keys=True, default=str)


_NOT_SAID, _NONE = "the question names no tools", "no tool is expected"


class _OfTools(RowMeasure):
    """A measure of the calls of a trial. ``applies`` where the case expects some."""

    needs: tuple[Need, ...] = ("answer",)

    def applies(self, case: Case) -> str:
        """Return why there is nothing to compare with."""
        return _NOT_SAID if case.tools is None else "" if case.tools else _NONE

    def score(self, case: Case, row: ExperimentResult) -> Score:
        why = untold_steps(row)
        return Score(None, why) if why else self.compared(case.tools or (), calls_of(case, row))

    def compared(self, expected: Sequence[ExpectedTool], made: Sequence[TracedCall]) -> Score:
        """Return the score of the calls that were made."""
        raise NotImplementedError


class _AlsoOfNone(_OfTools):
    """A measure that applies where no call is expected, too."""

    def applies(self, case: Case) -> str:
        """Return why there is nothing to compare with."""
        return _NOT_SAID if case.tools is None else ""


class ToolRecall(_OfTools):
    """Expected calls that were made / expected calls, by name, counted with repeats."""

    called = "tool_recall"

    def compared(self, expected: Sequence[ExpectedTool], made: Sequence[TracedCall]) -> Score:
        return Score(_shared(expected, made) / len(expected))


class ToolPrecision(_AlsoOfNone):
    """Calls that were expected / calls, by name, with repeats. Without a call: 1 if none is expected, else 0."""

    called = "tool_precision"

    def compared(self, expected: Sequence[ExpectedTool], made: Sequence[TracedCall]) -> Score:
        return Score(_shared(expected, made) / len(made) if made else float(not expected))


class ToolOrder(_OfTools):
    """1 if the expected calls were made in their order, by name; others may stand between them."""

    called = "tool_order"

    def compared(self, expected: Sequence[ExpectedTool], made: Sequence[TracedCall]) -> Score:
        names = iter([call.name for call in made])
        # ``in`` takes names from the iterator up to the one that it finds.
        return Score(float(all(each.name in names for each in expected)))


class ToolOrderExact(_AlsoOfNone):
    """1 if the calls are the expected ones in their order, by name, and no others."""

    called = "tool_order_exact"

    def compared(self, expected: Sequence[ExpectedTool], made: Sequence[TracedCall]) -> Score:
        return Score(float([each.name for each in expected] == [call.name for call in made]))


class ToolArgs(_OfTools):
    """Mean over the expected calls that state arguments: stated arguments that the call has / stated arguments.

    An argument that is an object matches where the call has each of its members. Each expected call is compared with
    one call of its name, the most alike first; without one it counts 0.
    """

    called = "tool_args"

    def applies(self, case: Case) -> str:
        """Return why no arguments are available to compare with."""
        return super().applies(case) or ("" if _stating(case.tools or ()) else "no arguments are expected")

    def compared(self, expected: Sequence[ExpectedTool], made: Sequence[TracedCall]) -> Score:
        stating = _stating(expected)
        if any(call.args is None for call in made if call.name in {each.name for each in stating}):
            return Score(None, "a call does not tell its arguments")
        return Score(sum(_best(self.likeness, stating, made)) / len(stating))

    @staticmethod
    def likeness(stated: Mapping[str, Any], given: Mapping[str, Any]) -> float:
        """Return the share of the stated arguments that were given; without any stated, 1 where none was given."""
        if not stated:
            return float(not given)
        return sum(name in given and _has(given[name], value) for name, value in stated.items()) / len(stated)


class ToolArgsExact(ToolArgs):
    """Expected calls that were made with the stated arguments and no others / expected calls that state arguments."""

    called = "tool_args_exact"

    @staticmethod
    def likeness(stated: Mapping[str, Any], given: Mapping[str, Any]) -> float:
        """Return 1 where exactly the stated arguments were given."""
        return float(_equal(given, stated))


def tools_demanded(cases: Iterable[Case]) -> dict[str, str]:
    """Return a digest of the calls that cases expect, by the measure that is about them."""
    state = blake2b(digest_size=8)
    found = [case for case in cases if case.tools is not None]
    for case in found:
        said = [[each.name, each.args] for each in case.tools or ()]
        state.update(json.dumps([case.query.query_id, said], sort_keys=True, default=str).encode())
    names = (ToolRecall, ToolPrecision, ToolOrder, ToolOrderExact, ToolArgs, ToolArgsExact)
    about = [*(each.called for each in names), "needless_searches"]
    return dict.fromkeys(about, state.hexdigest()) if found else {}


def _shared(expected: Sequence[ExpectedTool], made: Sequence[TracedCall]) -> int:
    return (Counter(each.name for each in expected) & Counter(call.name for call in made)).total()


def _stating(expected: Sequence[ExpectedTool]) -> list[ExpectedTool]:
    return [each for each in expected if each.args is not None]


def _best(likeness: Any, stating: Sequence[ExpectedTool], made: Sequence[TracedCall]) -> list[float]:
    """Return how like its call each expected one is. Pairs are made from the most alike down; no call is in two."""
    pairs = [
        (likeness(each.args or {}, call.args or {}), len(each.args or {}), -n, -m)
        for n, each in enumerate(stating)
        for m, call in enumerate(made)
        if each.name == call.name
    ]
    taken: dict[int, tuple[int, float]] = {}
    for share, _, n, m in sorted(pairs, reverse=True):
        if n not in taken and all(m != other for other, _ in taken.values()):
            taken[n] = (m, share)
    return [share for _, share in taken.values()]


def _has(given: Any, stated: Any) -> bool:
    """Whether a value is as stated; an object may have more members than are stated."""
    if isinstance(stated, Mapping):
        is_object = isinstance(given, Mapping)
        return is_object and all(name in given and _has(given[name], value) for name, value in stated.items())
    if isinstance(stated, list | tuple):
        is_list = isinstance(given, list | tuple) and len(given) == len(stated)
        return is_list and all(map(_has, given, stated))
    return _equal(given, stated)


def _equal(given: Any, stated: Any) -> bool:
    """Whether two values are the same JSON: ``true`` is not 1, and 1 is 1.0."""
    if isinstance(stated, Mapping):
        is_object = isinstance(given, Mapping) and given.keys() == stated.keys()
        return is_object and all(_equal(given[name], value) for name, value in stated.items())
    if isinstance(stated, list | tuple):
        is_list = isinstance(given, list | tuple) and len(given) == len(stated)
        return is_list and all(map(_equal, given, stated))
    return bool(given == stated) and isinstance(given, bool) == isinstance(stated, bool)
