"""axe-core finds no fault in any view, light and dark; and it finds a planted one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

from tests.browser.conftest import Opened, Pages
from tests.browser.sampled import one_in
from tests.browser.views import VIEWS, View

if TYPE_CHECKING:
    from playwright.sync_api import Page


SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")


def violations(page: Page, of: str = "html", rules: Sequence[str] = ()) -> list[str]:
    """Return what axe-core complains of, by all ``rules`` or by some: rule, how bad, and the first elements."""
    axe = pytest.importorskip("axe_playwright_python.base", reason="axe is not installed: pip install '.[browser]'")
    # Through the debugger, which the page's policy does not bind.
    page.evaluate("typeof axe") == "object" or page.evaluate(axe.AXE_SCRIPT)
    options = {"resultTypes": ["violations"], **({"runOnly": list(rules)} if rules else {})}
    found: list[dict[str, Any]] = page.evaluate(
        "async ([of, options]) => (await axe.run(of, options)).violations", [of, options]
    )
    return [f"{it['id']} ({it['impact']}): {[node['html'][:200] for node in it['nodes'][:3]]}" for it in found]


@pytest.mark.parametrize("view", one_in(4, [view for view in VIEWS if view.name != "top"]), ids=str)
def test_no_violation(opened: Opened, pages: Pages, view: View) -> None:
    page = opened(pages(view.of), view.at)
    view.arrive(page)
    # What stands above the trials is the same in all their views, and was looked at unfolded.
    of = "#trials" if view.at else "#diff" if view.of == "two" else "html"
    assert not violations(page, of)
    page.emulate_media(color_scheme="dark")
    assert not violations(page, of, ["color-contrast"]), "in the dark, where nothing but the colours differs"


def test_both_schemes_are_the_pages_own(opened: Opened, study_page: Path) -> None:
    page = opened(study_page)
    seen = []
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        seen.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert seen[0] != seen[1]


def test_axe_would_find_one(opened: Opened, study_page: Path) -> None:
    page = opened(study_page)
    page.evaluate("document.querySelector('#trials').append(document.createElement('button'))")
    (found,) = violations(page, "#trials")
    assert found.startswith("button-name")
