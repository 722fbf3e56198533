"""Measures of the calls of tools, against those that a case expects."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from rag_harness.measures.agents.steps_told import ToldCall, calls_of, untold_steps
from rag_harness.measures.measure import Need, RowMeasure, Score

if TYPE_CHECKING:
    from rag_harness.results.row import ExperimentResult
    from rag_harness.types import Case, ExpectedTool

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

    def compared(self, expected: Sequence[ExpectedTool], made: Sequence[ToldCall]) -> Score:
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

    def compared(self, expected: Sequence[ExpectedTool], made: Sequence[ToldCall]) -> Score:
        return Score(_shared(expected, made) / len(expected))


class ToolPrecision(_AlsoOfNone):
    """Calls that were expected / calls, by name, with repeats. Without a call: 1 if none is expected, else 0."""

    called = "tool_precision"

    def compared(self, expected: Sequence[ExpectedTool], made: Sequence[ToldCall]) -> Score:
        return Score(_shared(expected, made) / len(made) if made else float(not expected))


class ToolOrder(_OfTools):
    """1 if the expected calls were made in their order, by name; others may stand between them."""

    called = "tool_order"

    def compared(self, expected: Sequence[ExpectedTool], made: Sequence[ToldCall]) -> Score:
        names = iter([call.name for call in made])
        # ``in`` takes names from the iterator up to the one that it finds.
        return Score(float(all(each.name in names for each in expected)))


class ToolOrderExact(_AlsoOfNone):
    """1 if the calls are the expected ones in their order, by name, and no others."""

    called = "tool_order_exact"

    def compared(self, expected: Sequence[ExpectedTool], made: Sequence[ToldCall]) -> Score:
        return Score(float([each.name for each in expected] == [call.name for call in made]))


class ToolArgs(_OfTools):
    """Mean over the expected calls that state arguments: stated arguments that the call has / stated arguments.

    An argument that is an object is kept where the call has each of its members. Each expected call is held against
    one call of its name, the most alike first; without one it counts 0.
    """

    called = "tool_args"

    def applies(self, case: Case) -> str:
        """Return why there are no arguments to compare with."""
        return super().applies(case) or ("" if _stating(case.tools or ()) else "no arguments are expected")

    def compared(self, expected: Sequence[ExpectedTool], made: Sequence[ToldCall]) -> Score:
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


def _shared(expected: Sequence[ExpectedTool], made: Sequence[ToldCall]) -> int:
    return (Counter(each.name for each in expected) & Counter(call.name for call in made)).total()


def _stating(expected: Sequence[ExpectedTool]) -> list[ExpectedTool]:
    return [each for each in expected if each.args is not None]


def _best(likeness: Any, stating: Sequence[ExpectedTool], made: Sequence[ToldCall]) -> list[float]:
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
