"""Checks that need only the pages: Markdown, links, anchors, tables."""

from __future__ import annotations

from urllib.parse import unquote

from rag_harness.authoring.kb.links import ELSEWHERE, linked_file, linked_files
from rag_harness.authoring.kb.page import Page
from rag_harness.authoring.kb.validation.material import Material, leaves
from rag_harness.authoring.kb.validation.report import CheckResult


def checks(material: Material) -> list[CheckResult]:
    """Return the checks of the pages themselves."""
    return [_markdown(material), _links(material), _tables(material)]


def _markdown(material: Material) -> CheckResult:
    check = CheckResult("markdown", f"{len(material.pages) + len(material.unreadable)} pages")
    for byte, name in material.unreadable:
        check.error(material.at(name), f"not UTF-8 at byte {byte}. Save the file as UTF-8.")
    for page in material.pages.values():
        for line, problem in page.problems:
            check.error(material.at(page.doc_id, line), problem)
    return check


def _tables(material: Material) -> CheckResult:
    check = CheckResult("tables", f"{sum(page.tables for page in material.pages.values())} tables")
    for page in material.pages.values():
        for line, problem in page.ragged:
            check.error(material.at(page.doc_id, line), problem)
    return check


def _links(material: Material) -> CheckResult:
    elsewhere = total = 0
    check = CheckResult("links")
    for page in material.pages.values():
        total += len(page.links)
        for line, target in page.links:
            if ELSEWHERE.match(target):
                elsewhere += 1
            elif problem := _problem(material, page, target):
                check.error(material.at(page.doc_id, line), f"link to {unquote(target)!r}: {problem}")
    check.checked = f"{total - elsewhere} links"
    check.how = f"{elsewhere} links to other sites were not followed" if elsewhere else ""
    return check


def links_of(material: Material, page: Page) -> list[str]:
    """Return the other pages that ``page`` links to, each once, in order."""
    return [name for name in linked_files(page) if name in material.pages]


def _problem(material: Material, page: Page, target: str) -> str:
    name, anchor = linked_file(page, target)
    if leaves(name) or (name not in material.files and not _is_folder(material, name)):
        return f"{material.no_file(name).removesuffix('.')}. Mend the link."
    if anchor in ("", "top") or name not in material.pages:
        return ""
    problem = anchor_problem(material, material.pages[name], anchor)
    return f"{problem} Mend the link." if problem else ""


def _is_folder(material: Material, name: str) -> bool:
    return (material.folder / name).is_dir()


def anchor_problem(material: Material, page: Page, anchor: str) -> str:
    """Return why ``page`` has no such ``anchor``; empty if it has."""
    if anchor in page.anchors:
        return ""
    for known in page.anchors:
        if known.casefold() == anchor.casefold():
            return f"the anchor is {known!r}, and case counts."
    return (
        f"{page.doc_id} has no heading with the anchor {anchor!r}.{material.nearest(anchor, frozenset(page.anchors))}"
    )
