"""Checks that a quote is in the file that it names."""

from __future__ import annotations

from difflib import get_close_matches

from rag_harness.authoring.kb.page import Page, squeeze
from rag_harness.authoring.kb.validation.material import Material
from rag_harness.authoring.kb.validation.report import CheckResult
from rag_harness.words.sentence_ends import sentence_texts


def check_quote(check: CheckResult, material: Material, where: str, filename: str, quote: str) -> None:
    """Add a finding if ``quote`` is not in the page, or is there with other white space."""
    page = material.pages.get(filename)
    if page is None or quote in page.text:
        return
    shown = quote if len(quote) < 120 else f"{quote[:117]}…"
    if squeeze(quote) in page.squeezed:
        what = "stands there with other white space, which is accepted. Copy the quote as it is to silence this."
        check.note(where, f"quote {shown!r} of {filename} {what}")
    else:
        check.error(where, f"quote {shown!r} is not in {filename}.{_nearest(page, quote)} Copy the words of the page.")


def _nearest(page: Page, quote: str) -> str:
    close = get_close_matches(quote, sentence_texts(page.text), n=1)
    return f" The nearest there is {close[0].strip()!r}." if close else ""
