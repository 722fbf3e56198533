"""A page without links and version yet: its facts, and the fact that its outdated version would state."""

from __future__ import annotations

from dataclasses import dataclass

from rag_harness.authoring.kb.plan import PlannedFact, PlannedTable


@dataclass(frozen=True, slots=True)
class Draft:
    """The contents of a page, without links and version.

    Attributes:
        id: the page's unique id.
        about: what it shares with pages that it may link to, the closest first: a thing, a topic.
        older: one of its facts with a different statement, for the outdated page of a version pair.
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
