"""A conversation while it is drafted: what was said, and what "it" is now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from random import Random
from typing import NamedTuple

from rag_harness.authoring.questions.conversing.like_things import LikeThings
from rag_harness.authoring.questions.conversing.thing_tables import ThingTable, tables_of
from rag_harness.authoring.questions.conversing.turn_draft import TurnDraft
from rag_harness.authoring.questions.conversing.usable import usable
from rag_harness.authoring.questions.document_collection import DocumentCollection
from rag_harness.authoring.questions.draft import Draft
from rag_harness.authoring.questions.facts import Fact
from rag_harness.authoring.questions.quotable_passages import seen
from rag_harness.authoring.questions.siblings import siblings
from rag_harness.authoring.questions.version_questions import old_and_new_drafts
from rag_harness.retrieval.chunking.heading_sections import read_headings
from rag_harness.types import Document

FactKey = tuple[str, int, str, str]
MOST_READ = 2_000
"""The most pages whose tables are read to learn which attributes like things have."""


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
        choices: the facts among which the user was asked to choose.
    """

    page: Document
    thing: str = ""
    attribute: str = ""
    table: ThingTable | None = None
    fact: Fact | None = None
    is_one: bool = True
    choices: tuple[Fact, ...] = ()

    @property
    def name(self) -> str:
        """The thing, or the title of the page."""
        return self.thing or seen(self.page.title)

    def unclear(self, choices: tuple[Fact, ...] = ()) -> Focus:
        """Return the focus after several things were named: "it" could be any of them."""
        return replace(self, attribute="", is_one=False, choices=choices)


class NextTurn(NamedTuple):
    """A turn that could come next.

    ``focus`` is what the conversation is about after it, ``facts`` what it asks for. ``left_open`` is the form of a
    question about what a statement leaves open.
    """

    turn: TurnDraft
    focus: Focus
    facts: tuple[Fact, ...] = ()
    left_open: str = ""


@dataclass
class Talk:
    """A conversation under way.

    Attributes:
        sources: the documents, and which facts were asked for.
        chance: draws words and order.
        turns: what was said.
        focuses: what the conversation was about after each turn.
        own: the facts that it has asked for.
    """

    sources: Sources
    chance: Random
    turns: list[TurnDraft] = field(default_factory=list)
    focuses: list[Focus] = field(default_factory=list)
    own: set[FactKey] = field(default_factory=set)

    @property
    def focus(self) -> Focus:
        """What the conversation is about now."""
        return self.focuses[-1]

    @property
    def collection(self) -> DocumentCollection:
        """The documents."""
        return self.sources.collection

    def facts(self, doc_id: str) -> Sequence[Fact]:
        """Return the facts of a page that conversations can ask for."""
        return self.sources.facts(doc_id)

    def take(self, step: NextTurn) -> None:
        """Add a turn."""
        self.turns.append(step.turn)
        self.focuses.append(step.focus)
        self.own.update(map(fact_key, step.facts))
        if step.left_open:
            self.sources.left_open[step.left_open] += 1

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
        chance: draws words of questions about two versions.

    Attributes:
        used: the facts that conversations have asked for.
        left_open: how often each question about what a statement leaves open was asked.
    """

    def __init__(self, collection: DocumentCollection, chance: Random) -> None:
        self.collection: DocumentCollection = collection
        self.used: set[FactKey] = set()
        self.left_open: Counter[str] = Counter()
        self._chance = chance
        self._tables = lru_cache(maxsize=256)(self._read_tables)
        self._headings = lru_cache(maxsize=256)(lambda doc_id: len(read_headings(collection.by_id[doc_id].text)))
        self.facts = lru_cache(maxsize=256)(lambda doc_id: usable(collection.facts(doc_id)))

    def headings(self, doc_id: str) -> int:
        """Return how many headings a page has."""
        return self._headings(doc_id)

    def tables(self, doc_id: str) -> Sequence[ThingTable]:
        """Return the tables of a page."""
        return self._tables(doc_id)

    def _read_tables(self, doc_id: str) -> Sequence[ThingTable]:
        return tables_of(self.collection.by_id[doc_id], self.facts(doc_id))

    def needs_heading(self, fact: Fact) -> bool:
        """Whether a fact is a cell of another section than most cells of its page: the title does not say of what."""
        if fact.kind != "cell":
            return False
        sections = Counter(each.section for each in self.facts(fact.doc_id) if each.kind == "cell")
        return fact.section != max(sections, key=lambda section: sections[section])

    def focus_of(self, fact: Fact) -> Focus:
        """Return what a conversation is about after a question for a fact."""
        page = self.collection.by_id[fact.doc_id]
        thing = fact.parts.get("thing", "")
        for table in self.tables(fact.doc_id) if thing else ():
            if table.facts.get(thing, {}).get(fact.parts["attribute"]) == fact:
                return Focus(page, thing, fact.parts["attribute"], table, fact)
        return Focus(page, fact=fact)

    @cached_property
    def attributes(self) -> LikeThings:
        """The attributes of the things of tables, on the first pages."""
        pages = self.collection.current[:MOST_READ]
        return LikeThings((page.doc_id, table) for page in pages for table in self.tables(page.doc_id))

    @cached_property
    def titles(self) -> str:
        """The titles of all pages, one a line."""
        return "\n".join(seen(page.title) for page in self.collection.documents)

    @cached_property
    def siblings(self) -> Mapping[str, tuple[str, ...]]:
        """The siblings of each thing that is named on the first pages."""
        return siblings(self.collection.current[:MOST_READ], self.collection.names)

    @cached_property
    def versions(self) -> Mapping[tuple[str, str], Draft]:
        """Questions about what is so now and what was so before, by page and quote of what is so now."""
        drafts = (draft for (draft,) in old_and_new_drafts(self.collection, self._chance))
        return {(draft.evidence[0].filename, draft.evidence[0].quote): draft for draft in drafts}


def fact_key(fact: Fact) -> FactKey:
    """Return what tells a fact from all others."""
    return (fact.doc_id, fact.start, fact.kind, fact.answer)
