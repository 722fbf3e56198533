"""Turns about the things of tables: another attribute of the same thing, the same attribute of another thing."""

from __future__ import annotations

from collections.abc import Iterator

from rag_harness.authoring.questions.conversing.talk import NextTurn, Talk
from rag_harness.authoring.questions.conversing.turn_draft import FOLLOW_UP, TurnDraft
from rag_harness.authoring.questions.direct import drafts_of
from rag_harness.authoring.questions.facts import Fact
from rag_harness.authoring.questions.selecting import shuffled
from rag_harness.authoring.questions.wording import sentence

_OF_IT = ("and the {0}", "what about the {0}", "and what is the {0}")


def other_attribute(talk: Talk) -> Iterator[NextTurn]:
    """Ask for another attribute of the thing, without its name."""
    focus = talk.focus
    if focus is None or focus.table is None or not focus.is_one:
        return
    for attribute, fact in shuffled(list(focus.table.facts[focus.thing].items()), talk.chance):
        if talk.is_free(fact):
            text = sentence(talk.chance.choice(_OF_IT).format(attribute))
            yield from _asked(talk, FOLLOW_UP, text, fact, focus.thing)


def _asked(talk: Talk, kind: str, text: str, fact: Fact, left_out: str) -> Iterator[NextTurn]:
    """Yield the turn with each question that stands alone for the fact."""
    for alone in drafts_of(fact, talk.sources.collection, talk.chance):
        yield NextTurn(TurnDraft(kind, text, alone, left_out), talk.sources.focus_of(fact), (fact,))
