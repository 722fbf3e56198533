"""Faults of version pairs: an outdated page and its successor may differ only in what is planned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import chain

from rag_harness.authoring.kb.page import squeeze
from rag_harness.authoring.kb.plan import Conflict, Plan, PlannedFact, PlanPage, VersionPair, version_order

_Faults = Iterator[tuple[str, str]]


def succession_faults(plan: Plan) -> _Faults:
    """Yield the id of a page, or nothing, and what is wrong with how it replaces another page."""
    for pair in plan.version_pairs or ():
        outdated, current = plan.page(pair.outdated), plan.page(pair.current)
        for name, page in ((pair.outdated, outdated), (pair.current, current)):
            if page is None:
                yield "", f"a version pair names {name!r}, which is not planned. Use a page's id."
        if outdated and current and outdated is not current:
            yield from _pair(pair, outdated, current)
    yield from ((page.id, text) for page, text in pairing_faults(plan))
    yield from circles(plan)


def unplanned_differences(plan: Plan) -> _Faults:
    """Yield facts of version pairs that differ from the plan. Only pairs that list conflicts are checked."""
    for pair in plan.version_pairs or ():
        outdated, current = plan.page(pair.outdated), plan.page(pair.current)
        if outdated and current and outdated is not current:
            yield from ((current.id, text) for text in _content_faults(pair, outdated, current))


def _pair(pair: VersionPair, outdated: PlanPage, current: PlanPage) -> _Faults:
    yield from ((current.id, text) for text in _marks(outdated, current))
    yield from ((current.id, text) for text in _conflict_faults(pair, outdated, current))


def _marks(outdated: PlanPage, current: PlanPage) -> Iterator[str]:
    if outdated.status not in (None, "outdated"):
        yield f"replaces {outdated.id}, whose status is {outdated.status!r}. Set that to 'outdated', or swap the pair."
    if current.status not in (None, "current"):
        yield f"replaces {outdated.id}, but its own status is {current.status!r}. Set it to 'current'."
    if current.supersedes not in (None, outdated.id, outdated.filename):
        yield f"supersedes {current.supersedes!r}, its version pair says {outdated.id!r}. Make them agree."
    for key in ("version", "effective_date"):
        old, new = getattr(outdated, key), getattr(current, key)
        if old is not None and new is not None and version_order(old) >= version_order(new):
            yield f"its {key} is {new!r}, that of {outdated.id} is {old!r}. The current page must have the later."


def _conflict_faults(pair: VersionPair, outdated: PlanPage, current: PlanPage) -> Iterator[str]:
    if not pair.conflicts:
        yield f"its pair with {outdated.id} lists no conflict. List what the two disagree on."
    for conflict in pair.conflicts:
        if squeeze(conflict.outdated_statement) == squeeze(conflict.current_statement):
            yield (
                f"conflict {conflict.fact!r} with {outdated.id}: both statements are {conflict.current_statement!r}. "
                "State the difference."
            )
    yield from _content_faults(pair, outdated, current)


def _content_faults(pair: VersionPair, outdated: PlanPage, current: PlanPage) -> Iterator[str]:
    """Yield contradictions between the pages of a pair and its listed conflicts. Fields that are None are skipped."""
    if outdated.facts is not None and current.facts is not None:
        old, new = ({fact.id: fact for fact in page.facts or ()} for page in (outdated, current))
        yield from _unplanned(pair, old, new)
        for conflict in pair.conflicts:
            yield from _not_stated(conflict, outdated.id, old, new)
    if outdated.tables is not None and current.tables is not None and outdated.tables != current.tables:
        yield f"its tables differ from those of {outdated.id}. Make them equal, and plan the change as a fact."
    if outdated.steps is not None and current.steps is not None and outdated.steps != current.steps:
        yield f"its steps differ from those of {outdated.id}. Make them equal, and plan the change as a fact."


def _unplanned(pair: VersionPair, old: Mapping[str, PlannedFact], new: Mapping[str, PlannedFact]) -> Iterator[str]:
    planned = {conflict.fact for conflict in pair.conflicts}
    shared = old.keys() & new.keys()
    for fact in (new[each] for each in new if each in shared - planned):
        if squeeze(old[fact.id].statement) != squeeze(fact.statement):
            what = f"{old[fact.id].statement!r} was replaced by {fact.statement!r}"
            yield f"fact {fact.id} differs from that of {pair.outdated}: {what}. Plan the conflict, or make them equal."


def _not_stated(
    conflict: Conflict, outdated: str, old: Mapping[str, PlannedFact], new: Mapping[str, PlannedFact]
) -> Iterator[str]:
    if conflict.fact not in old or conflict.fact not in new:
        yield f"conflict {conflict.fact!r} with {outdated} is no fact of both pages. Name a fact that both have."
        return
    sides = ((conflict.outdated_statement, old[conflict.fact]), (conflict.current_statement, new[conflict.fact]))
    for statement, fact in sides:
        if squeeze(statement) != squeeze(fact.statement):
            yield f"conflict {conflict.fact!r} says {statement!r}, the fact {fact.statement!r}. Make them agree."


def pairing_faults(plan: Plan) -> Iterator[tuple[PlanPage, str]]:
    """Yield pages paired with themselves or in several pairs, and versions that are in no pair."""
    for pair in plan.version_pairs or ():
        if (paired := plan.page(pair.outdated)) and paired is plan.page(pair.current):
            yield paired, "stands in a version pair with itself. Name the page that replaced it."
    # By id: a pair may name a page by its file, and a file may have the name of another page's id.
    times = Counter(chain.from_iterable(_ids(plan, pair) for pair in plan.version_pairs or ()))
    for page in plan.pages:
        if times[page.id] > 1:
            yield page, f"stands in {times[page.id]} version pairs. Keep one."
        if not times[page.id] and (page.status == "outdated" or page.supersedes):
            why = "is outdated" if page.status == "outdated" else f"supersedes {page.supersedes!r}"
            yield page, f"{why}, but stands in no version pair. Add the pair."


def _ids(plan: Plan, pair: VersionPair) -> set[str]:
    return {page.id for name in (pair.outdated, pair.current) if (page := plan.page(name))}


def circles(plan: Plan) -> _Faults:
    """Yield pages that supersede themselves, directly or through others. Each circle is named once."""
    done: set[str] = set()
    for page in plan.pages:
        way: list[str] = []
        follower: PlanPage | None = page
        while follower is not None and follower.id not in done:
            done.add(follower.id)
            way.append(follower.id)
            follower = plan.page(follower.supersedes) if follower.supersedes else None
        if follower is not None and follower.id in way:
            circle = " supersedes ".join([*way[way.index(follower.id) :], follower.id])
            yield follower.id, f"supersedes itself: {circle}. Let the oldest supersede nothing."
