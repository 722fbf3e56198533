"""Checks that ``structure.json`` and the files agree, in both directions."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rag_harness.authoring.kb.as_planned import kind_faults, link_faults, title_faults
from rag_harness.authoring.kb.plan import PLAN_FILE, Plan, PlanPage
from rag_harness.authoring.kb.planning.page_names import repeated
from rag_harness.authoring.kb.planning.plan_checks import inner_faults
from rag_harness.authoring.kb.validation.material import Material
from rag_harness.authoring.kb.validation.pages import links_of
from rag_harness.authoring.kb.validation.report import CheckResult

NO_PLAN = f"there is no {PLAN_FILE}"
BROKEN_PLAN = f"{PLAN_FILE} cannot be read"
_Problems = Iterator[tuple[str, str]]


def checks(material: Material) -> list[CheckResult]:
    """Return the checks of the plan. They are skipped without a plan."""
    rooms: dict[str, Callable[[Material, Plan], _Problems]] = {
        "plan": _files,
        "categories": _categories,
        "kinds": _kinds,
        "planned links": _links,
    }
    results = [planned(name, material, room) for name, room in rooms.items()]
    if material.plan_problems:
        results[0] = _unreadable(material)
    return results


def planned(name: str, material: Material, room: Callable[[Material, Plan], _Problems]) -> CheckResult:
    """Run a check that needs the plan, or say why it was skipped."""
    if material.plan is None:
        return CheckResult(name, skipped=BROKEN_PLAN if material.plan_problems else NO_PLAN)
    check = CheckResult(name, f"{len(material.plan.pages)} planned pages")
    for where, message in room(material, material.plan):
        check.error(where, message)
    return check


def _unreadable(material: Material) -> CheckResult:
    check = CheckResult("plan", "1 file")
    for line, problem in material.plan_problems:
        check.error(material.at(PLAN_FILE, line), problem)
    return check


def entry(material: Material, plan: Plan, page: PlanPage) -> str:
    """Return the place of a page in the plan."""
    return material.at(PLAN_FILE, plan.line_of(page.id) or plan.line_of(page.filename))


def _files(material: Material, plan: Plan) -> _Problems:
    yield from _twice(material, plan, "id", lambda page: page.id)
    yield from _twice(material, plan, "filename", lambda page: page.filename)
    if plan.num_pages not in (None, len(plan.pages)):
        what = f"num_pages is {plan.num_pages}, but {len(plan.pages)} pages are planned. Correct one of them."
        yield material.at(PLAN_FILE), what
    for page in plan.pages:
        if page.filename not in material.pages:
            said = material.no_file(page.filename).removesuffix(".")
            yield entry(material, plan, page), f"{page.filename!r} is planned: {said}. Write the page or drop it here."
        written = material.pages.get(page.filename)
        for fault in title_faults(page, written) if written else ():
            yield entry(material, plan, page), fault
    for name in sorted(material.pages.keys() - material.planned.keys()):
        yield material.at(name), f"the page is not in {PLAN_FILE}. Plan it there, or remove the file."
    for name, fault in inner_faults(plan):
        yield material.at(PLAN_FILE, plan.line_of(name)), f"{name}: {fault}"


def _twice(material: Material, plan: Plan, key: str, value_of: Callable[[PlanPage], str]) -> _Problems:
    for value, pages in repeated(plan, value_of):
        for nth in range(1, len(pages)):
            first = plan.line_of(value)
            what = f"{key} {value!r} stands already on line {first}. Give each page its own."
            yield material.at(PLAN_FILE, plan.line_of(value, nth)), what


def _categories(material: Material, plan: Plan) -> _Problems:
    known = plan.categories
    if known is None:
        return
    for page in plan.pages:
        if page.category not in known:
            what = f"{page.id} has category {page.category!r}; categories lists {', '.join(known)}. Use one of them."
            yield entry(material, plan, page), what
    for unused in sorted(set(known) - {page.category for page in plan.pages}):
        yield material.at(PLAN_FILE), f"category {unused!r} has no page. Plan one, or drop the category."


def _kinds(material: Material, plan: Plan) -> _Problems:
    for page in plan.pages:
        written = material.pages.get(page.filename)
        for problem in kind_faults(page, written) if written else ():
            yield entry(material, plan, page), problem


def _links(material: Material, plan: Plan) -> _Problems:
    for page in plan.pages:
        written = material.pages.get(page.filename)
        if page.links_to is not None and written:
            for problem in link_faults(page, plan, links_of(material, written)):
                yield entry(material, plan, page), problem
