"""What is asked of a page before it is kept: is it as planned, is it one of its own, does it agree with its version?"""

from __future__ import annotations

from pathlib import Path

from rag_harness.authoring.kb.brief import Brief
from rag_harness.authoring.kb.page import fold
from rag_harness.authoring.kb.plan import Plan
from rag_harness.authoring.kb.writing.checks import faults
from rag_harness.authoring.kb.writing.label import body_of
from rag_harness.files.sources import text_digest
from rag_harness.models.until_right import Fault


class Reader:
    """Reads pages as they come. What it has read stands for the folder: a page that was taken is known at once."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self._plan, self._folder = plan, folder
        self._taken: dict[str, str] = {}

    def know(self, name: str) -> None:
        """Take in a page that is in the folder already."""
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
    """Return a digest of a page without its title: the same page under another name is the same."""
    title, _, rest = body_of(text).partition("\n")
    return text_digest(fold(rest if title.startswith("# ") else f"{title}\n{rest}"))
