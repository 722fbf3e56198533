"""Finds what is wrong with a written page, in words that help its writer to mend it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from rag_harness.authoring.kb.as_planned import heading_faults, kind_faults, link_faults, title_faults
from rag_harness.authoring.kb.brief import Brief
from rag_harness.authoring.kb.links import linked_files
from rag_harness.authoring.kb.page import Page
from rag_harness.authoring.kb.page_markdown import parse_page
from rag_harness.authoring.kb.plan import Plan
from rag_harness.authoring.kb.stated import fact_faults, figure_faults, step_faults, table_faults
from rag_harness.authoring.kb.validation.mermaid_shape import shape_problem

LONGEST_PAGE = 60_000
"""The most characters of a page: ten times a long one."""
MOST_PAGE_FAULTS = 8
"""How many faults are named at once."""


def faults(brief: Brief, plan: Plan, text: str) -> list[str]:
    """Return the first ``MOST_PAGE_FAULTS`` faults of ``text`` as the page of ``brief``; empty if it is right."""
    name = brief.page.filename
    if not text.strip():
        return [f"{name} is empty. Write the whole page."]
    if len(text) > LONGEST_PAGE:
        return [
            f"{name} has {len(text):,} characters; at most {LONGEST_PAGE:,} are taken. Write what is planned alone."
        ]
    return list(islice(_faults(brief, plan, parse_page(name, text)), MOST_PAGE_FAULTS))


def _faults(brief: Brief, plan: Plan, written: Page) -> Iterator[str]:
    page = brief.page
    if not written.text.startswith("# "):
        yield f"{page.filename} begins with {written.text.strip()[:60]!r}. Begin with '# {page.title}'."
    yield from title_faults(page, written)
    yield from heading_faults(page, written)
    yield from page_faults(brief, written)
    yield from kind_faults(page, written)
    yield from link_faults(page, plan, linked_files(written))
    yield from (problem.text for problem in (*written.problems, *written.ragged))
    for diagram in written.diagrams:
        problem = shape_problem(diagram.text)
        if problem:
            yield f"the diagram: line {problem.line}: {problem.text} Mend it."


def page_faults(brief: Brief, written: Page) -> Iterator[str]:
    """Yield planned facts, tables and steps that a page lacks, and what it says beyond them."""
    yield from fact_faults(brief.page, written, brief.foreign)
    yield from table_faults(brief.page, written)
    yield from step_faults(brief.page, written)
    if brief.page.facts is not None:
        yield from figure_faults(brief.page, written, brief.known())
