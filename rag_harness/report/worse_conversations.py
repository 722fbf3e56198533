"""Which conversations got worse from one run to another on a measure, and from which turn on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rag_harness.gates.grammar import CONVERSATION
from rag_harness.report.baseline import SavedSuite
from rag_harness.report.clusters import TURN
from rag_harness.report.direction import Side
from rag_harness.stats.means import mean_or_none

_SAME = 1e-12


@dataclass(frozen=True, slots=True)
class WorseConversation:
    """A conversation that got worse.

    Attributes:
        conversation: its id.
        turn: number of its first turn that got worse.
        case: id of the case of that turn.
        by: how much the mean over its turns got worse, above 0.
    """

    conversation: str
    turn: int
    case: str
    by: float


@dataclass(frozen=True, slots=True)
class ConversationChanges:
    """What became of conversations from one run to another.

    Attributes:
        total: conversations with a turn that has a value in both runs.
        worse: those whose mean over such turns got worse, the most first.
        better: number of those whose mean got better.
    """

    total: int
    worse: tuple[WorseConversation, ...]
    better: int


def conversation_changes(
    now: SavedSuite, new: Mapping[str, float], old: Mapping[str, float], better: Side
) -> ConversationChanges | None:
    """Return what became of the conversations of a suite; None where no case is a turn, or neither side is better.

    Args:
        now: the suite in the later run.
        new: value of each case in the later run.
        old: value of each case in the earlier run.
        better: the better side of the measure.
    """
    worse_by: dict[str, dict[int, tuple[str, float]]] = {}
    for case_id, value in new.items():
        labels = now.cases[case_id].slices
        if better and case_id in old and CONVERSATION in labels and labels.get(TURN, "").isdecimal():
            by = (old[case_id] - value) * (1 if better == "higher" else -1)
            worse_by.setdefault(labels[CONVERSATION], {})[int(labels[TURN])] = case_id, by
    if not worse_by:
        return None
    means = {name: mean_or_none(by for _, by in turns.values()) or 0.0 for name, turns in worse_by.items()}
    worse = sorted((name for name, by in means.items() if by > _SAME), key=lambda name: -means[name])
    found = tuple(_worse(name, worse_by[name], means[name]) for name in worse)
    return ConversationChanges(len(means), found, sum(by < -_SAME for by in means.values()))


def _worse(name: str, turns: Mapping[int, tuple[str, float]], by: float) -> WorseConversation:
    turn = min(turn for turn, (_, each) in turns.items() if each > _SAME)
    return WorseConversation(name, turn, turns[turn][0], by)
