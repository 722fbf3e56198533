"""Whoever points at a claim, or comes to it by keyboard, sees its sources and their words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.browser.conftest import Opened, Pages
from tests.browser.test_journey import press_until

if TYPE_CHECKING:
    from playwright.sync_api import Page


AT = "#trials?open=e3-q003&by=citation_support"
FIRST = ["Cites Source 1: no support", "Not cited: Source 3: full support, “within 14 days of delivery”"]
SECOND = ["Cites Source 2: partial support, “a new label”"]


def told(page: Page) -> list[str]:
    return [" ".join(text.split()) for text in page.locator("#tip li").all_inner_texts()]


def shown(page: Page) -> Page:
    page.locator(".claim[tabindex]").first.wait_for()
    return page


def test_the_mouse_on_a_claim_shows_its_sources_and_takes_them_away(opened: Opened, pages: Pages) -> None:
    page = shown(opened(pages("cited"), AT))
    assert page.locator("#tip").is_hidden()
    claims = page.locator(".claim[tabindex]")
    claims.nth(0).hover()
    page.locator("#tip").wait_for()
    assert told(page) == FIRST
    claims.nth(1).hover()
    assert told(page) == SECOND
    page.locator("#tip").hover()
    assert page.locator("#tip").is_visible(), "what is told can be pointed at, and copied"
    page.locator("[data-panel] h3").hover()
    page.locator("#tip").wait_for(state="hidden")


def test_the_keyboard_comes_to_a_claim_and_escape_takes_its_sources_away_first(opened: Opened, pages: Pages) -> None:
    page = shown(opened(pages("cited"), AT))
    press_until(page, "Tab", ".claim[tabindex]", presses=300)
    assert told(page) == FIRST
    claim = page.locator(".claim[tabindex]").first
    assert claim.get_attribute("aria-describedby") == page.locator("#tip").get_attribute("id")
    page.keyboard.press("Escape")
    page.locator("#tip").wait_for(state="hidden")
    assert page.locator("[data-panel] h3").is_visible(), "the trial stays open"
    press_until(page, "Tab", ".claim[tabindex]:nth-of-type(2)")
    assert told(page) == SECOND


def test_what_is_told_stands_within_the_page(opened: Opened, pages: Pages) -> None:
    for width in (360, 1440):
        page = shown(opened(pages("cited"), AT, viewport={"width": width, "height": 800}))
        page.locator(".claim[tabindex]").first.hover()
        box = page.locator("#tip").bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width


def test_the_list_of_claims_says_the_same_and_leads_to_the_source(opened: Opened, pages: Pages) -> None:
    page = shown(opened(pages("cited"), AT))
    lines = [" ".join(text.split()) for text in page.locator(".claims .sources li").all_inner_texts()]
    assert lines == [*FIRST, *SECOND]
    page.locator(".claims .sources").get_by_role("button", name="Source 3").click()
    assert page.evaluate("document.activeElement.dataset.chunk") == "3"


def test_claims_of_other_measures_are_as_they_were(opened: Opened, pages: Pages) -> None:
    page = opened(pages("cited"), "#trials?open=e3-q003&by=faithfulness")
    page.locator(".claim").first.wait_for()
    assert page.locator(".claim[tabindex]").count() == 0
