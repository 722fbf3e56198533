"""Checks a page before it is kept: it follows the plan, is no copy, and agrees with its other version."""

from __future__ import annotations

from pathlib import Path

from rag_harness.authoring.kb.brief import Brief
from rag_harness.authoring.kb.page import fold
from rag_harness.authoring.kb.plan import Plan
from rag_harness.authoring.kb.writing.label import body_of
from rag_harness.authoring.kb.writing.page_checks import faults
from rag_harness.files.sources import text_digest
from rag_harness.models.until_right import Fault


class WrittenPageReader:
    """Reads pages as they come, and remembers them in place of the folder: an accepted page is known at once."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self._plan, self._folder = plan, folder
        self._taken: dict[str, str] = {}

    def know(self, name: str) -> None:
        """Remember a page that is in the folder already."""
        self._taken.setdefault(_content((self._folder / name).read_text(encoding="utf-8")), name)

    async def read(self, brief: Brief, text: str) -> str | Fault:
        """Return the page, or what is wrong with it."""
        found = faults(brief, self._plan, text)
        if not found:
            first = self._taken.setdefault(_content(text), brief.page.filename)
            if first == brief.page.filename:
                return text
            found = [f"{brief.page.filename} is word for word {first}. Write what is planned for this page."]
        return Fault("\n".join(f"- {fault}" for fault in found))


def _content(text: str) -> str:
    """Return a digest of a page without its title: the same contents under another name count as the same."""
    title, _, rest = body_of(text).partition("\n")
    return text_digest(fold(rest if title.startswith("# ") else f"{title}\n{rest}"))
