"""axe-core finds nothing in any view, light and dark; and it would."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

from tests.browser.conftest import Opened, Pages
from tests.browser.views import IDS, VIEWS, View

if TYPE_CHECKING:
    from playwright.sync_api import Page

SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")


def violations(page: Page) -> list[str]:
    """Return what axe-core complains of: rule, how bad, and the first elements."""
    axe = pytest.importorskip("axe_playwright_python.base", reason="axe is not installed: pip install '.[browser]'")
    # Through the debugger, which the page's policy does not bind.
    page.evaluate(axe.AXE_SCRIPT)
    found: list[dict[str, Any]] = page.evaluate("async () => (await axe.run()).violations")
    return [f"{it['id']} ({it['impact']}): {[node['html'][:200] for node in it['nodes'][:3]]}" for it in found]


@pytest.mark.parametrize("view", VIEWS, ids=IDS)
def test_no_violation(opened: Opened, pages: Pages, view: View) -> None:
    page = opened(pages(view.of), view.at)
    view.arrive(page)
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        assert not violations(page), scheme


def test_both_schemes_are_the_pages_own(opened: Opened, study_page: Path) -> None:
    page = opened(study_page)
    seen = []
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        seen.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert seen[0] != seen[1]


def test_axe_would_find_one(opened: Opened, study_page: Path) -> None:
    page = opened(study_page)
    markup = json.dumps('<img src="data:,"><p style="color:#ccc;background:#fff">pale</p>')
    page.evaluate(f"document.querySelector('main').insertAdjacentHTML('beforeend', {markup})")
    assert any(line.startswith("image-alt") for line in violations(page))
