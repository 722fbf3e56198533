"""Links of the pages: each leads to a file that is there, and every page is reached from the map of all pages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
_LINK = re.compile(r"\]\(([^()\s]{1,300})\)")
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
MOST_WORDS = 900
"""A person who has thirty seconds reads no more."""


def links(page: Path) -> list[str]:
    """Return the targets of a page's links that lead to files, without what stands behind ``#``."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    found = [each.partition("#")[0] for each in _LINK.findall(text) if "://" not in each]
    return [each for each in found if each and not each.startswith("mailto:")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_each_link_leads_to_a_file(page: Path) -> None:
    lost = [each for each in links(page) if not (page.parent / each).exists()]
    assert lost == []


def test_every_page_is_reached_from_the_map() -> None:
    reached = {(DOCS / each).resolve() for each in links(DOCS / "index.md")}
    assert sorted(page.name for page in DOCS.rglob("*.md") if page.resolve() not in reached) == ["index.md"]


def test_the_readme_is_read_in_a_sitting() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= MOST_WORDS
