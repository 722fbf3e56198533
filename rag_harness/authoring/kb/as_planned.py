"""Checks that a page has the title, the kind and the links of its plan. Faults say what to do."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from rag_harness.authoring.kb.page import Page, squeeze
from rag_harness.authoring.kb.page_markdown import visible_text
from rag_harness.authoring.kb.plan import Plan, PlanPage

_SHOWS: dict[str, tuple[Callable[[Page], bool], str]] = {
    "tabular": (lambda page: page.tables > 0, "a table"),
    "logical": (lambda page: page.lists + len(page.diagrams) > 0, "a list of steps or conditions, or a diagram"),
    "mixed": (lambda page: page.tables + page.lists + len(page.diagrams) > 0, "a table, a list or a diagram"),
}


def title_faults(page: PlanPage, written: Page) -> Iterator[str]:
    """Yield a fault if the first heading is not the planned title."""
    if page.title is not None and squeeze(written.title) != visible_text(page.title):
        yield f"the first heading of {page.filename} is {written.title!r}, planned is {page.title!r}. Make them agree."


def kind_faults(page: PlanPage, written: Page) -> Iterator[str]:
    """Yield what the page lacks for its kind, and a diagram too many or too few."""
    if page.kind is not None and page.kind not in _SHOWS:
        yield f"{page.id} has kind {page.kind!r}; known are {', '.join(_SHOWS)}. Use one of them."
    elif page.kind is not None and not _SHOWS[page.kind][0](written):
        yield f"{page.filename} is planned as {page.kind}, but has not {_SHOWS[page.kind][1]}. Add it or change kind."
    if page.mermaid is not None and page.mermaid != bool(written.diagrams):
        found = "has none. Draw one" if page.mermaid else f"has {len(written.diagrams)}. Remove it"
        planned_for = "a Mermaid diagram" if page.mermaid else "no Mermaid diagram"
        yield f"{page.filename} is planned with {planned_for}, but {found}, or change the plan."


def link_faults(page: PlanPage, plan: Plan, found: Collection[str]) -> Iterator[str]:
    """Yield missing links and unplanned links; ``found`` are the files that the page links to."""
    goals = {reference: plan.page(reference) for reference in page.links_to or ()}
    for reference, goal in goals.items():
        if goal is None:
            yield f"{page.id} links_to {reference!r}, which is not planned. Use the id of a planned page."
        elif goal.filename not in found:
            yield f"{page.filename} has no link to {goal.filename}, as links_to says. Add it or drop it here."
    for name in sorted(set(found) - {goal.filename for goal in goals.values() if goal}):
        yield f"{page.filename} links to {name}, which its links_to does not list. List it, or drop the link."


def heading_faults(page: PlanPage, written: Page) -> Iterator[str]:
    """Yield faults of the outline: it needs one heading of the first level, and sections below it."""
    first = [text for level, text in written.headings if level == 1]
    if len(first) != 1:
        yield f"{page.filename} has {len(first)} headings of the first level (#). Write one, the title."
    if not any(level == 2 for level, _ in written.headings):
        yield f"{page.filename} has no section. Put headings of the second level (##) over its parts."
