"""Pairs topics with things, each pair once: first a few topics for each thing, later the others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from random import Random

from rag_harness.authoring.kb.planning.templates import Axis, Domain, Topic

_TOGETHER = 3
"""How many pages in a row are about one thing. They can link to each other, and questions can need two of them."""


@dataclass(frozen=True, slots=True)
class Dealt:
    """A future page: its topic, and the names of its thing and of the thing's parts."""

    topic: Topic
    names: dict[str, str]


def deal(domain: Domain, count: int, seed: int) -> list[Dealt]:
    """Return ``count`` pages, or fewer if there are no more."""
    return list(islice(_dealt(domain, Random(f"{seed} {domain.name} deal")), count))


def _dealt(domain: Domain, chance: Random) -> Iterator[Dealt]:
    topics: dict[str, list[Topic]] = defaultdict(list)
    for topic in domain.topics:
        topics[topic.axis].append(topic)
    # An axis has as many turns as topics, so that a topic comes again only after nearly all others.
    turns = [(_of_axis(domain.axes[axis], own, chance), len(own)) for axis, own in topics.items()]
    while turns:
        taken = [(pages, length, list(islice(pages, length))) for pages, length in turns]
        for _, _, some in taken:
            yield from some
        turns = [(pages, length) for pages, length, some in taken if some]


def _of_axis(axis: Axis, topics: list[Topic], chance: Random) -> Iterator[Dealt]:
    topics = chance.sample(topics, len(topics))
    things = _things(axis, chance)
    for first in range(0, len(topics), _TOGETHER):
        for number, names in enumerate(things):
            for place in range(first, min(first + _TOGETHER, len(topics))):
                yield Dealt(topics[(_TOGETHER * number + place) % len(topics)], names)


def _things(axis: Axis, chance: Random) -> list[dict[str, str]]:
    """Return all things; neighbours in the list have no part in common."""
    (one, firsts), (other, seconds) = axis.parts.items()
    firsts, seconds = (tuple(chance.sample(words, len(words))) for words in (firsts, seconds))
    if len(firsts) > len(seconds):
        (one, firsts), (other, seconds) = (other, seconds), (one, firsts)
    return [
        _named(axis, {one: first, other: seconds[(place + turn) % len(seconds)]})
        for turn in range(len(seconds))
        for place, first in enumerate(firsts)
    ]


def _named(axis: Axis, parts: dict[str, str]) -> dict[str, str]:
    thing = axis.form.format(**parts)
    return {**parts, "thing": thing, "Thing": thing[:1].upper() + thing[1:]}
