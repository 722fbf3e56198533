"""Says which languages the pages are in, and what is not checked of those that are not English."""

from __future__ import annotations

from rag_harness.authoring.kb.validation.material import Material
from rag_harness.authoring.kb.validation.report import CheckResult
from rag_harness.dataset.document_languages import languages_said, with_languages
from rag_harness.types import Document
from rag_harness.words.languages import ENGLISH


def checks(material: Material) -> list[CheckResult]:
    """Return a check with notes; none where every page is in English."""
    pages = with_languages([Document(name, page.body, name) for name, page in material.pages.items()])
    notes = languages_said(pages)
    if not notes:
        return []
    check = CheckResult("languages", f"{len(pages)} pages")
    for note in notes:
        check.note(str(material.folder), note)
    if any(page.language != ENGLISH for page in pages):
        check.note(str(material.folder), "Contradictions between versions of a page are looked for in English alone.")
    return [check]
