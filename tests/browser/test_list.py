"""The list of trials: its columns are in sight, and what is opened by a link stands in it, however far down."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser.conftest import Opened, Pages
from tests.browser.test_journey import focused, trials_of

WIDE = {"width": 1280, "height": 900}
_OVERFLOW = """() => { const it = document.querySelector('.list > .scroll'); return it.scrollWidth - it.clientWidth }"""
_TOP = "() => document.querySelector('#trials-title').getBoundingClientRect().top"


@pytest.fixture(scope="session")
def long_page(pages: Pages) -> Path:
    """The page of 180 trials with long questions: more than the list shows at once."""
    return pages("long")


def test_long_questions_push_no_column_out_of_sight(opened: Opened, long_page: Path) -> None:
    page = opened(long_page, "#trials", viewport=WIDE)
    assert page.evaluate(_OVERFLOW) == 0
    assert page.locator(".list th.num").last.is_visible()


def test_a_link_to_all_trials_shows_their_heading(opened: Opened, long_page: Path) -> None:
    page = opened(long_page, "#trials", viewport=WIDE)
    page.wait_for_function(f"() => (({_TOP})()) < 100")


def test_a_trial_far_down_is_in_the_list_when_a_link_opens_it(opened: Opened, long_page: Path) -> None:
    page = opened(long_page, "#trials?sort=trial&open=e3-q050", viewport=WIDE)
    page.locator("[data-panel] h3", has_text="e3-q050").wait_for()
    row = page.locator("tr[aria-current]")
    assert row.get_attribute("data-trial") == "e3-q050"
    inside = """() => {
        const box = (it) => document.querySelector(it).getBoundingClientRect()
        const [row, frame] = [box('tr[aria-current]'), box('.list > .scroll')]
        return frame.top <= row.top + 1 && row.bottom <= frame.bottom + 1
    }"""
    page.wait_for_function(inside)
    assert trials_of(page)[0] == "e2-q040", "the list begins at a hundred"


def test_the_list_goes_on_at_both_ends(opened: Opened, long_page: Path) -> None:
    page = opened(long_page, "#trials?sort=trial&open=e3-q050", viewport=WIDE)
    page.locator("[data-panel] h3", has_text="e3-q050").wait_for()
    page.get_by_role("button", name="Show 100 before").click()
    assert focused(page, "tr[data-trial=e2-q039] a")
    assert len(trials_of(page)) == 180
    assert not page.get_by_role("button", name="Show 100 before").count()


def test_the_keys_step_over_the_end_of_what_is_shown(opened: Opened, long_page: Path) -> None:
    page = opened(long_page, "#trials?sort=trial&open=e2-q039", viewport=WIDE)
    page.locator("[data-panel] h3", has_text="e2-q039").wait_for()
    page.keyboard.press("j")
    page.locator("[data-panel] h3", has_text="e2-q040").wait_for()
    assert page.locator("tr[aria-current]").get_attribute("data-trial") == "e2-q040"
    page.keyboard.press("k")
    page.locator("[data-panel] h3", has_text="e2-q039").wait_for()
    assert page.locator("tr[aria-current]").get_attribute("data-trial") == "e2-q039"
