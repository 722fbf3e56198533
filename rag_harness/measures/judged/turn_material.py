"""An answer to a turn of a conversation, with what was said before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from rag_harness.measures.judged.criteria import MaterialOfCase
from rag_harness.measures.judged.opinion import Material
from rag_harness.types import Case, Message

MOST_SAID = 12_000
"""The most characters of what was said before that a judge is shown, whole messages of the newest turns."""
LONGEST_MESSAGE = 4_000
"""The most characters of one message; of a longer one the beginning is shown."""
_CUT = " […]"
CORRECTION, UNDERSPECIFIED = "correction", "underspecified"
"""Kinds of turns that measures ask about: the user takes something wrong for granted; the question leaves open what it
is about."""
_TURN_KIND = "turn_kind"


@dataclass(frozen=True, slots=True)
class MaterialOfTurn(MaterialOfCase):
    """An answer to a turn.

    ``question`` is the turn's own words; ``contexts`` are those of this turn alone.

    Attributes:
        said: what was said before, the oldest first: as much of it as a judge is shown.
        left_out: how many older messages a judge is not shown.
        kinds: which of the kinds that measures ask about the turn is of.
    """

    said: tuple[Message, ...] = ()
    left_out: int = 0
    kinds: frozenset[str] = frozenset()


def turn_material(material: Material, history: Sequence[Message], kinds: frozenset[str]) -> Material:
    """Return the material of a turn; the same material where nothing was said before and it is of no kind."""
    if not history and not kinds:
        return material
    said = newest(history)
    plain = {each.name: getattr(material, each.name) for each in fields(material)}
    return MaterialOfTurn(**plain, said=said, left_out=len(history) - len(said), kinds=kinds)


def kinds_of(case: Case) -> frozenset[str]:
    """Return which of the kinds that measures ask about a case is of: its ``turn_kind``, or its query type."""
    return kinds_named(case.query_type, str(case.metadata.get(_TURN_KIND, "")))


def kinds_named(*names: str) -> frozenset[str]:
    """Return which of ``names`` are kinds that measures ask about."""
    return frozenset({CORRECTION, UNDERSPECIFIED}.intersection(names))


def said_before(material: Material) -> tuple[Message, ...]:
    """Return what was said before an answer; empty where it answers no turn, or the first one."""
    return material.said if isinstance(material, MaterialOfTurn) else ()


def newest(history: Sequence[Message]) -> tuple[Message, ...]:
    """Return the newest messages that a judge is shown: as many whole ones as have room.

    The newest is there in any case.
    """
    kept: list[Message] = []
    room = MOST_SAID
    for each in reversed(history):
        shown = Message(each.role, _shortened(each.content))
        room -= len(shown.content)
        if room < 0 and kept:
            break
        kept.insert(0, shown)
    return tuple(kept)


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_MESSAGE else text[: LONGEST_MESSAGE - len(_CUT)] + _CUT
