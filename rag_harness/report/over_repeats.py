"""A suite as a promise over repeats counts it: one value a case, of all answers to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy

import numpy as np
import numpy.typing as npt

from rag_harness.gates import Gate, Reference
from rag_harness.gates.promises import Promise
from rag_harness.report.suite_table import CaseState, Column, SuiteTable
from rag_harness.stats.inputs import Floats
from rag_harness.stats.tries import Rights, all_right, flips, worst_of

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
