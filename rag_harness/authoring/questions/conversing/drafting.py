"""Drafts conversations: each begins with a question that stands alone, and goes on as far as the page bears it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from random import Random

from rag_harness.authoring.questions.conversing.asking import openings
from rag_harness.authoring.questions.conversing.of_choices import which_of_all, which_one
from rag_harness.authoring.questions.conversing.of_prose import before_that, more_of_page, page_again, wrong_statement
from rag_harness.authoring.questions.conversing.of_tables import (
    choice,
    comparison_of_both,
    comparison_with_other,
    other_attribute,
    other_thing,
    thing_again,
    wrong_cell,
)
from rag_harness.authoring.questions.conversing.short_words import another_matter
from rag_harness.authoring.questions.conversing.subject_free import turn_fault
from rag_harness.authoring.questions.conversing.talk import NextTurn, Sources, Talk
from rag_harness.authoring.questions.conversing.turn_draft import (
    BACK,
    COMPARE,
    CORRECTION,
    FEWEST_TURNS,
    FOLLOW_UP,
    MOST_DRAFTED_TURNS,
    SUBJECT_CHANGE,
    UNANSWERABLE,
    UNDERSPECIFIED,
    ConversationDraft,
    TurnDraft,
)
from rag_harness.authoring.questions.conversing.unanswered import left_open, unsaid_attribute, unsaid_of_another
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
NO_FIRST = "pages state nothing that is not asked already and can be asked first"
NO_SECOND = "pages state nothing that a second turn could ask without saying what it is about"
NOT_ENGLISH = "pages are not in English, and by rules conversations are drafted of English ones alone"
NO_THIRD = "pages bear two turns and no third"
Maker = Callable[[Talk], Iterator[NextTurn]]
_MAKERS: Mapping[str, tuple[Maker, ...]] = {
    FOLLOW_UP: (other_thing, other_attribute, more_of_page),
    COMPARE: (before_that, comparison_of_both, comparison_with_other),
    CORRECTION: (wrong_cell, wrong_statement),
    UNANSWERABLE: (unsaid_attribute, unsaid_of_another, left_open),
    UNDERSPECIFIED: (which_one,),
    BACK: (thing_again, page_again),
}
WEIGHTS = {
    FOLLOW_UP: 4.0, SUBJECT_CHANGE: 1.0, COMPARE: 1.0, CORRECTION: 1.0, UNANSWERABLE: 0.8, UNDERSPECIFIED: 0.6,
    BACK: 0.6,
}  # fmt: skip
"""How often each kind is used relative to the others, where pages bear all of them."""


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
        self._kinds_used: Counter[str] = Counter()

    def draft(self, wanted: int) -> None:
        pages = shuffled(self._sources.collection.current, self._chance)
        ended: dict[str, str] = {}
        for _ in range(ROUNDS):
            for page in [page for page in pages if page.doc_id not in ended]:
                if len(self._found.drafts) == wanted:
                    return
                why = self._of_page(page)
                ended |= {page.doc_id: why} if why else {}
        self._found.ended.update(ended.values())

    def _of_page(self, page: Document) -> str:
        """Keep a conversation that begins on a page; return why there is none, if there is none."""
        why = NO_FIRST
        opened = (step for step in openings(page, self._talk()) if self._passes(step.turn))
        for step in islice(opened, _OPENED):
            for is_plain in (False, True):
                talk = self._talk()
                talk.take(step)
                self._go_on(talk, is_plain)
                if len(talk.turns) >= FEWEST_TURNS:
                    self._keep(talk)
                    return ""
            why = NO_SECOND if len(talk.turns) == 1 else NO_THIRD
        return why

    def _talk(self) -> Talk:
        return Talk(self._sources, self._chance)

    def _keep(self, talk: Talk) -> None:
        self._sources.used |= talk.own
        for turn in talk.turns:
            self._taken.add(turn.alone)
            self._kinds_used[turn.kind] += 1
        self._found.drafts.append(ConversationDraft(tuple(talk.turns)))

    def _go_on(self, talk: Talk, is_plain: bool) -> None:
        """Add turns. A plain conversation has follow-ups where it can: after a comparison "it" is unclear."""
        length = self._chance.randint(FEWEST_TURNS, MOST_DRAFTED_TURNS)
        while len(talk.turns) < length:
            kinds = sorted(self._kinds(talk), key=lambda kind: is_plain and kind != FOLLOW_UP)
            step = next(filter(None, (self._next(kind, talk) for kind in kinds)), None)
            if step is None:
                return
            talk.take(step)

    def _kinds(self, talk: Talk) -> list[str]:
        """Return the kinds of turns that could come next, the one that was used least first."""
        if talk.focus.choices:
            return [FOLLOW_UP]
        left = {kind for kind in WEIGHTS if kind == FOLLOW_UP or not talk.said(kind)}
        if not talk.turns[-1].needs_history:  # nothing was said yet about what the last turn has begun
            left.discard(SUBJECT_CHANGE)
        if talk.focus.page.doc_id == talk.focuses[0].page.doc_id:
            left.discard(BACK)
        return sorted(left, key=lambda kind: (self._kinds_used[kind] / WEIGHTS[kind], kind))

    def _next(self, kind: str, talk: Talk) -> NextTurn | None:
        if kind == SUBJECT_CHANGE:
            return self._change(talk)
        makers = (choice,) if talk.focus.choices else _MAKERS[kind]
        if kind == UNDERSPECIFIED and not talk.said(SUBJECT_CHANGE) and talk.turns[-1].needs_history:
            makers = (*makers, which_of_all)
        return next(filter(None, (self._first_that_passes(maker, talk) for maker in makers)), None)

    def _change(self, talk: Talk) -> NextTurn | None:
        known = {focus.page.doc_id for focus in talk.focuses}
        pages = [page for page in self._sources.collection.current if page.doc_id not in known]
        for page in shuffled(pages, self._chance)[:_TRIED]:
            for step in islice(openings(page, talk), _TRIED):
                if self._passes(step.turn):
                    alone = step.turn.alone
                    turn = TurnDraft(SUBJECT_CHANGE, another_matter(alone, self._chance), alone)
                    return step._replace(turn=turn)
        return None

    def _first_that_passes(self, maker: Maker, talk: Talk) -> NextTurn | None:
        said = TakenQuestions()
        for turn in talk.turns:
            said.add(turn.alone)
        tried = (step for step in islice(maker(talk), _TRIED) if not said.fault_of(step.turn.alone))
        return next((step for step in tried if self._passes(step.turn)), None)

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
        _Drafter(Sources(own, Random(f"{seed} versions")), taken, found, seed).draft(wanted)
    found.short = wanted - len(found.drafts)
    foreign = len(collection.documents) - (len(own.documents) if own else 0)
    if found.short and foreign:
        found.ended[NOT_ENGLISH] += foreign
    return found
