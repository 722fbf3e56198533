"""Makes a page from a brief: sections in a random order, each in a random layout. It states only what is planned."""

from __future__ import annotations

from random import Random

from rag_harness.authoring.kb.brief import Brief
from rag_harness.authoring.kb.plan import PlanPage
from rag_harness.authoring.kb.writing.embedded.facts import fact_sections
from rag_harness.authoring.kb.writing.embedded.opening import opening
from rag_harness.authoring.kb.writing.embedded.page_section import PageSection
from rag_harness.authoring.kb.writing.embedded.related import place_links
from rag_harness.authoring.kb.writing.embedded.table_sections import steps_section, table_section


def compose(brief: Brief, seed: int) -> str:
    """Return the page. It depends only on the brief and the seed, not on pages written before."""
    chance = Random(f"{seed} {brief.page.id}")
    page = brief.page
    head = [f"# {page.title or page.id}", *opening(brief, chance)]
    sections = _sections(page, chance)
    place_links(brief, sections, chance)
    _tell_apart(sections, page)
    return "\n\n".join([*head, *(section.text() for section in sections)]) + "\n"


def _sections(page: PlanPage, chance: Random) -> list[PageSection]:
    steps = _steps(page)
    needs_list = page.kind == "logical" and not steps
    parts = [
        fact_sections(page, chance, needs_list),
        [table_section(table, chance) for table in page.tables or ()],
        [steps_section(steps, bool(page.mermaid), chance)] if steps else [],
    ]
    chance.shuffle(parts)
    made = [section for part in parts for section in part]
    if chance.random() < 0.3:
        chance.shuffle(made)
    return made


def _steps(page: PlanPage) -> tuple[str, ...]:
    """Return the steps. If the page needs a diagram and has no steps, its facts are drawn instead."""
    return page.steps or (tuple(fact.statement for fact in page.facts or ()) if page.mermaid else ())


def _tell_apart(sections: list[PageSection], page: PlanPage) -> None:
    """Give sections with the same heading different ones: the second becomes a part of the first."""
    seen: dict[str, PageSection] = {}
    for section in list(sections):
        heading = section.heading.casefold()
        first = seen.setdefault(heading, section)
        if first is not section:
            first.blocks += section.blocks
            sections.remove(section)
        elif heading == (page.title or "").casefold():
            section.heading = "Overview"
