"""By keyboard alone, on a narrow screen, light and dark, with motion reduced: axe-core finds nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from tests.browser.sampled import one_in
from tests.browser.service.asking import asked
from tests.browser.service.conftest import Visit
from tests.browser.service.near import Near
from tests.browser.service.stub import ANSWER, Refusal, Stub, answered, document, events
from tests.browser.service.test_add import added
from tests.browser.test_accessible import violations
from tests.browser.test_journey import focused, press_until

if TYPE_CHECKING:
    from playwright.sync_api import Page


NARROW = {"width": 360, "height": 740}


def start(page: Page, stub: Stub) -> None:
    page.locator("[data-document]").first.wait_for()


def opened(page: Page, stub: Stub) -> None:
    answer = asked(page)
    answer.get_by_role("button", name="Source 1").click()
    answer.get_by_role("button", name="Yes").click()
    answer.get_by_text("Thank you").wait_for()


def growing(page: Page, stub: Stub) -> None:
    stub.says = [*events()[:8], 30.0]
    asked(page, state="growing")


def withdrawn(page: Page, stub: Stub) -> None:
    reasons = ["UNGROUNDED_CLAIM: it is so", "SOMETHING_NEW"]
    stub.says = events(answered(answer="No [Source 9].", citations=[], decision="warn", reasons=reasons), ["Yes."])
    asked(page).locator(".box summary").click()


def refused(page: Page, stub: Stub) -> None:
    stub.refuses["POST /query"] = Refusal(429, "60 questions a minute", {"Retry-After": "12"})
    asked(page, state="failed")


def files(page: Page, stub: Stub) -> None:
    stub.documents = [document(f"{n}.md", status=status) for n, status in enumerate(["failed", "pending"] * 5)]
    added(page, "new.md").locator(".good").wait_for()
    page.get_by_label("Find a document").wait_for()


def key_box(page: Page, stub: Stub) -> None:
    page.get_by_role("button", name="API key").click()


def delete_box(page: Page, stub: Stub) -> None:
    page.get_by_role("button", name="Delete lamps.md").click()


VIEWS = (start, opened, growing, withdrawn, refused, files, key_box, delete_box)


@pytest.mark.parametrize("view", one_in(3, VIEWS), ids=lambda view: view.__name__)
def test_no_violation_and_no_scrolling_sideways(
    visit: Visit, stub: Stub, near: Near, view: Callable[[Page, Stub], None]
) -> None:
    near.statuses.add(429)
    page = visit(viewport=NARROW, reduced_motion="reduce")
    view(page, stub)
    assert not violations(page)
    page.emulate_media(color_scheme="dark")
    assert not violations(page, "html", ["color-contrast"])
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]
    assert page.evaluate("document.getAnimations().length") == 0, "motion is reduced"


def test_motion_where_it_is_wanted(visit: Visit, stub: Stub) -> None:
    page = visit(reduced_motion="no-preference")
    growing(page, stub)
    assert page.evaluate("document.getAnimations().length") == 1


def test_by_keyboard_alone(visit: Visit, stub: Stub) -> None:
    page = visit()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert focused(page, "#question"), "the first key skips to the question"
    page.keyboard.type("How long can I return a lamp?")
    page.keyboard.press("Shift+Enter")
    assert page.locator("#question").input_value().endswith("\n")
    page.keyboard.press("Enter")
    page.locator(".answer[data-state=done]").wait_for()
    assert focused(page, "#question"), "an answer does not take the focus"
    press_until(page, "Tab", "[data-source='2']")
    page.keyboard.press("Enter")
    assert focused(page, "[data-passage='2'] summary")
    page.locator("[data-passage='2'] mark").wait_for()
    page.keyboard.press("Escape")
    assert focused(page, "[data-source='2']"), "Escape goes back to the answer"
    page.locator("[data-passage='2'] mark").wait_for(state="detached")
    page.keyboard.press("Space")
    press_until(page, "Tab", "[data-passage='2'] button")
    page.keyboard.press("Enter")
    assert focused(page, "[data-source='2']"), "and so does the button"
    press_until(page, "Tab", "[data-document='id-of-lamps.md'] button:first-child")
    page.keyboard.press("Enter")
    page.keyboard.type("lamps?")
    assert page.locator("#question").input_value() == "How long can I return a lamp?\nlamps?"
    press_until(page, "Tab", "[data-document='id-of-bulbs.pdf'] button:last-child")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.locator("[data-document='id-of-bulbs.pdf']").wait_for(state="detached")


def test_stop_by_keyboard_and_the_focus_goes_along(visit: Visit, stub: Stub) -> None:
    stub.says = [*events()[:6], 30.0]
    page = visit()
    page.get_by_label("Your question").fill("How long?")
    press_until(page, "Tab", "#ask-now")
    page.keyboard.press("Enter")
    page.locator(".answer[data-state=growing]").wait_for()
    assert focused(page, "#stop")
    page.keyboard.press("Enter")
    page.locator(".answer[data-state=stopped]").wait_for()
    assert focused(page, "#ask-now")


def test_a_second_question_waits_for_the_first(visit: Visit, stub: Stub) -> None:
    stub.says = [*events()[:6], 1.0, *events()[6:]]
    page = visit()
    asked(page, state="growing")
    page.get_by_label("Your question").press("Enter")
    assert "still being answered" in page.locator("#said").inner_text()
    page.locator(".answer[data-state=done]").wait_for()
    assert page.locator(".answer").count() == 1
    assert page.locator(".said").text_content() == ANSWER


def test_without_javascript_the_page_says_what_it_needs(visit: Visit) -> None:
    page = visit(java_script_enabled=False)
    assert "needs JavaScript" in page.locator("main").inner_text()
