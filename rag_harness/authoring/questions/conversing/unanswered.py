"""Turns that no page answers: of the same thing, of another of its kind, and what the last statement leaves open."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from rag_harness.authoring.questions.compared import figure_in_cell
from rag_harness.authoring.questions.conversing.short_words import attribute_of_it, of_another
from rag_harness.authoring.questions.conversing.talk import Focus, NextTurn, Talk
from rag_harness.authoring.questions.conversing.turn_draft import UNANSWERABLE, TurnDraft
from rag_harness.authoring.questions.draft import LEFT_OPEN
from rag_harness.authoring.questions.negative import negative_draft
from rag_harness.authoring.questions.quotable_passages import seen
from rag_harness.authoring.questions.selecting import shuffled
from rag_harness.authoring.questions.siblings import swapped
from rag_harness.authoring.questions.silence import RAREST, nothing_says
from rag_harness.authoring.questions.tables import question_of
from rag_harness.authoring.questions.unsaid import unsaid
from rag_harness.authoring.questions.wording import question_of as question_for
from rag_harness.authoring.questions.wording import sentence
from rag_harness.authoring.questions.wordlists import word_set

_TRIED = 12
_SAID_SHORT = {
    "How long until": "And how long does that take?",
    "Is there a charge if": "Is there a charge for that?",
    "How many tokens are used up when": "How many tokens does that use up?",
    "Is there a limit on how often": "Is there a limit on how often that happens?",
}
"""How what a statement leaves open is asked right after it, by the beginning of the question that stands alone."""


_WAITED_FOR = word_set(
    """
    arrive arrives book booked cancel cancelled charge charged close closed come comes deliver delivered end ends
    lifted move moves pay paid receive refund refunded release released replace replaced return returned send sent
    transfer transferred
    """
)
"""Verbs of what people wait for. Nobody asks how long it takes until a call fails."""


def unsaid_attribute(talk: Talk) -> Iterator[NextTurn]:
    """Ask for an attribute that like things have, and that nothing says of this one."""
    focus = talk.focus
    if focus.table is None or not focus.is_one:
        return
    told = focus.table.facts[focus.thing]
    known = {name for table in talk.sources.tables(focus.page.doc_id) for own in table.facts.values() for name in own}
    units = {figure[1] for fact in told.values() if (figure := figure_in_cell(fact)) and figure[1]}
    for attribute in shuffled(sorted(talk.sources.attributes.of_like_things(frozenset(told)) - known), talk.chance):
        # "Output: 600 W" tells the power, whatever it is called.
        is_told = units & talk.sources.attributes.units(attribute)
        if not is_told and nothing_says(focus.thing, talk.collection.terms(attribute), talk.collection):
            plain = sentence(question_of(attribute, focus.thing))
            alone = negative_draft(plain, focus.page.doc_id, "cell", talk.collection, talk.chance)
            turn = TurnDraft(UNANSWERABLE, attribute_of_it(attribute, talk.chance), alone, focus.thing)
            yield NextTurn(turn, _as_it_was(talk))


def unsaid_of_another(talk: Talk) -> Iterator[NextTurn]:
    """Ask the last question of another thing of its kind, of which nothing says that."""
    fact = talk.focus.fact
    if fact is None or not talk.focus.is_one:
        return
    asked = question_for(fact, talk.chance)
    about = f"{fact.parts.get('subject', '')} {talk.focus.name}"
    page = talk.focus.page.text
    for plain, other, thing in shuffled(list(swapped(asked, talk.sources.siblings)), talk.chance)[:_TRIED]:
        rest = talk.collection.terms(asked) - talk.collection.terms(thing)
        if thing not in about or other in talk.sources.titles:  # a page of its own may say it in other words
            continue
        near = other in page or (fact.kind != "cell" and other in talk.collection.names)
        if near and len(rest) >= RAREST and nothing_says(other, rest, talk.collection):
            alone = negative_draft(plain, fact.doc_id, fact.kind, talk.collection, talk.chance)
            left_out = asked.replace(thing, "")
            turn = TurnDraft(UNANSWERABLE, of_another(other, talk.chance), alone, left_out, is_bare=False)
            yield NextTurn(turn, _as_it_was(talk).unclear())


def left_open(talk: Talk) -> Iterator[NextTurn]:
    """Ask what the last statement leaves open: how long it takes, whether it costs anything."""
    fact = talk.focus.fact
    used = Counter(talk.sources.left_open)
    plain = unsaid(fact, talk.collection, used) if fact else None
    text = next((short for begins, short in _SAID_SHORT.items() if plain and plain.startswith(begins)), "")
    if plain and plain.startswith("How long") and not _WAITED_FOR & set(plain.rstrip("?").split()):
        return
    if fact and plain and text:
        alone = negative_draft(plain, fact.doc_id, LEFT_OPEN, talk.collection, talk.chance)
        left_out = seen(talk.focus.page.title)
        (asked,) = used - talk.sources.left_open
        yield NextTurn(TurnDraft(UNANSWERABLE, text, alone, left_out), _as_it_was(talk), left_open=asked)


def _as_it_was(talk: Talk) -> Focus:
    return replace(talk.focus, attribute="", fact=None)
