"""What tables tell of many things, asked of a thing like them of which nothing tells it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from random import Random

from rag_harness.authoring.questions.collection import Collection
from rag_harness.authoring.questions.facts import Fact
from rag_harness.authoring.questions.selecting import shuffled
from rag_harness.authoring.questions.silence import nothing_says
from rag_harness.authoring.questions.tables import question_of
from rag_harness.authoring.questions.wording import sentence
from rag_harness.words.terms import terms

IN_COMMON = 2
"""Attributes that two things share, for what is told of the one to be asked of the other."""
PAGES = 3
"""Pages whose tables tell an attribute, from which people may ask it of anything like."""
_THINGS, _TRIED = 4, 6
"""Things of a page, and attributes of a thing, that are tried."""


class Usual:
    """Remembers what the tables of the pages so far tell of what.

    Args:
        collection: the pages are of.
    """

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._together: set[frozenset[str]] = set()
        self._pages: dict[str, set[str]] = defaultdict(set)

    def asked(self, facts: Sequence[Fact], chance: Random) -> list[tuple[str, Fact]]:
        """Return questions for things of a page, each with a fact about it; then the page's own tables are known."""
        things: dict[str, Fact] = {}
        own: dict[str, set[str]] = defaultdict(set)
        for fact in facts:
            if "thing" in fact.parts:
                things.setdefault(fact.parts["thing"], fact)
                own[fact.parts["thing"]].add(fact.parts["attribute"])
        found = list(self._of(things, own, chance))
        self._together.update(map(frozenset, own.values()))
        for fact in things.values():
            for attribute in own[fact.parts["thing"]]:
                self._pages[attribute].add(fact.doc_id)
        return found

    def _of(self, things: dict[str, Fact], own: dict[str, set[str]], chance: Random) -> Iterator[tuple[str, Fact]]:
        known = set().union(*own.values())
        for thing, fact in list(things.items())[:_THINGS]:
            near = {name for told in self._together if len(told & own[thing]) >= IN_COMMON for name in told}
            usual = sorted(name for name in near - known if len(self._pages[name]) >= PAGES)
            for attribute in shuffled(usual, chance)[:_TRIED]:
                if nothing_says(thing, terms(attribute), self._collection):
                    yield sentence(question_of(attribute, thing)), fact
                    break
