"""A page before it has its place among the others: what it states, and what it would have stated before."""

from __future__ import annotations

from dataclasses import dataclass

from rag_harness.authoring.kb.plan import PlannedFact, PlannedTable


@dataclass(frozen=True, slots=True)
class Draft:
    """What a page is to hold, without links and version.

    Attributes:
        id: of the page, unique.
        about: what it shares with others that it may link to: a thing, a topic, from near to far.
        older: one of its facts with another statement, for the outdated page of a version pair.
    """

    id: str
    title: str
    category: str
    kind: str
    about: tuple[str, ...]
    facts: tuple[PlannedFact, ...]
    tables: tuple[PlannedTable, ...] = ()
    steps: tuple[str, ...] = ()
    older: PlannedFact | None = None
