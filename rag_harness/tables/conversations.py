"""Conversations and repeats in figures.

Values as gates count them, measures by turn, and how played conversations ended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_harness.core.types import PLACEHOLDER, REVIEWED
from rag_harness.pipelines.experiments import result_path
from rag_harness.pipelines.simulated_user import SCRIPT
from rag_harness.records.manifest import RunManifest, SuiteRecord, user_fingerprint, user_name
from rag_harness.records.row import ExperimentResult, rows_in
from rag_harness.runs.gates import Gate, GateRules, Reference
from rag_harness.runs.gates.evidence import interval_of_mean
from rag_harness.runs.gates.grammar import CONVERSATION, OverTurns, Promise
from rag_harness.stats.distributions import Rights, all_right, flips, worst_of
from rag_harness.stats.inputs import Floats, SlopeParts, slope_parts, slope_values
from rag_harness.stats.means import mean_or_none
from rag_harness.tables.suite_table import TURN, CaseState, Column, SuiteTable
from rag_harness.tables.wording import counted

AT_LIMIT, UNFINISHED = "the most turns were asked", "not finished"
_MOST_NAMED = 3


@dataclass
class Spent:
    """What the model of the users has used."""

    calls: int = 0
    tokens: int = 0
    usd: float | None = 0.0

    def add(self, row: ExperimentResult) -> None:
        """Add a row of what a user said."""
        self.calls += row.usage.calls
        self.tokens += row.usage.prompt_tokens + row.usage.completion_tokens
        self.usd = None if self.usd is None or row.cost_usd is None else self.usd + row.cost_usd


@dataclass
class Played:
    """The conversations of one experiment that simulated users play.

    Attributes:
        by: who played the users.
        turns: number of turns of each conversation that has any.
        reached: conversations whose goal was reached, and those that have one.
        endings: how many conversations ended so.
        taken_out: why a conversation was taken out, by its id.
        spent: what the model of the users has used; None where a script plays.
    """

    by: str
    turns: Mapping[str, int]
    reached: tuple[int, int] = (0, 0)
    endings: Counter[str] = field(default_factory=Counter)
    taken_out: Mapping[str, str] = field(default_factory=dict)
    spent: Spent | None = None

    def lines(self, name: str) -> Iterator[str]:
        """Yield what to know of them, a sentence each."""
        longest, mean = max(self.turns.values(), default=0), fmean(self.turns.values() or [0])
        reached, having = self.reached
        goal = f"{reached} of {having} reached the goal; " if having else ""
        ends = ", ".join(f"{n} × {why}" for why, n in self.endings.most_common())
        talks = counted(len(self.turns), "conversation")
        yield f"{name}: {talks} with a simulated user ({self.by}): {goal}{mean:.1f} turns, {longest} at most; {ends}"
        if self.taken_out:
            named = [f"{talk} {why}" for talk, why in [*self.taken_out.items()][:_MOST_NAMED]]
            more = f"; and {len(self.taken_out) - _MOST_NAMED} more" if len(self.taken_out) > _MOST_NAMED else ""
            yield f"taken out of {name}: {len(self.taken_out)} of {talks}: {'; '.join(named)}{more}"
        if self.spent is not None:
            usd = f", {self.spent.usd:.4f} USD" if self.spent.usd is not None else ""
            yield (
                f"the simulated user of {name} took {counted(self.spent.calls, 'call')} and {self.spent.tokens:,} "
                f"tokens{usd}, counted in no figure of {name}"
            )

    def as_json(self) -> dict[str, Any]:
        """Return them for ``summary.json``."""
        spent = self.spent
        return {
            "user": self.by,
            "conversations": len(self.turns),
            "turns": sum(self.turns.values()),
            "goal_reached": self.reached[0],
            "with_goal": self.reached[1],
            "endings": dict(self.endings),
            "taken_out": dict(self.taken_out),
            "spent": None if spent is None else {"calls": spent.calls, "tokens": spent.tokens, "usd": spent.usd},
        }


def played_of(output: Path, manifest: RunManifest, tables: Mapping[str, SuiteTable]) -> dict[str, Played]:
    """Return the conversations of each experiment of a run that simulated users play."""
    return {
        name: _played(output, name, record, tables[name])
        for name, record in manifest.suites.items()
        if record.history == "played" and name in tables
    }


def _played(output: Path, name: str, record: SuiteRecord, table: SuiteTable) -> Played:
    turns, most = Counter[str](), Counter[str]()
    for position, labels in enumerate(table.labels):
        talk = labels.get("conversation", "")
        most[talk] += 1
        if table.states[position] in (CaseState.OK, CaseState.ERROR):
            turns[talk] += 1
    ended = {case_id.partition("#")[0]: why.partition(": ")[2] for case_id, why in record.ended.items()}
    ended = {**{talk: AT_LIMIT for talk in turns if turns[talk] == most[talk]}, **ended}
    # What a reason quotes differs from one conversation to the next.
    endings = Counter(ended.get(talk, UNFINISHED).partition(":")[0] for talk in turns)
    goals = table.values("goal_reached", {}) if "goal_reached" in table.columns else {}
    reached = sum(value >= 1 for value in goals.values()), len(goals)
    is_model = bool(record.user) and record.user != SCRIPT
    spent = _spent(output, name, record) if is_model else None
    return Played(record.user, turns, reached, endings, record.taken_out, spent)


def _spent(output: Path, name: str, record: SuiteRecord) -> Spent:
    spent, fingerprints = Spent(), {user_fingerprint(each) for each in record.fingerprints}
    for row in rows_in(result_path(output, user_name(name))):
        if row.fingerprint in fingerprints:
            spent.add(row)
    return spent


_EQUAL = 1e-12


def over_repeats(gate: Gate, tables: Mapping[str, SuiteTable]) -> Mapping[str, SuiteTable]:
    """Return the suites of ``gate`` as it counts them; the same tables where it asks for no promise over repeats."""
    if gate.over is None:
        return tables
    names = [gate.suite, *([gate.right.name] if isinstance(gate.right, Reference) else [])]
    found = {name: tables[name] for name in names if name in tables and gate.measure in tables[name].columns}
    return {name: _counted(table, gate.measure, gate.over) for name, table in found.items()}


def answers_said(gate: Gate, tables: Mapping[str, SuiteTable]) -> str:
    """Say how many answers to each case a promise over repeats counts, and how many raised; empty for other gates."""
    table = tables.get(gate.suite)
    if gate.over is None or table is None:
        return ""
    later, chosen = table.later(), table.mask(dict(gate.slice))
    if later and all(each is table for each in later):
        return f"{len(later) + 1} answers to each case, computed and so all the same"
    raised = sum(int((chosen & (each.states == CaseState.ERROR)).sum()) for each in [table, *later])
    said = f", {raised:,} answer{'s' * (raised > 1)} raised an error" if raised else ""
    return f"{len(later) + 1} answer{'s' * bool(later)} to each case{said}"


def _counted(first: SuiteTable, measure: str, promise: Promise) -> SuiteTable:
    """Return a table with one value a case.

    A case has a value only where each of its answers has one: which of them has none may depend on how good they are.
    An answer that raised counts the worst. A case of which an answer did not come counts as lost. A turn that some of
    the conversations never came to has no value.
    """
    tables = [first, *first.later()]
    lost = np.any([table.states == CaseState.LOST for table in tables], axis=0) & (first.states != CaseState.LEFT_OUT)
    totals = copy(first.totals)
    totals.outcomes = _together([table.totals.outcomes for table in tables])
    ended = np.any([np.zeros_like(lost) if table.ended is None else table.ended for table in tables], axis=0)
    column = _column([table.columns[measure] for table in tables], promise, ended)
    states = np.where(lost, CaseState.LOST, first.states).astype(np.uint8)
    found = SuiteTable(first.ids, first.labels, states, {measure: column}, totals)
    found.alike, found.ended = first.alike, first.ended
    return found


def _together(outcomes: Sequence[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    """Return a digest of all rows of each case; 0 where one is not there."""
    found = outcomes[0].copy()
    for each in outcomes[1:]:
        found = found * 31 + each
    return np.where(np.all([each != 0 for each in outcomes], axis=0), found, 0)


def _column(answers: Sequence[Column], promise: Promise, ended: npt.NDArray[np.bool_]) -> Column:
    first = answers[0]
    block = np.stack([column.values for column in answers], axis=1)
    values, has_each = np.full(len(block), np.nan), ~np.isnan(block).any(axis=1)
    enough = len(answers) >= promise.k
    if enough:
        values[has_each] = kept_promise(block[has_each], first.measure.better, promise)
    # The measure may apply to some answers only, as to those that state something. Such a case could have had a value.
    partly = ~np.isnan(block).all(axis=1)
    why = "no value of each answer" if enough else f"fewer than {promise.k} answers"
    reasons = [*first.reasons, why, "conversations that ended before it"]
    number = len(first.reasons)
    without = np.where(ended, number + 1, np.where(partly, number, first.absent))
    absent = np.where(np.isnan(values), without, 0).astype(np.uint8)
    return Column(first.measure, values, absent, reasons, first.unmeasured | {len(first.reasons)}, first.by_answer)


def kept_promise(block: Floats, better: str, promise: Promise) -> Floats:
    """Return what the answers to each case come to, from values of shape (cases, answers)."""
    if promise.kind == "worst_of_":
        return worst_of(block, promise.k, better == "higher")
    right = right_answers(block, better, promise.limit)
    return flips(right) if promise.kind == "flip_rate" else all_right(right, promise.k)


def right_answers(block: Floats, better: str, limit: tuple[str, float] | None) -> Rights:
    """Return which values are right: those that hold the limit, else those that are the best of a share."""
    op, threshold = limit or ((">=", 1.0) if better == "higher" else ("<=", 0.0))
    is_equal = np.abs(block - threshold) <= _EQUAL
    beyond = block > threshold if ">" in op else block < threshold
    return (beyond | is_equal) if "=" in op else (beyond & ~is_equal)


SliceLabels = Mapping[str, str]
FEW_TURNS_EACH = "fewer than two turns with a value"
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
            return _OfConversation(parts, "" if parts else FEW_TURNS_EACH)
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


# A measure by the turns of conversations: its mean at each turn, and how much it changes from one turn to the next.
#
# Terminal, ``summary.json`` and page read it. Public: ``by_turn`` and ``drift_of``.

FEW_TURNS = 4
"""Turns that a line has; the last one means all that come later."""


@dataclass(frozen=True, slots=True)
class TurnMean:
    """The mean of a measure over the cases of a turn.

    Attributes:
        turn: number of the turn, or ``4+`` for it and all later ones.
        value: the mean, in the unit of the measure.
        n: number of cases with a value.
        interval: the 95 % interval, with conversations as clusters; None where the cases allow none.
    """

    turn: str
    value: float
    n: int
    interval: tuple[float, float] | None

    def as_json(self) -> dict[str, Any]:
        """Return the fields for ``summary.json``."""
        return {"value": self.value, "n": self.n, "interval": _ends(self.interval)}


@dataclass(frozen=True, slots=True)
class Drift:
    """The change of a measure from one turn to the next, within conversations.

    Attributes:
        slope: change a turn, in the unit of the measure.
        conversations: number of conversations behind it.
        interval: the 95 % interval; None where the conversations allow none.
    """

    slope: float
    conversations: int
    interval: tuple[float, float] | None

    def as_json(self) -> dict[str, Any]:
        """Return the fields for ``summary.json``."""
        return {"slope": self.slope, "conversations": self.conversations, "interval": _ends(self.interval)}


def has_turns(table: SuiteTable) -> bool:
    """Return whether some case is a turn after the first."""
    return any(labels.get(TURN, "1") != "1" and CONVERSATION in labels for labels in table.labels)


def by_turn(table: SuiteTable, measure: str, most: int | None = None) -> list[TurnMean]:
    """Return a measure by turn, in order; turns without a value are left out.

    Args:
        table: the suite.
        measure: a measure that the table has.
        most: number of turns; the last one then includes all later ones. None returns each by itself.

    Raises:
        KeyError: the table was made without that measure.
    """
    turns = sorted({int(labels[TURN]) for labels in table.labels if CONVERSATION in labels and TURN in labels})
    last = turns[most - 1] if most is not None and len(turns) > most else None
    places = [(str(turn), str(turn)) for turn in turns if last is None or turn < last]
    places += [(f"{last}+", f">={last}")] if last is not None else []
    found = [(name, table.values(measure, {TURN: where}), where) for name, where in places]
    return [
        TurnMean(name, mean_or_none([*values.values()]) or 0.0, len(values), table.interval(measure, {TURN: where}))
        for name, values, where in found
        if values
    ]


def drift_of(table: SuiteTable, measure: str) -> Drift | None:
    """Return the drift of a measure; None where no conversation has two turns with a value.

    Raises:
        KeyError: the table was made without that measure.
    """
    values = [*ConversationScores([table], OverTurns("drift")).values(measure, {}).values()]
    if not values:
        return None
    return Drift(mean_or_none(values) or 0.0, len(values), interval_of_mean(values, "score"))


def turns_said(turns: Sequence[TurnMean]) -> str:
    """Return means by turn in short: ``1 .80  2 .55  3 .52  4+ .49``."""
    return "  ".join(f"{each.turn} {f'{each.value:.2f}'.removeprefix('0')}" for each in turns)


def _ends(interval: tuple[float, float] | None) -> list[float] | None:
    return [*interval] if interval else None
