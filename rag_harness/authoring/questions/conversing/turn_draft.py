"""A turn before it is a row: what the user says, and the question that stands alone with its gold."""

from __future__ import annotations

from dataclasses import dataclass

from rag_harness.authoring.questions.draft import Draft

FIRST, FOLLOW_UP, SUBJECT_CHANGE, BACK = "first", "follow_up", "subject_change", "back"
COMPARE, CORRECTION, UNANSWERABLE, UNDERSPECIFIED = "compare", "correction", "unanswerable", "underspecified"
TURN_KINDS = (FIRST, FOLLOW_UP, SUBJECT_CHANGE, COMPARE, CORRECTION, UNANSWERABLE, UNDERSPECIFIED, BACK)
"""The kinds of turns, as ``metadata.turn_kind`` names them."""
FEWEST_TURNS, MOST_DRAFTED_TURNS = 3, 6
"""The fewest and the most turns of a drafted conversation."""


@dataclass(frozen=True, slots=True)
class TurnDraft:
    """A turn with its gold.

    Attributes:
        kind: one of TURN_KINDS.
        text: what the user says.
        alone: the question that stands alone, with ground truth and evidence.
        left_out: the words that ``text`` leaves to what was said before; it must have no content word of them.
    """

    kind: str
    text: str
    alone: Draft
    left_out: str = ""


@dataclass(frozen=True, slots=True)
class ConversationDraft:
    """The turns of a conversation, in their order."""

    turns: tuple[TurnDraft, ...]
