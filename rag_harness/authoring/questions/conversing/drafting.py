"""Drafts conversations: each begins with a question that stands alone, and goes on as far as the page bears it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from random import Random

from rag_harness.authoring.questions.conversing.of_tables import other_attribute
from rag_harness.authoring.questions.conversing.subject_free import turn_fault
from rag_harness.authoring.questions.conversing.talk import NextTurn, Sources, Talk
from rag_harness.authoring.questions.conversing.turn_draft import (
    FEWEST_TURNS,
    FIRST,
    FOLLOW_UP,
    MOST_DRAFTED_TURNS,
    ConversationDraft,
    TurnDraft,
)
from rag_harness.authoring.questions.direct import drafts_of
from rag_harness.authoring.questions.document_collection import DocumentCollection
from rag_harness.authoring.questions.draft import Draft
from rag_harness.authoring.questions.likeness import TakenQuestions
from rag_harness.authoring.questions.selecting import shuffled
from rag_harness.types import Document
from rag_harness.words.languages import ENGLISH

ROUNDS = 4
"""The most conversations that begin on one page."""
_TRIED = 8
"""The most candidates for a turn of one kind."""
_OPENED = 6
"""The most first questions of a page that are tried."""
Maker = Callable[[Talk], Iterator[NextTurn]]
_MAKERS: dict[str, tuple[Maker, ...]] = {FOLLOW_UP: (other_attribute,)}


@dataclass
class GeneratedConversations:
    """The conversations, why turns were dropped, and why pages give no more.

    ``short`` is how many are missing; ``stopped`` says why no more were asked for.
    """

    drafts: list[ConversationDraft] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    ended: Counter[str] = field(default_factory=Counter)
    short: int = 0
    stopped: str = ""


class _Drafter:
    def __init__(self, sources: Sources, taken: TakenQuestions, found: GeneratedConversations, seed: int) -> None:
        self._sources, self._taken, self._found = sources, taken, found
        self._chance = Random(f"{seed} conversations")

    def draft(self, wanted: int) -> None:
        pages = shuffled(self._sources.collection.current, self._chance)
        for _ in range(ROUNDS):
            for page in pages:
                if len(self._found.drafts) == wanted:
                    return
                self._of_page(page)

    def _of_page(self, page: Document) -> None:
        for step in islice(self._openings(page), _OPENED):
            talk = Talk(self._sources, self._chance)
            talk.take(step)
            self._go_on(talk)
            if len(talk.turns) >= FEWEST_TURNS:
                self._keep(talk)
                return

    def _keep(self, talk: Talk) -> None:
        self._sources.used |= talk.own
        for turn in talk.turns:
            self._taken.add(turn.alone)
        self._found.drafts.append(ConversationDraft(tuple(talk.turns)))

    def _openings(self, page: Document) -> Iterator[NextTurn]:
        facts = [fact for fact in self._sources.collection.facts(page.doc_id)]
        talk = Talk(self._sources, self._chance)
        for fact in shuffled(facts, self._chance):
            if not talk.is_free(fact):
                continue
            for alone in drafts_of(fact, self._sources.collection, self._chance):
                turn = TurnDraft(FIRST, alone.text, alone)
                if self._passes(turn):
                    yield NextTurn(turn, self._sources.focus_of(fact), (fact,))
                    break

    def _go_on(self, talk: Talk) -> None:
        length = self._chance.randint(FEWEST_TURNS, MOST_DRAFTED_TURNS)
        while len(talk.turns) < length:
            step = next(filter(None, (self._first_that_passes(maker, talk) for maker in _MAKERS[FOLLOW_UP])), None)
            if step is None:
                return
            talk.take(step)

    def _first_that_passes(self, maker: Maker, talk: Talk) -> NextTurn | None:
        return next((step for step in islice(maker(talk), _TRIED) if self._passes(step.turn)), None)

    def _passes(self, turn: TurnDraft) -> bool:
        fault = turn_fault(turn, self._sources.collection) or self._taken.fault_of(turn.alone)
        if fault:
            self._found.dropped[fault] += 1
        return not fault


def make_conversations(
    collection: DocumentCollection,
    wanted: int,
    seed: int = 0,
    most_shared: float = 1.0,
    rejected: Sequence[Draft] = (),
    asked: Sequence[Draft] = (),
) -> GeneratedConversations:
    """Return conversations about the English documents; fewer than wanted if the text gives no more.

    The same seed gives the same conversations. ``most_shared`` and ``rejected`` are those of ``make_questions``.
    ``asked`` are questions that are asked beside them.
    """
    found = GeneratedConversations()
    own = collection.by_language.get(ENGLISH)
    if own is not None and wanted:
        taken = TakenQuestions(most_shared, own, rejected)
        for draft in asked:
            taken.add(draft)
        _Drafter(Sources(own), taken, found, seed).draft(wanted)
    found.short = wanted - len(found.drafts)
    return found
