"""Checks that version pairs are complete, marked and really in conflict, and how much of the base is outdated."""

from __future__ import annotations

from collections.abc import Iterator

from rag_harness.authoring.kb.page import fold, squeeze
from rag_harness.authoring.kb.plan import PLAN_FILE, Conflict, Plan, PlanPage, VersionPair, version_order
from rag_harness.authoring.kb.planning.succession import pairing_faults
from rag_harness.authoring.kb.validation.material import Material
from rag_harness.authoring.kb.validation.plan import entry, planned
from rag_harness.authoring.kb.validation.report import CheckResult

NO_PAIRS = f"{PLAN_FILE} names no version_pairs"
_Problems = Iterator[tuple[str, str]]


def checks(material: Material) -> list[CheckResult]:
    """Return the checks of the version pairs. They are skipped if no plan names any."""
    results = [planned("version pairs", material, _versions), planned("rot", material, _rot)]
    if material.plan is not None and material.plan.version_pairs is None:
        return [CheckResult(result.name, skipped=NO_PAIRS) for result in results]
    if material.plan is not None:
        results[0].checked = f"{len(material.plan.version_pairs or ())} pairs"
        results[1].how = f"{_share(material.plan):.0%} of the pages stand in version pairs"
    return results


def _share(plan: Plan) -> float:
    paired = {name for pair in plan.version_pairs or () for name in (pair.outdated, pair.current)}
    return len(paired) / max(1, len(plan.pages))


def _rot(material: Material, plan: Plan) -> _Problems:
    share, low, high = _share(plan), plan.rot / 2, plan.rot * 1.5
    if not low <= share <= high:
        asked = f"planned are about {plan.rot:.0%} ({low:.1%} to {high:.1%})"
        yield (
            material.at(PLAN_FILE),
            f"{share:.1%} of the pages stand in version pairs, {asked}. "
            "Change the pairs, or plan another share with the key 'rot'.",
        )


def _versions(material: Material, plan: Plan) -> _Problems:
    pairs = plan.version_pairs or ()
    for pair in pairs:
        outdated, current = plan.page(pair.outdated), plan.page(pair.current)
        if outdated and current and outdated is not current:
            where = entry(material, plan, outdated)
            yield from ((where, problem) for problem in _marks(outdated, current))
            yield from _conflicts(material, pair, outdated, current)
        elif not (outdated and current):
            missing = pair.current if outdated else pair.outdated
            yield material.at(PLAN_FILE), f"a version pair names {missing!r}, which is not planned. Use a page's id."
    for page, fault in pairing_faults(plan):
        yield entry(material, plan, page), f"{page.id} {fault}"


def _marks(outdated: PlanPage, current: PlanPage) -> Iterator[str]:
    if outdated.status != "outdated":
        yield (
            f"{outdated.id} is the outdated page of a version pair, but its status is {outdated.status!r}. "
            "Set it to 'outdated', or swap the pair."
        )
    if current.status != "current":
        yield f"{current.id} replaces {outdated.id}, but its status is {current.status!r}. Set it to 'current'."
    if current.supersedes not in (outdated.id, outdated.filename):
        yield f"{current.id} supersedes {current.supersedes!r}, its version pair says {outdated.id!r}. Make them agree."
    for key in ("version", "effective_date"):
        old, new = getattr(outdated, key), getattr(current, key)
        if old is None or new is None or version_order(old) >= version_order(new):
            yield f"{key} of {outdated.id} is {old!r}, of {current.id} {new!r}. The current page must have the later."


def _conflicts(material: Material, pair: VersionPair, outdated: PlanPage, current: PlanPage) -> _Problems:
    if not pair.conflicts:
        where = material.at(PLAN_FILE)
        yield where, f"the pair {pair.outdated} / {pair.current} lists no conflict. List what the two disagree on."
    for conflict in pair.conflicts:
        if squeeze(conflict.outdated_statement) == squeeze(conflict.current_statement):
            what = (
                f"{_fact(conflict)}: both statements are the same: {conflict.current_statement!r}. State the conflict."
            )
            yield material.at(PLAN_FILE), what
            continue
        yield from _stated(material, conflict, conflict.outdated_statement, outdated, current)
        yield from _stated(material, conflict, conflict.current_statement, current, outdated)


def _fact(conflict: Conflict) -> str:
    return f"conflict {conflict.fact!r}"


def _stated(material: Material, conflict: Conflict, statement: str, owner: PlanPage, other: PlanPage) -> _Problems:
    there, elsewhere = (material.pages.get(page.filename) for page in (owner, other))
    if there and fold(statement) not in there.folded:
        what = f"{_fact(conflict)}: the page does not say {statement!r}. Write it word for word, or mend {PLAN_FILE}."
        yield material.at(owner.filename), what
    if elsewhere and fold(statement) in elsewhere.folded:
        what = f"{_fact(conflict)}: the page says {statement!r}, which belongs to {owner.filename} only. Remove it."
        yield material.at(other.filename), what
