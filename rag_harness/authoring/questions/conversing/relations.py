"""How another thing of a table is called by someone who speaks of one of them: the other one, the cheaper one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random
from typing import NamedTuple

from rag_harness.authoring.questions.compared import figure_in_cell
from rag_harness.authoring.questions.conversing.talk import Focus
from rag_harness.authoring.questions.conversing.thing_tables import ThingTable
from rag_harness.authoring.questions.selecting import shuffled

_LESS_AND_MORE = {
    "price": ("cheaper", "more expensive"), "cost": ("cheaper", "more expensive"), "fee": ("cheaper", "more expensive"),
    "weight": ("lighter", "heavier"), "height": ("lower", "taller"), "length": ("shorter", "longer"),
}  # fmt: skip
_LEAST_AND_MOST = {
    "price": ("cheapest", "most expensive"), "cost": ("cheapest", "most expensive"),
    "fee": ("cheapest", "most expensive"), "weight": ("lightest", "heaviest"), "height": ("lowest", "tallest"),
    "length": ("shortest", "longest"),
}  # fmt: skip


class Reference(NamedTuple):
    """How a thing is called, whether that is its own name, and the thing."""

    name: str
    is_named: bool
    thing: str


def references(focus: Focus, chance: Random) -> Iterator[Reference]:
    """Yield ways to speak of other things of the table of what a conversation is about, without names first."""
    table = focus.table
    if table is None:
        return
    others = table.others(focus.thing)
    if table.size == 2:
        related = [f"the {word} one" for word in _related(table, focus, others)]
        yield from (
            Reference(name, False, others[0]) for name in shuffled(["the other one", *related], chance) if others
        )
        return
    yield from shuffled([each for each in _extremes(table, focus.attribute) if each.thing != focus.thing], chance)
    yield from (Reference(short_name(other), True, other) for other in shuffled(others, chance))


def _related(table: ThingTable, focus: Focus, others: list[str]) -> Iterator[str]:
    for attribute, (less, more) in _LESS_AND_MORE.items():
        pair = [table.facts[name].get(attribute) for name in (focus.thing, *others)]
        figures = [figure_in_cell(fact) for fact in pair if fact]
        if attribute == focus.attribute or len(figures) != 2 or not (figures[0] and figures[1]):
            continue
        if figures[0][:2] == figures[1][:2] and figures[0][2] != figures[1][2]:
            yield more if figures[1][2] > figures[0][2] else less


def _extremes(table: ThingTable, asked: str) -> Iterator[Reference]:
    """Yield the things that have least and most of something, where all things of the table tell it."""
    for attribute, words in _LEAST_AND_MOST.items():
        figures = {name: figure_in_cell(facts[attribute]) for name, facts in table.facts.items() if attribute in facts}
        told = {name: figure for name, figure in figures.items() if figure}
        if attribute == asked or len(told) < table.size or len({figure[:2] for figure in told.values()}) != 1:
            continue
        numbers = sorted(figure[2] for figure in told.values())
        for word, number, next_to in ((words[0], numbers[0], numbers[1]), (words[1], numbers[-1], numbers[-2])):
            if number != next_to:
                name = next(name for name, figure in told.items() if figure[2] == number)
                yield Reference(f"the {word} one", False, name)


def short_name(thing: str) -> str:
    """Return a thing's name without what stands in brackets or behind a dash."""
    return re.split(r" [–—-] |\s\(", thing, maxsplit=1)[0]
