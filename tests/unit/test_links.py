"""Links of the pages: each leads to a file that is there, and every page is reached from the map of all pages."""

from __future__ import annotations

import re
from pathlib import Path

from tests.unit.pages import DOCS, ROOT, found, read

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
_LINK = re.compile(r"\]\(([^()\s]{1,300})\)")
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
MOST_WORDS = 900
"""A person who has thirty seconds reads no more."""


def links(page: Path) -> list[tuple[str, str]]:
    """Return the places and the targets of a page's links that lead to files, without what stands behind ``#``."""
    targets = [(where, each.partition("#")[0]) for where, each in found(_LINK, page, but=_FENCE) if "://" not in each]
    return [(where, each) for where, each in targets if each and not each.startswith("mailto:")]


def test_each_link_leads_to_a_file() -> None:
    lost = [f"{where}: {each}" for page in PAGES for where, each in links(page) if not (page.parent / each).exists()]
    assert not lost, "\n".join(lost)


def test_every_page_is_reached_from_the_map() -> None:
    maps = (DOCS / "index.md", DOCS / "dev" / "README.md")
    reached = {(page.parent / each).resolve() for page in maps for _, each in links(page)}
    assert sorted(page.name for page in DOCS.rglob("*.md") if page.resolve() not in reached) == ["index.md"]


def test_the_readme_is_read_in_a_sitting() -> None:
    assert len(read(ROOT / "README.md").split()) <= MOST_WORDS
