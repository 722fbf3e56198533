"""A suite as a gate over whole conversations counts it: one value a conversation, of all its turns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from rag_harness.gates import Gate, GateRules, Reference
from rag_harness.gates.grammar import CONVERSATION
from rag_harness.gates.over_turns import OverTurns
from rag_harness.gates.promises import Promise
from rag_harness.report.clusters import TURN
from rag_harness.report.over_repeats import kept_promise, right_answers
from rag_harness.report.suite_table import CaseState, SuiteTable
from rag_harness.stats.inputs import Floats
from rag_harness.stats.slopes import SlopeParts, slope_parts, slope_values
from rag_harness.types import PLACEHOLDER, REVIEWED

SliceLabels = Mapping[str, str]
FEW_TURNS = "fewer than two turns with a value"
_Places = npt.NDArray[np.intp]
_DRAFT = {REVIEWED: "no", PLACEHOLDER: "yes"}
"""The labels of a draft. One such turn makes its whole conversation one."""


@dataclass(frozen=True, slots=True)
class _OfConversation:
    """What the turns of a conversation come to: a value, or why there is none."""

    value: float | SlopeParts | None
    reason: str = ""
    is_unmeasured: bool = False


class ConversationScores:
    """The conversations of a suite. A slice says which of their turns count.

    A conversation has no value where one of its turns could have had one and has none: which of them has none may
    depend on how good they are. Turns to which the measure does not apply are left out. A conversation was selected
    where all its turns were.

    Args:
        tables: the suite's table; with repeats, those of the later answers behind it.
        turns: what is asked of the turns.
        promise: what is asked of several answers to each conversation; None where one answer counts.
    """

    def __init__(self, tables: Sequence[SuiteTable], turns: OverTurns, promise: Promise | None = None) -> None:
        self._tables, self._first, self._turns, self._promise = tables, tables[0], turns, promise
        self._found: dict[tuple[str, frozenset[tuple[str, str]]], dict[str, _OfConversation]] = {}

    def total_of(self, where: SliceLabels, /) -> int:
        """Count the conversations in the data."""
        return len(self._members(where))

    def selected_of(self, where: SliceLabels, /) -> int:
        """Count the conversations all of whose turns this run was to look at."""
        return len(self._selected(where))

    def lost_of(self, where: SliceLabels, /) -> int:
        """Count the conversations with a turn that was lost to a crash."""
        lost = np.any([table.states == CaseState.LOST for table in self._tables], axis=0)
        return sum(bool(lost[places].any()) for places in self._selected(where).values())

    def values(self, measure: str, where: SliceLabels, /) -> Mapping[str, float]:
        """Return the value of each conversation that has one, by its id."""
        found = {name: each.value for name, each in self._of(measure, where).items() if each.value is not None}
        parts = {name: each for name, each in found.items() if isinstance(each, SlopeParts)}
        return slope_values(parts) if parts else {name: each for name, each in found.items() if isinstance(each, float)}

    def absent(self, measure: str, where: SliceLabels, /) -> Mapping[str, int]:
        """Count the selected conversations without a value, by the reason."""
        return Counter(each.reason for each in self._of(measure, where).values() if each.value is None)

    def unmeasured(self, measure: str, where: SliceLabels, /) -> int:
        """Count the conversations without a value that could have one."""
        return sum(each.is_unmeasured for each in self._of(measure, where).values())

    def left_out(self, measure: str, where: SliceLabels, /) -> Mapping[str, int]:  # noqa: ARG002
        """Return nothing: a conversation counts by those of its turns that have a value."""
        return {}

    def outcomes(self, where: SliceLabels, /) -> Mapping[str, int]:
        """Return a digest of all rows of each conversation that has them all."""
        rows = np.stack([table.totals.outcomes for table in self._tables])
        found = {name: rows[:, places].ravel().tolist() for name, places in self._members(where).items()}
        return {name: hash(tuple(digests)) for name, digests in found.items() if all(digests)}

    @property
    def depth(self) -> int | None:
        """The highest number of hits of a turn."""
        return self._first.depth

    @cached_property
    def cluster_by_case(self) -> Mapping[str, str] | None:
        """The cluster of each conversation whose turns are of one; None where conversations are the clusters."""
        alike = self._first.alike
        if alike is None or alike.key == CONVERSATION:
            return None
        found = {name: {alike.of[place] for place in places} for name, places in self._members({}).items()}
        return {name: next(iter(of)) if len(of) == 1 else "" for name, of in found.items()}

    @cached_property
    def _named(self) -> tuple[npt.NDArray[np.intp], Sequence[str], npt.NDArray[np.float64]]:
        """For each case the number of its conversation, -1 without one; the conversations; the number of its turn."""
        numbers: dict[str, int] = {}
        of_case = np.full(len(self._first.ids), -1, np.intp)
        turns = np.zeros(len(self._first.ids))
        for place, labels in enumerate(self._first.labels):
            if CONVERSATION in labels and TURN in labels:
                of_case[place] = numbers.setdefault(labels[CONVERSATION], len(numbers))
                turns[place] = float(labels[TURN])
        return of_case, list(numbers), turns

    def _members(self, where: SliceLabels) -> dict[str, _Places]:
        """Return the places of the turns in a slice, by conversation."""
        of_turns = {key: value for key, value in where.items() if key not in _DRAFT}
        found = self._grouped(self._first.mask(of_turns))
        for key, draft in _DRAFT.items():
            if key in where:
                drafts = self._grouped(self._first.mask({**of_turns, key: draft}))
                found = {name: at for name, at in found.items() if (name in drafts) == (where[key] == draft)}
        return found

    def _grouped(self, chosen: npt.NDArray[np.bool_]) -> dict[str, _Places]:
        of_case, names, _ = self._named
        places = np.flatnonzero(chosen & (of_case >= 0))
        if not len(places):
            return {}
        in_order = places[np.argsort(of_case[places], kind="stable")]
        numbers, begins = np.unique(of_case[in_order], return_index=True)
        parts = np.split(in_order, begins[1:])
        return {names[number]: part for number, part in zip(numbers, parts, strict=True)}

    def _selected(self, where: SliceLabels) -> dict[str, _Places]:
        chosen = self._first.states != CaseState.LEFT_OUT
        return {name: places for name, places in self._members(where).items() if chosen[places].all()}

    def _of(self, measure: str, where: SliceLabels) -> dict[str, _OfConversation]:
        key = measure, frozenset(where.items())
        if key not in self._found:
            selected = self._selected(where)
            self._found[key] = {name: self._all_answers(measure, places) for name, places in selected.items()}
        return self._found[key]

    def _all_answers(self, measure: str, places: _Places) -> _OfConversation:
        each = [self._one(table, measure, places) for table in self._tables]
        missing = next((one for one in each if one.value is None), None)
        if missing is not None or self._promise is None:
            return missing or each[0]
        block = np.array([[one.value for one in each]], np.float64)
        better = "higher" if self._turns.is_share else self._first.columns[measure].measure.better
        return _OfConversation(float(kept_promise(block, better, self._promise)[0]))

    def _one(self, table: SuiteTable, measure: str, places: _Places) -> _OfConversation:
        column = table.columns[measure]
        values, absent = column.values[places], column.absent[places]
        there = ~np.isnan(values)
        for number in absent[~there]:
            if int(number) in column.unmeasured:
                return _OfConversation(None, f"a turn without a value ({column.reasons[number]})", is_unmeasured=True)
        if not there.any():
            return _OfConversation(None, column.reasons[absent[0]])
        return self._summed(values[there], self._named[2][places[there]], column.measure.better)

    def _summed(self, values: Floats, turns: Floats, better: str) -> _OfConversation:
        if self._turns.kind == "drift":
            parts = slope_parts(turns, values)
            return _OfConversation(parts, "" if parts else FEW_TURNS)
        if self._turns.kind == "all":
            return _OfConversation(float(right_answers(values, better, self._turns.limit).all()))
        if self._turns.kind == "mean":
            return _OfConversation(float(values.mean()))
        return _OfConversation(float(values.min() if better == "higher" else values.max()))


def over_conversations(gate: Gate, tables: Mapping[str, SuiteTable]) -> dict[str, ConversationScores]:
    """Return the suites of a gate over whole conversations as it counts them."""
    assert gate.turns is not None
    names = [gate.suite, *([gate.right.name] if isinstance(gate.right, Reference) else [])]
    found = {name: tables[name] for name in names if name in tables and gate.measure in tables[name].columns}
    return {
        name: ConversationScores([table, *(table.later() if gate.over else ())], gate.turns, gate.over)
        for name, table in found.items()
    }


def rules_over_conversations(rules: GateRules, suites: Mapping[str, ConversationScores]) -> GateRules:
    """Return the rules of a gate over whole conversations: these are alike only where a cluster holds several."""
    is_clustered = any(each.cluster_by_case is not None for each in suites.values())
    if not is_clustered:
        return replace(rules, clusters=None)
    return replace(rules, clusters=lambda suite: suites[suite].cluster_by_case)
