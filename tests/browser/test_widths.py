"""A narrow screen and a sheet of paper: nothing reaches beyond either."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.conftest import Opened, Pages
from tests.browser.sampled import one_in
from tests.browser.views import VIEWS, View

if TYPE_CHECKING:
    from playwright.sync_api import Page


NARROW = {"width": 360, "height": 740}
A4_PX = int((210 - 2 * 16) / 25.4 * 96)
"""What a sheet has between the margins of the style sheet, 16 mm, in CSS pixels."""
_CUT = """width => [...document.querySelectorAll('main *')]
    .filter(it => it.getClientRects().length && it.getBoundingClientRect().right > width + 1)
    .filter(it => !it.closest('.hidden, [hidden]'))
    .map(it => `${it.tagName}#${it.id}.${it.className.baseVal ?? it.className}: ${it.getBoundingClientRect().right}`)"""


@pytest.mark.parametrize("view", one_in(3, VIEWS), ids=str)
def test_a_narrow_screen_scrolls_in_one_direction(opened: Opened, pages: Pages, view: View) -> None:
    page = opened(pages(view.of), view.at, viewport=NARROW)
    view.arrive(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]


@pytest.mark.parametrize("width", [360, 1280])
def test_the_table_of_gates_is_as_wide_as_the_page(opened: Opened, study_page: Path, width: int) -> None:
    page = opened(study_page, viewport={"width": width, "height": 900})
    page.evaluate("document.querySelectorAll('details').forEach(it => it.open = true)")
    tables = page.locator("table[id^=table-gates]")
    assert tables.count() > 0
    assert (
        tables.evaluate_all("all => all.filter(it => it.scrollWidth > it.parentElement.clientWidth).map(it => it.id)")
        == []
    )


def test_paper_cuts_nothing(opened: Opened, study_page: Path) -> None:
    page = _on_paper(opened, study_page)
    assert page.evaluate(_CUT, A4_PX) == []


def test_paper_has_verdict_scorecard_charts_with_their_tables_and_failures(opened: Opened, study_page: Path) -> None:
    page = _on_paper(opened, study_page)
    assert all(
        page.locator(f"#{section}").is_visible() for section in ("first", "run", "scorecard", "charts", "failures")
    )
    tables = page.locator("#charts table")
    assert tables.count() > 5
    assert tables.evaluate_all("all => all.filter(it => it.offsetHeight < 20).map(it => it.id)") == []
    assert not page.locator("#trials").is_visible()


def test_paper_has_the_whole_method(opened: Opened, study_page: Path) -> None:
    page = _on_paper(opened, study_page)
    for words in ("Student's paired t-test", "git checkout", "Statistics", "Limits"):
        assert page.locator("#method").get_by_text(words).first.is_visible(), words


def test_a_trial_that_is_open_is_printed_without_the_list(opened: Opened, study_page: Path) -> None:
    page = _on_paper(opened, study_page, "#trials?open=e3-q003")
    assert page.locator("[data-panel]").is_visible()
    assert not page.locator("tr[data-trial]").first.is_visible()
    assert page.evaluate(_CUT, A4_PX) == []


def test_paper_is_light(opened: Opened, study_page: Path) -> None:
    page = opened(study_page)
    page.emulate_media(media="print", color_scheme="dark")
    light = "getComputedStyle(document.body).color.match(/\\d+/g).slice(0, 3).reduce((sum, part) => sum + +part, 0)"
    assert page.evaluate(light) < 200, "dark letters on white paper"


def _on_paper(opened: Opened, file: Path, at: str = "") -> Page:
    page = opened(file, at, viewport={"width": A4_PX, "height": 1000})
    page.emulate_media(media="print")
    return page
