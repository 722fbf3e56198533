"""A user without a model: a script over the scenario. It says nothing but what the scenario says, word for word.

It opens; gives the facts that an answer asks for; asks the next question when it has an answer; says a declined
question once more, with all it knows; tells what nobody asked for; and ends at the goal, in a loop, or when nothing is
left to say. The persona has no part in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rag_harness.types import Scenario
from rag_harness.users.moves import (
    GIVES_UP,
    Ends,
    Exchange,
    Move,
    Says,
    ends_by_rules,
    has_said,
    is_reached,
    questions_in,
)
from rag_harness.words.terms import terms, tokens

_POLITE = ("anything else", "something else", "help you", "let you know", "like to know more", "more information",
           "other questions", "further questions", "does that help", "does this help")  # fmt: skip
"""Parts of questions that ask for nothing."""
_KINDS = tuple(
    (frozenset(asking.split()), frozenset(told.split()))
    for asking, told in (
        ("many much old long", "one two three four five six seven eight nine ten twelve"),
        ("when day days date dates", "monday tuesday wednesday thursday friday saturday sunday today tomorrow weekend "
         "january february march april may june july august september october november december"),
    )
)  # fmt: skip
"""Words that ask for a number or a day, and words that tell one. A figure tells both."""


def scripted(scenario: Scenario, before: Sequence[Exchange]) -> Move:
    """Return what the user says after these turns, or why the conversation is over."""
    asks = [each for each in scenario.asks if not has_said(each, before)]
    if found := ends_by_rules(scenario, before, bool(asks)):
        return found
    said = next(_moves(scenario, before, asks), None)
    return Says(said) if said else Ends(_why_over(scenario, before[-1]))


def _moves(scenario: Scenario, before: Sequence[Exchange], asks: Sequence[str]) -> Iterator[str]:
    """Yield what could be said now, the best first. Nothing of it was said before."""
    last, known = before[-1], [each for each in scenario.facts if not has_said(each[1], before)]
    facts = [fact for _, fact in known]
    asked = [] if last.declined else [each for each in questions_in(last.reply) if _asks_for_something(each)]
    if asked and facts:
        told = [fact for cue, fact in known if any(_is_asked_for(cue, fact, each) for each in asked)]
        yield ", ".join(told or facts[:1])
    if last.declined and facts:
        yield f"{last.said} {', '.join(facts)}"
    yield from asks
    if facts and scenario.reached and not is_reached(scenario, before):
        yield ", ".join(facts)


def _why_over(scenario: Scenario, last: Exchange) -> str:
    if last.declined:
        return f"{GIVES_UP}: the answer declines"
    if scenario.reached:
        return f"{GIVES_UP}: nothing is left to ask, and the goal is not reached"
    return "all is asked"


def _asks_for_something(question: str) -> bool:
    said = question.casefold()
    return bool(terms(said)) and not any(each in said for each in _POLITE)


def _is_asked_for(cue: str, fact: str, question: str) -> bool:
    """Return whether a question asks for a fact: by a word of its cue or of the fact, or for a number or a day."""
    if terms(question) & (terms(fact) | terms(cue)):
        return True
    asked, told = (frozenset(each.casefold() for each in tokens(text)) for text in (question, fact))
    has_figure = any(each[0].isdigit() for each in told)
    return not cue and any(asked & asking and (told & telling or has_figure) for asking, telling in _KINDS)
