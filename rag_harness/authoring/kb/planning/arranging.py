"""Makes a plan from drafts: links between pages, outdated versions, and the dates from which pages are in force."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from random import Random

from rag_harness.authoring.kb.plan import Conflict, Plan, PlanPage, VersionPair
from rag_harness.authoring.kb.planning.draft import Draft
from rag_harness.authoring.kb.planning.linking import links_between
from rag_harness.authoring.kb.planning.wanted import PlanRequest

_OUTDATED = (date(2022, 1, 3), date(2024, 6, 28))
_CURRENT = (date(2024, 9, 2), date(2026, 6, 26))
"""The dates between which pages come into force. They are fixed, so that a plan does not depend on today."""
_DRAWN_IN = 3
"""One procedure in so many is also drawn as a diagram."""


def arranged(drafts: Sequence[Draft], wanted: PlanRequest, title: str, planned_by: str) -> Plan:
    """Return the plan. A draft with ``older`` becomes two pages."""
    names = [draft.id for draft in drafts]
    links = [[names[goal] for goal in goals] for goals in links_between(drafts, wanted.seed)]
    pages, pairs = [], []
    for draft, goals in zip(drafts, links, strict=True):
        current, *outdated = _versions(draft, goals, wanted.seed)
        pages += [current, *outdated]
        pairs += [_pair(page, current) for page in outdated]
    return Plan(
        title=title,
        domain=wanted.domain,
        planned_by=planned_by,
        seed=wanted.seed,
        num_pages=len(pages),
        rot=round(2 * len(pairs) / len(pages), 4),
        categories=tuple(dict.fromkeys(draft.category for draft in drafts)),
        pages=tuple(pages),
        version_pairs=tuple(pairs),
    )


def _versions(draft: Draft, goals: Sequence[str], seed: int) -> Iterator[PlanPage]:
    """Yield the current page and the outdated page that it replaced."""
    chance = Random(f"{seed} {draft.id} versions")
    current, outdated = (_day(*days, chance) for days in (_CURRENT, _OUTDATED))
    drawn = bool(draft.steps) and chance.randrange(_DRAWN_IN) == 0
    if draft.older is None:
        yield _page(draft, "1", current, goals, drawn)
        return
    old_id = f"{draft.id}-{outdated.year}"
    yield _page(draft, "2", current, [*goals, old_id], drawn).model_copy(update={"supersedes": old_id})
    facts = tuple(draft.older if fact.id == draft.older.id else fact for fact in draft.facts)
    yield _page(draft, "1", outdated, [*goals, draft.id], drawn).model_copy(
        update={
            "id": old_id,
            "filename": f"{old_id}.md",
            "title": f"{draft.title} ({outdated.year})",
            "status": "outdated",
            "facts": facts,
        }
    )


def _page(draft: Draft, version: str, since: date, goals: Sequence[str], drawn: bool) -> PlanPage:
    return PlanPage(
        id=draft.id,
        filename=f"{draft.id}.md",
        title=draft.title,
        category=draft.category,
        kind=draft.kind,
        version=version,
        status="current",
        effective_date=since.isoformat(),
        links_to=tuple(goals),
        mermaid=drawn,
        facts=draft.facts,
        tables=draft.tables,
        steps=draft.steps,
    )


def _pair(outdated: PlanPage, current: PlanPage) -> VersionPair:
    now = {fact.id: fact.statement for fact in current.facts or ()}
    changed = [fact for fact in outdated.facts or () if now[fact.id] != fact.statement]
    conflicts = tuple(
        Conflict(fact=fact.id, outdated_statement=fact.statement, current_statement=now[fact.id]) for fact in changed
    )
    return VersionPair(outdated=outdated.id, current=current.id, conflicts=conflicts)


def _day(first: date, last: date, chance: Random) -> date:
    return first + timedelta(days=chance.randint(0, (last - first).days))
