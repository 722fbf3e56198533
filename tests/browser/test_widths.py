"""A narrow screen and a sheet of paper: nothing reaches beyond either."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.conftest import Opened, Pages
from tests.browser.views import VIEWS, View

if TYPE_CHECKING:
    from playwright.sync_api import Page

NARROW = {"width": 360, "height": 740}
A4_PX = int((210 - 2 * 15) / 25.4 * 96)
"""What a sheet has between margins of 15 mm, in CSS pixels."""
_CUT = """width => [...document.querySelectorAll('main *')]
    .filter(it => it.getClientRects().length && it.getBoundingClientRect().right > width + 1)
    .filter(it => !it.closest('.hidden, [hidden]'))
    .map(it => `${it.tagName}#${it.id}.${it.className.baseVal ?? it.className}: ${it.getBoundingClientRect().right}`)"""


@pytest.mark.parametrize("view", VIEWS, ids=str)
def test_a_narrow_screen_scrolls_in_one_direction(opened: Opened, pages: Pages, view: View) -> None:
    page = opened(pages(view.of), view.at, viewport=NARROW)
    view.arrive(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]


def test_paper_cuts_nothing(opened: Opened, study_page: Path) -> None:
    page = _on_paper(opened, study_page)
    assert page.evaluate(_CUT, A4_PX) == []


def test_paper_shows_what_the_screen_folds(opened: Opened, study_page: Path) -> None:
    page = _on_paper(opened, study_page)
    folded = page.locator("main details")
    hidden = [text for text in folded.evaluate_all("all => all.filter(it => it.offsetHeight < 40).map(it => it.innerText)")]
    assert hidden == []


def test_paper_is_light(opened: Opened, study_page: Path) -> None:
    page = opened(study_page)
    page.emulate_media(media="print", color_scheme="dark")
    light = "getComputedStyle(document.body).color.match(/\\d+/g).slice(0, 3).reduce((sum, part) => sum + +part, 0)"
    assert page.evaluate(light) < 200, "dark letters on white paper"


def _on_paper(opened: Opened, file: Path) -> Page:
    page = opened(file, viewport={"width": A4_PX, "height": 1000})
    page.emulate_media(media="print")
    return page
