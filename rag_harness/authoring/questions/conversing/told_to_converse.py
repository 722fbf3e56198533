"""The tasks for a model that writes conversations: the passages, and the kinds of turns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from rag_harness.authoring.questions.conversing.turn_draft import (
    BACK,
    COMPARE,
    CORRECTION,
    FEWEST_TURNS,
    FIRST,
    FOLLOW_UP,
    MOST_DRAFTED_TURNS,
    SUBJECT_CHANGE,
    UNANSWERABLE,
    UNDERSPECIFIED,
)
from rag_harness.authoring.questions.document_collection import DocumentCollection
from rag_harness.authoring.questions.links import neighbours
from rag_harness.authoring.questions.selecting import shuffled
from rag_harness.authoring.questions.told_to_ask import ROUNDS, chunks_by_page
from rag_harness.models.prompts import Prompts
from rag_harness.types import Chunk, Hit, Message

_ASKED = "Write a conversation of {turns} turns of these kinds, in this order: {kinds}."
_OF_PAGE = 3
"""How many chunks of a page a conversation is about."""
_WEIGHTS = {
    FOLLOW_UP: 4.0, SUBJECT_CHANGE: 1.0, COMPARE: 1.0, CORRECTION: 1.0, UNANSWERABLE: 0.8, UNDERSPECIFIED: 0.6,
    BACK: 0.6,
}  # fmt: skip
"""How often each kind is asked for relative to the others."""


@dataclass(frozen=True, slots=True)
class ConversationTask:
    """A task for one conversation: the chunks that it is about, and the kinds of its turns."""

    chunks: tuple[Chunk, ...]
    kinds: tuple[str, ...]

    def messages(self, prompts: Prompts) -> list[Message]:
        """Return the messages for the model."""
        hits = [Hit(chunk, 0.0, number) for number, chunk in enumerate(self.chunks, 1)]
        asked = _ASKED.format(turns=len(self.kinds), kinds=", ".join(self.kinds))
        return prompts.messages(asked, hits)


def conversation_tasks(collection: DocumentCollection, seed: int) -> Iterator[ConversationTask]:
    """Yield tasks, one page after the other in a random order, then each page again with its next chunks."""
    chance = Random(f"{seed} conversations llm")
    parts, used = chunks_by_page(collection), Counter[str]()
    pages = shuffled([page for page in collection.current if parts.get(page.doc_id)], chance)
    for turn in range(ROUNDS):
        for page in pages:
            own = parts[page.doc_id][_OF_PAGE * turn : _OF_PAGE * (turn + 1)]
            if not own:
                continue
            near = [name for name in neighbours(page, collection) if name in parts]
            kinds = _kinds(bool(near), used, chance)
            other = parts[near[turn % len(near)]][:1] if SUBJECT_CHANGE in kinds else []
            yield ConversationTask((*own, *other), kinds)


def _kinds(may_change: bool, used: Counter[str], chance: Random) -> tuple[str, ...]:
    """Return the kinds of turns, those first that were used least; ``back`` comes behind a change."""
    kinds, length = [FIRST, FOLLOW_UP], chance.randint(FEWEST_TURNS, MOST_DRAFTED_TURNS)
    while len(kinds) < length:
        fitting = {kind for kind in _WEIGHTS if kind == FOLLOW_UP or kind not in kinds}
        if not may_change:
            fitting.discard(SUBJECT_CHANGE)
        if SUBJECT_CHANGE not in kinds[:-1]:
            fitting.discard(BACK)
        kind = min(fitting, key=lambda each: (used[each] / _WEIGHTS[each], each))
        used[kind] += 1
        kinds.append(kind)
    return tuple(kinds)
