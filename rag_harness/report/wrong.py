"""The share of wrong answers beside that of wrong declines. ``correct`` counts both against an experiment.

Who declines every question gives no wrong answer, so each of the two figures stands beside the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rag_harness.gates.units import share_said
from rag_harness.measures.correct import CORRECT, UNCHECKED
from rag_harness.measures.measure import Better, NamedMeasure
from rag_harness.report.suite_table import CaseState, Column, SuiteTable
from rag_harness.report.wording import short

WRONG = "wrong"
_WRONGLY_DECLINED = "false_abstention_rate"
_MOST_NAMED = 6
"""Most experiments that one sentence names."""


class _Wrong(NamedMeasure):
    """1 if a checked answer is wrong; 0 if it is right, or declines."""

    called = WRONG
    better: Better = "lower"
    worst: float | None = None


@dataclass(frozen=True, slots=True)
class Verdicts:
    """How the checked answers of an experiment came out.

    Attributes:
        checked: number of checked answers.
        wrong: those that are wrong.
        declined: those that decline a question that the documents answer.
        interval: the 95 % interval of the share of wrong ones; None where too few were checked.
        unchecked: number of answers that nothing checks.
    """

    checked: int
    wrong: int
    declined: int
    interval: tuple[float, float] | None
    unchecked: int

    @property
    def share(self) -> float:
        """The share of checked answers that are wrong."""
        return self.wrong / self.checked

    @property
    def share_said(self) -> str:
        """That share with its interval: ``8.0 % [5.0, 13.0]``."""
        return share_said(self.share, self.interval)


def with_wrong(table: SuiteTable) -> SuiteTable:
    """Return the table with a column of wrong answers, where answers were checked."""
    if not table.has(CORRECT):
        return table
    found = copy(table)
    correct = table.columns[CORRECT].values
    is_open = np.isnan(correct) | (table.states != CaseState.OK)  # an error has no answer that could be wrong
    values = np.where(is_open, np.nan, (correct == 0) & ~_declined(table))
    column = Column(_Wrong(), values, np.isnan(values).astype(np.uint8), ["", UNCHECKED])
    found.columns = {**table.columns, WRONG: column}
    return found


def all_with_wrong(tables: Mapping[str, SuiteTable]) -> dict[str, SuiteTable]:
    """Return the tables, each with that column."""
    return {name: with_wrong(table) for name, table in tables.items()}


def that_answer(tables: Mapping[str, SuiteTable]) -> dict[str, SuiteTable]:
    """Return the tables without the column where everything is declined: to answer nothing is no lead."""
    return {name: table if _answers(table) else _without(table) for name, table in tables.items()}


def _answers(table: SuiteTable) -> bool:
    found = table.totals
    return not table.has(WRONG) or not found.answered or found.abstained < found.answered


def _without(table: SuiteTable) -> SuiteTable:
    found = copy(table)
    found.columns = {name: column for name, column in table.columns.items() if name != WRONG}
    return found


def verdicts_of(table: SuiteTable) -> Verdicts | None:
    """Return how the checked answers came out; None where none was checked."""
    if not table.has(WRONG):
        return None
    wrong = np.array([*table.values(WRONG, {}).values()])
    return Verdicts(
        checked=len(wrong),
        wrong=int(wrong.sum()),
        declined=len(wrongly_declined(table)),
        interval=table.interval(WRONG),
        unchecked=table.totals.answered - len(wrong),
    )


def wrongly_declined(table: SuiteTable) -> set[str]:
    """Return the answered cases that decline though the documents answer, of those that are not correct."""
    if not table.has(CORRECT):
        return set()
    chosen = _declined(table) & (table.columns[CORRECT].values == 0) & (table.states == CaseState.OK)
    return {table.ids[place] for place in np.flatnonzero(chosen).tolist()}


def _declined(table: SuiteTable) -> npt.NDArray[np.bool_]:
    column = table.columns.get(_WRONGLY_DECLINED)
    declined = np.zeros(len(table.ids), np.bool_) if column is None else column.values == 1
    return np.asarray(declined & (table.states == CaseState.OK))


def describe_wrong(tables: Mapping[str, SuiteTable]) -> str:
    """Return how many answers of each experiment are wrong, and how many decline wrongly; empty where none is known."""
    found = {name: verdicts for name, table in tables.items() if (verdicts := verdicts_of(table)) is not None}
    if not found:
        return ""
    shown, more = [*found.items()][:_MOST_NAMED], len(found) - _MOST_NAMED
    said = [f"{short(name)} {each.share_said} of {each.checked:,}" for name, each in shown]
    left = f" and {more:,} more" if more > 0 else ""
    return " ".join([f"{', '.join(said)}{left}.", _declined_said(dict(shown)), *_unchecked_said(found)])


def describe_wrong_alone(found: Verdicts) -> str:
    """Return the same of an experiment that needs no name."""
    unchecked = f", {found.unchecked:,} not checked" if found.unchecked > 0 else ""
    correct = found.checked - found.wrong - found.declined
    declined = f"{found.declined:,} wrongly declined"
    return f"{found.share_said} of {found.checked:,}; {declined}, {correct:,} correct{unchecked}"


def _declined_said(found: Mapping[str, Verdicts]) -> str:
    if not any(each.declined for each in found.values()):
        return "Nothing is wrongly declined."
    said = ", ".join(f"{short(name)} {each.declined:,}" for name, each in found.items())
    return f"Wrongly declined: {said}."


def _unchecked_said(found: Mapping[str, Verdicts]) -> list[str]:
    said = [f"{short(name)} {each.unchecked:,}" for name, each in found.items() if each.unchecked > 0]
    return [f"Not checked: {', '.join(said[:_MOST_NAMED])}."] if said else []


def count_wrong(tables: Mapping[str, SuiteTable]) -> str:
    """Return the counts of wrong and of wrongly declined answers, as pytest's last line has them."""
    found = [verdicts for table in tables.values() if (verdicts := verdicts_of(table)) is not None]
    if not found:
        return ""
    declined = sum(each.declined for each in found)
    more = f", {declined:,} wrongly declined" if declined else ""
    return f"{sum(each.wrong for each in found):,} wrong{more}"
