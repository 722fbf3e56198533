"""A conversation while it is drafted: what was said, and what "it" is now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from random import Random
from typing import NamedTuple

from rag_harness.authoring.questions.conversing.thing_tables import ThingTable, tables_of
from rag_harness.authoring.questions.conversing.turn_draft import TurnDraft
from rag_harness.authoring.questions.document_collection import DocumentCollection
from rag_harness.authoring.questions.facts import Fact
from rag_harness.types import Document

FactKey = tuple[str, int, str, str]


@dataclass(frozen=True, slots=True)
class Focus:
    """What a conversation is about.

    Attributes:
        page: the page of the last answer.
        thing: the thing of a table that "it" is; empty in prose.
        attribute: what was asked of it last; empty if "and the other one?" would not be understood.
        table: the table with the thing.
        fact: the fact that was asked for last.
        is_one: whether "it" can be only one thing. After a comparison it could be either.
    """

    page: Document
    thing: str = ""
    attribute: str = ""
    table: ThingTable | None = None
    fact: Fact | None = None
    is_one: bool = True

    def unclear(self) -> Focus:
        """Return the focus after two things were named: "it" could be either."""
        return replace(self, attribute="", is_one=False)


class NextTurn(NamedTuple):
    """A turn that could come next, what the conversation is about after it, and the facts that it asks for."""

    turn: TurnDraft
    focus: Focus
    facts: tuple[Fact, ...]


@dataclass
class Talk:
    """A conversation under way.

    Attributes:
        sources: the documents, and which facts were asked for.
        chance: draws words and order.
        turns: what was said.
        focus: what the conversation is about now.
        first: what it was about at first.
    """

    sources: Sources
    chance: Random
    turns: list[TurnDraft] = field(default_factory=list)
    focus: Focus | None = None
    first: Focus | None = None
    own: set[FactKey] = field(default_factory=set)

    def take(self, step: NextTurn) -> None:
        """Add a turn."""
        self.turns.append(step.turn)
        self.focus = step.focus
        self.first = self.first or step.focus
        self.own.update(map(fact_key, step.facts))

    def said(self, kind: str) -> int:
        """Return how many turns are of a kind."""
        return sum(turn.kind == kind for turn in self.turns)

    def is_free(self, fact: Fact) -> bool:
        """Whether a fact was asked for neither here nor in an earlier conversation."""
        return fact_key(fact) not in self.own and fact_key(fact) not in self.sources.used


class Sources:
    """The documents of conversations.

    Args:
        collection: the documents, all in one language.

    Attributes:
        used: the facts that conversations have asked for.
    """

    def __init__(self, collection: DocumentCollection) -> None:
        self.collection: DocumentCollection = collection
        self.used: set[FactKey] = set()
        self._tables = lru_cache(maxsize=256)(self._read_tables)

    def tables(self, doc_id: str) -> Sequence[ThingTable]:
        """Return the tables of a page."""
        return self._tables(doc_id)

    def _read_tables(self, doc_id: str) -> Sequence[ThingTable]:
        return tables_of(self.collection.by_id[doc_id], self.collection.facts(doc_id))

    def focus_of(self, fact: Fact) -> Focus:
        """Return what a conversation is about after a question for a fact."""
        page = self.collection.by_id[fact.doc_id]
        thing = fact.parts.get("thing", "")
        for table in self.tables(fact.doc_id) if thing else ():
            if table.facts.get(thing, {}).get(fact.parts["attribute"]) == fact:
                return Focus(page, thing, fact.parts["attribute"], table, fact)
        return Focus(page, fact=fact)


def fact_key(fact: Fact) -> FactKey:
    """Return what tells a fact from all others."""
    return (fact.doc_id, fact.start, fact.kind, fact.answer)
