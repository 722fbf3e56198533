"""Turns about the things of tables: another attribute of the same thing, the same attribute of another thing."""

from __future__ import annotations

from collections.abc import Iterator

from rag_harness.authoring.questions.compared import MORE, figure_in_cell, is_near
from rag_harness.authoring.questions.conversing.asking import asking
from rag_harness.authoring.questions.conversing.relations import references, short_name
from rag_harness.authoring.questions.conversing.short_words import (
    answered,
    attribute_of_it,
    back_to,
    is_plural,
    of_another,
)
from rag_harness.authoring.questions.conversing.talk import Focus, NextTurn, Talk
from rag_harness.authoring.questions.conversing.turn_draft import BACK, COMPARE, CORRECTION, FOLLOW_UP, TurnDraft
from rag_harness.authoring.questions.conversing.wrong_figures import wrong_figure
from rag_harness.authoring.questions.draft import Draft
from rag_harness.authoring.questions.facts import Fact
from rag_harness.authoring.questions.selecting import shuffled
from rag_harness.authoring.questions.tables import question_of
from rag_harness.authoring.questions.wording import sentence
from rag_harness.types import Evidence


def other_attribute(talk: Talk) -> Iterator[NextTurn]:
    """Ask for another attribute of the thing, without its name."""
    focus = talk.focus
    for fact in _free_facts(talk, focus):
        text = attribute_of_it(fact.parts["attribute"], talk.chance)
        yield from asking(talk, FOLLOW_UP, text, fact, focus.thing)


def other_thing(talk: Talk) -> Iterator[NextTurn]:
    """Ask the last question of another thing of the table: of the other one, or of the cheaper one."""
    focus = talk.focus
    if not (focus.table and focus.attribute and focus.is_one):
        return
    for name, is_named, thing in references(focus, talk.chance):
        fact = focus.table.facts[thing].get(focus.attribute)
        if fact and talk.is_free(fact):
            text, left_out = of_another(name, talk.chance), focus.attribute if is_named else focus.thing
            yield from asking(talk, FOLLOW_UP, text, fact, left_out)


def choice(talk: Talk) -> Iterator[NextTurn]:
    """Say which of several things is meant, after it had to be asked back."""
    for fact in shuffled(talk.focus.choices, talk.chance):
        if talk.is_free(fact):
            text = answered(short_name(fact.parts["thing"]), talk.chance)
            yield from asking(talk, FOLLOW_UP, text, fact, fact.parts["attribute"], is_bare=False)


def thing_again(talk: Talk) -> Iterator[NextTurn]:
    """Come back to the first thing, by its name or as what was asked first."""
    first = talk.focuses[0]
    for fact in _free_facts(talk, first):
        name = first.thing if talk.chance.random() < 0.5 else ""
        text = back_to(name, attribute_of_it(fact.parts["attribute"], talk.chance), talk.chance)
        yield from asking(talk, BACK, text, fact, "" if name else first.thing, is_bare=not name)


def wrong_cell(talk: Talk) -> Iterator[NextTurn]:
    """State an attribute of the thing with another figure."""
    focus = talk.focus
    for fact in _free_facts(talk, focus):
        wrong, attribute = wrong_figure(fact.answer), fact.parts["attribute"]
        if not wrong:
            continue
        be = "are" if is_plural(attribute) else "is"
        tag = talk.chance.choice(("right", "aren't they" if be == "are" else "isn't it"))
        text = sentence(f"{talk.chance.choice(('so', 'and'))} the {attribute} {be} {wrong}, {tag}")
        claim = question_of(attribute, focus.thing).removeprefix(f"what {be} ")
        plain = sentence(f"am I right that {claim} {be} {wrong}")
        evidence = (Evidence(fact.doc_id, fact.quote),)
        truth = f"No, not {wrong}. {fact.said}."
        alone = Draft("direct", plain, plain, truth, fact.answer, evidence, (fact.kind,))
        yield NextTurn(TurnDraft(CORRECTION, text, alone, focus.thing), talk.sources.focus_of(fact), (fact,))


