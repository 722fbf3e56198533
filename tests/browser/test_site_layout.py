"""The documentation's site can be read: on a phone, beside its list of pages, with wide tables and outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, FloatRect, Locator, Page, ViewportSize


PHONE: ViewportSize = {"width": 390, "height": 844}
LAPTOP: ViewportSize = {"width": 1280, "height": 900}
Show = Callable[..., "Page"]
"""Name of a page, address in it, size of the window -> the page, opened."""


def box(part: Locator) -> FloatRect:
    found = part.bounding_box()
    assert found is not None, part
    return found


@pytest.fixture
def show(chromium: Browser, site: Path) -> Iterator[Show]:
    """Opens a page of the site. A request to anywhere else or an error of the page fails the test."""
    found: list[str] = []
    contexts = []

    def shown(name: str, at: str = "", size: ViewportSize = LAPTOP, **options: Any) -> Page:
        context = chromium.new_context(viewport=size, **options)
        contexts.append(context)
        context.set_offline(True)
        page = context.new_page()
        page.on("request", lambda request: None if request.url.startswith("file:") else found.append(request.url))
        page.on("pageerror", lambda error: found.append(str(error)))
        page.goto(f"{(site / f'{name}.html').as_uri()}{at}")
        return page

    yield shown
    for context in contexts:
        context.close()
    assert not found


@pytest.mark.long
def test_nothing_covers_the_text_of_a_phone(show: Show) -> None:
    page = show("reference/options", size=PHONE)
    page.mouse.wheel(0, 3000)
    page.wait_for_function("scrollY > 1000")
    page.mouse.wheel(0, -300)
    page.wait_for_timeout(300)
    assert not page.locator(".back-to-top").is_visible()


@pytest.mark.parametrize("name", ["reference/measures", "how-to/pairwise", "index"])
def test_the_entry_of_a_page_is_in_sight(show: Show, name: str) -> None:
    page = show(name)
    is_first = name == "index"
    assert page.locator(".sidebar-tree details[open]").count() == (0 if is_first else 1)
    assert page.locator(".sidebar-tree details").count() > 10
    if not is_first:
        assert 100 < box(page.locator(".sidebar-tree .current-page"))["y"] < LAPTOP["height"] - 30
    assert page.evaluate("scrollY") == 0


def test_a_group_of_pages_opens(show: Show) -> None:
    page = show("how-to/pairwise")
    link = page.locator(".sidebar-tree a[href='gates.html']")
    assert not link.is_visible()
    page.locator(".sidebar-tree summary", has_text="Gates").click()
    assert link.is_visible()


def test_without_javascript_all_pages_are_listed(show: Show) -> None:
    page = show("how-to/pairwise", java_script_enabled=False)
    assert page.locator(".sidebar-tree a[href='gates.html']").is_visible()


def test_the_headings_of_a_page_are_beside_it(show: Show) -> None:
    page = show("reference/gates")
    contents, text = box(page.locator(".toc-drawer")), box(page.locator("article"))
    assert text["x"] + text["width"] <= contents["x"] <= LAPTOP["width"] - contents["width"]
    assert page.evaluate("document.documentElement.scrollWidth") == LAPTOP["width"]


@pytest.mark.parametrize("name", ["reference/gates", "reference/options", "how-to/pairwise", "index"])
def test_a_page_is_no_wider_than_a_phone(show: Show, name: str) -> None:
    page = show(name, size=PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    assert page.evaluate("document.querySelector('.content').scrollWidth") <= PHONE["width"]


def test_a_wide_table_shows_that_it_can_be_moved(show: Show) -> None:
    page = show("reference/gates", size=PHONE)
    table = page.locator(".table-wrapper.container").first
    assert table.evaluate("each => each.scrollWidth > each.clientWidth")
    assert table.evaluate("each => getComputedStyle(each).backgroundAttachment") == "local, local, scroll, scroll"


@pytest.mark.parametrize("name", ["how-to/ci", "how-to/your-documents", "reference/answers"])
def test_an_option_is_not_broken_after_its_hyphens(show: Show, name: str) -> None:
    words = show(name, size=PHONE).locator("article :is(p, li) code .pre")
    rows = words.evaluate_all(
        "all => all.map(each => [each.textContent, each.getClientRects().length, each.offsetHeight])"
    )
    assert len(rows) > 5
    assert [word for word, lines, height in rows if lines > 1 or height > 30] == []


def test_columns_of_a_terminal_stay_columns(show: Show) -> None:
    page = show("how-to/pairwise", size=PHONE)
    output, command = page.locator(".highlight-text pre").first, page.locator(".highlight-none pre").first
    assert output.evaluate("each => each.scrollWidth > each.clientWidth && getComputedStyle(each).whiteSpace") == "pre"
    assert command.evaluate("each => each.scrollWidth <= each.clientWidth")


@pytest.mark.parametrize(
    ("page", "at"), [("reference/options", "rag-run"), ("reference/measures", "row-rerank-ms"), ("how-to/gates", "")]
)
def test_what_a_link_leads_to_is_marked(show: Show, page: str, at: str) -> None:
    tab = show(page, f"#{at}" if at else "")
    found = tab.evaluate(
        "Array.from(document.querySelectorAll('article :is(h1, h2, h3, h4, td)'))"
        ".filter(each => getComputedStyle(each).backgroundColor !== 'rgba(0, 0, 0, 0)')"
        ".map(each => each.innerText.trim())"
    )
    assert found == ([] if not at else [tab.locator(f"#{at}").inner_text().partition("\n")[0].strip()])


def test_the_map_of_all_pages_is_in_columns(show: Show) -> None:
    page = show("index")
    first, last = (box(page.locator(f"section#rag-harness > section#{name}")) for name in ("learn", "understand"))
    assert last["x"] > first["x"] + 200
    assert page.evaluate("document.documentElement.scrollHeight") < 4000
