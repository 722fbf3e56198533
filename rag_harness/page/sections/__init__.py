"""The sections of the report, in their order: the tuple ``SECTIONS``.

``report`` calls it. A section is a function of the runs, now first, then before; it returns content and knows no
HTML. Begin reading with ``first_screen.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from rag_harness.page.content import Section
from rag_harness.page.drawings import FIGURES
from rag_harness.page.run import Run
from rag_harness.page.sections.comparison import diff, differences, race
from rag_harness.page.sections.failures import failures
from rag_harness.page.sections.first_screen import decisions, first_screen
from rag_harness.page.sections.method import about_run, method, terms
from rag_harness.page.sections.scorecard import retrieval, scorecard, slices

# The section of figures, each with a table of its data. The one that compares experiments is on the first screen.


def charts(runs: Sequence[Run]) -> Section | None:
    """Return the figures of the first run; None where nothing can be drawn."""
    found = [figure for drawn in FIGURES if (figure := drawn(runs[0])) is not None]
    return Section("charts", "Charts", found) if found else None


# The sections of the report, in their order. Each file has one: a function of the runs, now first, then before.

SectionOf: TypeAlias = Callable[[Sequence[Run]], "Section | None"]
SECTIONS: tuple[SectionOf, ...] = (
    *(first_screen, diff, race, decisions, differences, failures),
    *(retrieval, charts, scorecard, slices, about_run, method, terms),
)


def sections_of(runs: Sequence[Run]) -> list[Section]:
    """Return the sections that have content."""
    return [section for said in SECTIONS if (section := said(runs)) is not None]