def comparison_with_other(talk: Talk) -> Iterator[NextTurn]:
    """Ask whether a value is higher than that of the other thing, before that was told."""
    focus = talk.focus
    if not (focus.table and focus.attribute and focus.is_one and focus.fact):
        return
    for name, is_named, thing in references(focus, talk.chance):
        other = focus.table.facts[thing].get(focus.attribute)
        if other and talk.is_free(other) and _are_comparable(focus.fact, other):
            text = sentence(f"{talk.chance.choice(('is that more than for', 'and is that more than for'))} {name}")
            left_out = _words_of(focus.thing, thing) if is_named else focus.thing
            turn = TurnDraft(COMPARE, text, _higher(focus, other), left_out, is_bare=not is_named)
            yield NextTurn(turn, focus.unclear(), (other,))


def comparison_of_both(talk: Talk) -> Iterator[NextTurn]:
    """Ask which of two things has more of what was asked of both."""
    if len(talk.focuses) < 2:
        return
    before, focus = talk.focuses[-2:]
    one, other = before.fact, focus.fact
    if not (one and other and focus.table and focus.attribute and before.thing in focus.table.facts):
        return
    if (
        one.doc_id != other.doc_id
        or before.attribute != focus.attribute
        or before.thing == focus.thing
        or not _are_comparable(one, other)
    ):
        return
    more = MORE.get(focus.attribute, f"has the higher {focus.attribute}")
    text = sentence(talk.chance.choice((f"which of the two {more}", f"so which one {more}")))
    things = [before.thing, focus.thing]
    figures = [figure_in_cell(fact) for fact in (one, other)]
    winner = things[0] if figures[0] and figures[1] and figures[0][2] > figures[1][2] else things[1]
    truth = f"{winner[:1].upper()}{winner[1:]} {more}: {one.said}; {other.said}."
    plain = sentence(f"which {more}, {things[0]} or {things[1]}")
    turn = TurnDraft(COMPARE, text, _of_two(plain, truth, one, other), " ".join(things))
    yield NextTurn(turn, focus.unclear())


def _higher(focus: Focus, other: Fact) -> Draft:
    fact = focus.fact
    assert fact is not None
    one, two = figure_in_cell(fact), figure_in_cell(other)
    said = question_of(focus.attribute, focus.thing)
    joins = " that of " if f" of {focus.thing}" in said else " for "
    claim = said.removeprefix("what is ").removeprefix("what are ")
    be = "are" if said.startswith("what are") else "is"
    plain = sentence(f"{be} {claim} higher than{joins}{other.parts['thing']}")
    truth = f"{'Yes' if one and two and one[2] > two[2] else 'No'}: {fact.said}; {other.said}."
    return _of_two(plain, truth, fact, other)


def _of_two(plain: str, truth: str, one: Fact, other: Fact) -> Draft:
    evidence = tuple(dict.fromkeys(Evidence(fact.doc_id, fact.quote) for fact in (one, other)))
    return Draft("direct", plain, plain, truth, f"{one.answer} {other.answer}", evidence, (one.kind, other.kind))


def _are_comparable(one: Fact, other: Fact) -> bool:
    first, second = figure_in_cell(one), figure_in_cell(other)
    return first is not None and second is not None and first[:2] == second[:2] and is_near(first[2], second[2])


def _words_of(thing: str, other: str) -> str:
    """Return the words of a thing that another has not."""
    return " ".join(word for word in thing.split() if word not in other.split())


def _free_facts(talk: Talk, focus: Focus) -> list[Fact]:
    """Return the facts of the thing that were not asked for, in a random order."""
    if focus.table is None or not focus.is_one:
        return []
    return [fact for fact in shuffled(list(focus.table.facts[focus.thing].values()), talk.chance) if talk.is_free(fact)]
