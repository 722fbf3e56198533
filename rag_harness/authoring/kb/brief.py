"""The brief of a planned page: the page, the pages that it links to, and its other version."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

from rag_harness.authoring.kb.plan import Plan, PlannedFact, PlanPage

_ABOUT = 3
"""How many subjects of a page another page is told about."""


@dataclass(frozen=True)
class Brief:
    """A page with the pages of its links. ``older`` and ``newer`` are its other versions, if planned."""

    page: PlanPage
    goals: tuple[PlanPage, ...] = ()
    older: PlanPage | None = None
    newer: PlanPage | None = None

    @cached_property
    def foreign(self) -> tuple[PlannedFact, ...]:
        """Facts that another version of the page states differently."""
        own = {fact.statement for fact in self.page.facts or ()}
        others = chain.from_iterable((other.facts or ()) for other in (self.older, self.newer) if other)
        return tuple(fact for fact in others if fact.statement not in own)

    def told(self) -> dict[str, Any]:
        """Return the page and short descriptions of the pages that it links to, as JSON: all that a writer gets."""
        return {
            **self.page.model_dump(mode="json", exclude_none=True, exclude={"id", "links_to"}),
            "links": [{**about_page(goal), "is": self.relation(goal)} for goal in self.goals],
        }

    def relation(self, goal: PlanPage) -> str:
        """Return how ``goal`` relates to the page: older or newer version, same category, or another category."""
        versions = {other.filename: name for name, other in self._versions() if other}
        if goal.filename in versions:
            return versions[goal.filename]
        return "same category" if goal.category == self.page.category else "other category"

    def known(self) -> Iterator[str]:
        """Yield every text whose figures may stand on the page."""
        others = (other for _, other in self._versions() if other)
        told = [self.page.model_dump(mode="json", exclude_none=True), *map(about_page, (*self.goals, *others))]
        dates = [other.effective_date or "" for _, other in self._versions() if other]
        subjects = (fact.subject for goal in self.goals for fact in goal.facts or ())
        return chain(_texts(told), dates, subjects)

    def _versions(self) -> tuple[tuple[str, PlanPage | None], ...]:
        return ("older version", self.older), ("newer version", self.newer)


def about_page(page: PlanPage) -> dict[str, Any]:
    """Return what other pages may say about a page: its title and its subjects."""
    subjects = list(dict.fromkeys(fact.subject for fact in page.facts or ()))[:_ABOUT]
    return {
        "title": page.title or page.id,
        "filename": page.filename,
        "category": page.category,
        "about": subjects,
        "tables": [table.title for table in page.tables or ()],
        "steps": bool(page.steps),
    }


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from chain.from_iterable(map(_texts, value.values()))
    elif isinstance(value, list):
        yield from chain.from_iterable(map(_texts, value))


def briefs(plan: Plan) -> Iterator[Brief]:
    """Yield the brief of every page, in the order of the plan. Links to unplanned pages are left out."""
    older, newer = {}, {}
    for pair in plan.version_pairs or ():
        before, now = plan.page(pair.outdated), plan.page(pair.current)
        if before and now:
            older[now.id], newer[before.id] = before, now
    for page in plan.pages:
        goals = (plan.page(reference) for reference in dict.fromkeys(page.links_to or ()))
        known = tuple(goal for goal in goals if goal and goal.filename != page.filename)
        yield Brief(page, known, older.get(page.id), newer.get(page.id))
