"""A turn before it is a row: what the user says, and the question that stands alone with its gold."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

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
        left_out: what ``text`` leaves to the turns before it; it must have no content word of that. Empty if it says
            all itself.
        is_bare: whether ``text`` names no thing at all, so that its words must not lead to its page.
    """

    kind: str
    text: str
    alone: Draft
    left_out: str = ""
    is_bare: bool = True

    @property
    def needs_history(self) -> bool:
        """Whether the turn leaves something to the turns before it."""
        return bool(self.left_out)

    @property
    def near_pages(self) -> tuple[str, ...]:
        """The pages of its evidence; of a question that nothing answers, the page that is near."""
        return self.alone.pages or (str(self.alone.metadata.get("nearest_page", "")),)


@dataclass(frozen=True, slots=True)
class ConversationDraft:
    """The turns of a conversation, in their order."""

    turns: tuple[TurnDraft, ...]


@dataclass
class GeneratedConversations:
    """The conversations, and why turns were dropped.

    ``short`` is how many are missing; ``stopped`` says why no more were asked for.
    """

    drafts: list[ConversationDraft] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    short: int = 0
    stopped: str = ""
