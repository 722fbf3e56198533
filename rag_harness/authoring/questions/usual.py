"""Questions about a thing for attributes that tables state only about similar things."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from random import Random

from rag_harness.authoring.questions.document_collection import DocumentCollection
from rag_harness.authoring.questions.facts import Fact
from rag_harness.authoring.questions.selecting import shuffled
from rag_harness.authoring.questions.silence import nothing_says
from rag_harness.authoring.questions.tables import question_of
from rag_harness.authoring.questions.wording import sentence
from rag_harness.words.terms import terms

IN_COMMON = 2
"""How many attributes two things must share. Only then is an attribute of one asked about the other."""
PAGES = 3
"""How many pages must have an attribute in a table before it is asked about similar things."""
_THINGS, _TRIED = 4, 6
"""How many things of a page, and attributes of a thing, are tried."""


class Usual:
    """Remembers which things and attributes the tables of earlier pages have.

    Args:
        collection: the documents of the pages.
    """

    def __init__(self, collection: DocumentCollection) -> None:
        self._collection = collection
        self._together: set[frozenset[str]] = set()
        self._pages: dict[str, set[str]] = defaultdict(set)

    def asked(self, facts: Sequence[Fact], chance: Random) -> list[tuple[str, Fact]]:
        """Return questions about things of a page, each with a fact about it. Then remember the page's own tables."""
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
