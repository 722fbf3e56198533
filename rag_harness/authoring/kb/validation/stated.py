"""Checks that pages planned with facts state these facts, and nothing that was not planned."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rag_harness.authoring.kb.as_planned import heading_faults
from rag_harness.authoring.kb.brief import Brief, briefs
from rag_harness.authoring.kb.page import Page
from rag_harness.authoring.kb.plan import PLAN_FILE, Plan
from rag_harness.authoring.kb.stated import fact_faults, figure_faults, step_faults, table_faults
from rag_harness.authoring.kb.validation.agreement import version_agreement
from rag_harness.authoring.kb.validation.material import Material
from rag_harness.authoring.kb.validation.plan import planned
from rag_harness.authoring.kb.validation.report import CheckResult

NO_FACTS = f"{PLAN_FILE} plans no facts"
_Problems = Iterator[tuple[str, str]]
_ASKED: dict[str, Callable[[Brief, Page], Iterator[str]]] = {
    "planned facts": lambda brief, page: fact_faults(brief.page, page, brief.foreign),
    "planned tables": lambda brief, page: table_faults(brief.page, page),
    "planned steps": lambda brief, page: step_faults(brief.page, page),
    "planned figures": lambda brief, page: figure_faults(brief.page, page, brief.known()),
    "outlines": lambda brief, page: heading_faults(brief.page, page),
}


def checks(material: Material) -> list[CheckResult]:
    """Return the checks; without planned facts they are skipped."""
    rooms = {name: _room(asked) for name, asked in _ASKED.items()} | {"versions agree": version_agreement}
    results = [planned(name, material, room) for name, room in rooms.items()]
    if material.plan is None:
        return results
    stated = sum(page.facts is not None for page in material.plan.pages)
    if not stated:
        return [CheckResult(name, skipped=NO_FACTS) for name in rooms]
    for result in results:
        result.checked = f"{stated} pages with facts"
    return results


def _room(asked: Callable[[Brief, Page], Iterator[str]]) -> Callable[[Material, Plan], _Problems]:
    def problems(material: Material, plan: Plan) -> _Problems:
        for brief in briefs(plan):
            written = material.pages.get(brief.page.filename)
            if written and brief.page.facts is not None:
                yield from ((material.at(brief.page.filename), fault) for fault in asked(brief, written))

    return problems
