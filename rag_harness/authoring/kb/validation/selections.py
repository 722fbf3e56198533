"""Checks that a query's selected text is, in full, in one page."""

from __future__ import annotations

from rag_harness.authoring.kb.page import squeeze
from rag_harness.authoring.kb.validation.material import Material
from rag_harness.authoring.kb.validation.question_files import Read
from rag_harness.authoring.kb.validation.report import CheckResult
from rag_harness.dataset.queries import QueryLine

SELECTED = "selected_text"
_SHOWN = 80


def selections(material: Material, read: Read[QueryLine]) -> CheckResult:
    """Return the check of ``inputs.selected_text``. White space may differ, as it does on a shown page."""
    selecting = [(line, query) for line, query in read.entries if SELECTED in query.inputs]
    check = CheckResult("selections", f"{len(selecting)} selections")
    for line, query in selecting:
        said = query.inputs[SELECTED]
        words = squeeze(said) if isinstance(said, str) else ""
        if not words:
            check.error(
                read.at(line), f"{query.query_id} has a selected_text without words. Write it, or leave it out."
            )
        elif not any(words in page.squeezed for page in material.pages.values()):
            shown = words if len(words) <= _SHOWN else f"{words[:_SHOWN]}…"
            what = f"{query.query_id} selects words that stand in no page: {shown!r}. Copy them from one page."
            check.error(read.at(line), what)
    return check
