"""A measure by the turns of conversations: its mean at each turn, and how much it changes from one turn to the next.

Terminal, ``summary.json`` and page read it. Public: ``by_turn`` and ``drift_of``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rag_harness.gates.bounds import interval_of_mean
from rag_harness.gates.grammar import CONVERSATION
from rag_harness.gates.over_turns import OverTurns
from rag_harness.report.clusters import TURN
from rag_harness.report.over_conversations import ConversationScores
from rag_harness.report.suite_table import SuiteTable
from rag_harness.stats.means import mean_or_none

FEW_TURNS = 4
"""Turns that a line has; the last one stands for all that come later."""


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
    """Return a measure by turn, the first first; turns without a value are left out.

    Args:
        table: the suite.
        measure: a measure that the table has.
        most: number of turns; the last one then stands for all later ones. None gives each by itself.

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
