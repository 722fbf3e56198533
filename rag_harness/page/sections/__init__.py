"""The sections of the report, in their order. Each file has one: a function of the runs, now first, then before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from rag_harness.page.content import Section
from rag_harness.page.run import Run
from rag_harness.page.sections.about_run import about_run
from rag_harness.page.sections.charts import charts
from rag_harness.page.sections.decisions import decisions
from rag_harness.page.sections.diff import diff
from rag_harness.page.sections.differences import differences
from rag_harness.page.sections.failures import failures
from rag_harness.page.sections.first_screen import first_screen
from rag_harness.page.sections.method import method
from rag_harness.page.sections.race import race
from rag_harness.page.sections.retrieval import retrieval
from rag_harness.page.sections.scorecard import scorecard
from rag_harness.page.sections.slices import slices
from rag_harness.page.sections.terms import terms

SectionOf: TypeAlias = Callable[[Sequence[Run]], "Section | None"]
SECTIONS: tuple[SectionOf, ...] = (
    *(first_screen, diff, race, decisions, differences, failures),
    *(retrieval, charts, scorecard, slices, about_run, method, terms),
)


def sections_of(runs: Sequence[Run]) -> list[Section]:
    """Return the sections that have content."""
    return [section for said in SECTIONS if (section := said(runs)) is not None]
