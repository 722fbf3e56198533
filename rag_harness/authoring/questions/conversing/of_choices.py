"""Turns that fit several things of a table: one has to ask back which is meant."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from rag_harness.authoring.questions.conversing.short_words import another_matter, of_another
from rag_harness.authoring.questions.conversing.talk import NextTurn, Talk
from rag_harness.authoring.questions.conversing.thing_tables import ThingTable
from rag_harness.authoring.questions.conversing.turn_draft import UNDERSPECIFIED, TurnDraft
from rag_harness.authoring.questions.draft import Draft
from rag_harness.authoring.questions.facts import Fact
from rag_harness.authoring.questions.selecting import shuffled
from rag_harness.authoring.questions.tables import question_of
from rag_harness.authoring.questions.wording import sentence
from rag_harness.types import Evidence

_MOST_CHOICES = 4


def which_one(talk: Talk) -> Iterator[NextTurn]:
    """Ask the last question of a kind of thing that the table has several of: "And for a tent?"."""
    focus = talk.focus
    if focus.table is None or not focus.attribute or not focus.is_one:
        return
    for kind, things in _kinds(focus.table):
        facts = _told(focus.table, things, focus.attribute, talk)
        if focus.thing not in things and facts:
            text = of_another(kind, talk.chance)
            yield _asking_back(text, kind, facts, talk)


def which_of_all(talk: Talk) -> Iterator[NextTurn]:
    """Ask, as another matter, for an attribute of things that share a name: "How heavy is the Ridge?"."""
    for page in shuffled(talk.collection.current, talk.chance)[:_PAGES]:
        for table in talk.sources.tables(page.doc_id) if page.doc_id != talk.focus.page.doc_id else ():
            for kind, things in _kinds(table):
                for attribute in shuffled(sorted(table.facts[things[0]]), talk.chance):
                    if facts := _told(table, things, attribute, talk):
                        yield _asking_back("", kind, facts, talk)


_PAGES = 12
"""How many pages are looked at for things that share a name."""


def _asking_back(text: str, kind: str, facts: Sequence[Fact], talk: Talk) -> NextTurn:
    """Return the turn; without ``text`` it is one about another matter."""
    names = [fact.parts["thing"] for fact in facts]
    listed = f"{', '.join(names[:-1])} or {names[-1]}"
    told = " ".join(f"{fact.said}." for fact in facts)
    plain = sentence(question_of(facts[0].parts["attribute"], kind))
    evidence = tuple(dict.fromkeys(Evidence(fact.doc_id, fact.quote) for fact in facts))
    alone = Draft(
        "direct",
        plain,
        plain,
        f"It has to be asked which one is meant: {listed}. {told}",
        " ".join(fact.answer for fact in facts),
        evidence,
        tuple(dict.fromkeys(fact.kind for fact in facts)),
    )
    focus = talk.focus if text else talk.sources.focus_of(facts[0])
    left_out = focus.attribute if text else ""
    said = text or another_matter(alone, talk.chance)
    return NextTurn(TurnDraft(UNDERSPECIFIED, said, alone, left_out, is_bare=False), focus.unclear(tuple(facts)))


def _told(table: ThingTable, things: Sequence[str], attribute: str, talk: Talk) -> list[Fact]:
    """Return the attribute of each of the things, if all of them tell it and differ."""
    facts = [table.facts[name][attribute] for name in things if attribute in table.facts[name]]
    differ = len({fact.answer.casefold() for fact in facts}) == len(things)
    return facts if differ and all(map(talk.is_free, facts)) else []


def _kinds(table: ThingTable) -> Iterator[tuple[str, list[str]]]:
    """Yield names that several things of a table share, with all things that have them.

    A last word ("a tent"), or the name of which only the last word differs ("the Ridge").
    """
    if table.size != len(table.facts):
        return  # a row that was not read might fit, too
    groups: dict[tuple[str, bool], list[str]] = defaultdict(list)
    for thing in table.facts:
        words = thing.removeprefix("the ").split()
        if len(words) > 1 and "(" not in thing:
            groups[words[-1], True].append(thing)
            groups[" ".join(words[:-1]), False].append(thing)
    for (name, is_last), things in groups.items():
        having = [thing for thing in table.facts if name.casefold() in thing.casefold()]
        if 2 <= len(things) <= _MOST_CHOICES and having == things and name.isalpha() and len(name) > 2:
            yield _called(name, is_last), things


def _called(name: str, is_last: bool) -> str:
    if not is_last or not name.islower():
        return f"the {name}"
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"
