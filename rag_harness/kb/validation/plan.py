"""``structure.json`` and the files agree, both ways."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from rag_harness.kb.page import Page
from rag_harness.kb.plan import PLAN_FILE, Plan, PlanPage
from rag_harness.kb.validation.material import Material
from rag_harness.kb.validation.pages import links_of
from rag_harness.kb.validation.report import CheckResult

NO_PLAN = f"there is no {PLAN_FILE}"
BROKEN_PLAN = f"{PLAN_FILE} cannot be read"
_Problems = Iterator[tuple[str, str]]


def checks(material: Material) -> list[CheckResult]:
    """Return the checks of the plan; without one they are skipped."""
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
    """Return where a page is planned."""
    return material.at(PLAN_FILE, plan.line_of(page.id) or plan.line_of(page.filename))


def _files(material: Material, plan: Plan) -> _Problems:
    yield from _twice(material, plan, "id", [page.id for page in plan.pages])
    yield from _twice(material, plan, "filename", [page.filename for page in plan.pages])
    if plan.num_pages not in (None, len(plan.pages)):
        what = f"num_pages is {plan.num_pages}, but {len(plan.pages)} pages are planned. Correct one of them."
        yield material.at(PLAN_FILE), what
    for page in plan.pages:
        if page.filename not in material.pages:
            said = material.no_file(page.filename).removesuffix(".")
            yield entry(material, plan, page), f"{page.filename!r} is planned: {said}. Write the page or drop it here."
        yield from _title(material, plan, page)
    for name in sorted(material.pages.keys() - material.planned.keys()):
        yield material.at(name), f"the page is not in {PLAN_FILE}. Plan it there, or remove the file."


def _twice(material: Material, plan: Plan, key: str, values: list[str]) -> _Problems:
    for value, times in Counter(values).items():
        for nth in range(1, times):
            first = plan.line_of(value)
            what = f"{key} {value!r} stands already on line {first}. Give each page its own."
            yield material.at(PLAN_FILE, plan.line_of(value, nth)), what


def _title(material: Material, plan: Plan, page: PlanPage) -> _Problems:
    written = material.pages.get(page.filename)
    if written and page.title is not None and written.title != page.title:
        what = f"the first heading of {page.filename} is {written.title!r}, planned is {page.title!r}. Make them agree."
        yield entry(material, plan, page), what


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
        for problem in _kind_problems(page, written) if written else ():
            yield entry(material, plan, page), problem


_SHOWS: dict[str, tuple[Callable[[Page], bool], str]] = {
    "tabular": (lambda page: page.tables > 0, "a table"),
    "logical": (lambda page: page.lists + len(page.diagrams) > 0, "a list of steps or conditions, or a diagram"),
    "mixed": (lambda page: page.tables + page.lists + len(page.diagrams) > 0, "a table, a list or a diagram"),
}


def _kind_problems(page: PlanPage, written: Page) -> Iterator[str]:
    if page.kind is not None and page.kind not in _SHOWS:
        yield f"{page.id} has kind {page.kind!r}; known are {', '.join(_SHOWS)}. Use one of them."
    elif page.kind is not None and not _SHOWS[page.kind][0](written):
        yield f"{page.filename} is planned as {page.kind}, but has not {_SHOWS[page.kind][1]}. Add it or change kind."
    if page.mermaid is not None and page.mermaid != bool(written.diagrams):
        found = "has none. Draw one" if page.mermaid else f"has {len(written.diagrams)}. Remove it"
        planned_for = "a Mermaid diagram" if page.mermaid else "no Mermaid diagram"
        yield f"{page.filename} is planned with {planned_for}, but {found}, or change the plan."


def _links(material: Material, plan: Plan) -> _Problems:
    for page in plan.pages:
        written = material.pages.get(page.filename)
        if page.links_to is not None and written:
            for problem in _link_problems(material, plan, page, written):
                yield entry(material, plan, page), problem


def _link_problems(material: Material, plan: Plan, page: PlanPage, written: Page) -> Iterator[str]:
    goals = {reference: plan.page(reference) for reference in page.links_to or ()}
    found = set(links_of(material, written))
    for reference, goal in goals.items():
        if goal is None:
            yield f"{page.id} links_to {reference!r}, which is not planned. Use the id of a planned page."
        elif goal.filename not in found:
            yield f"{page.filename} has no link to {goal.filename}, as links_to says. Add it or drop it here."
    for name in sorted(found - {goal.filename for goal in goals.values() if goal}):
        yield f"{page.filename} links to {name}, which its links_to does not list. List it, or drop the link."
