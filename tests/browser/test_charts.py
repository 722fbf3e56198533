"""Charts on a narrow and on a wide screen: their texts can be read, their tables need no scrolling, colours agree."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.conftest import Opened, page_of
from tests.browser.runs import Study
from tests.browser.sampled import one_in
from tests.browser.test_accessible import violations
from tests.browser.test_widths import NARROW

if TYPE_CHECKING:
    from playwright.sync_api import Page


MIDDLE, WIDE = {"width": 680, "height": 900}, {"width": 1440, "height": 900}
MANY = tuple(f"e{n}" if n < 3 else f"variant {n} with a name of many words, which goes on" for n in range(1, 20))
_SIZES = """() => [...document.querySelectorAll("svg.chart")].filter((it) => it.checkVisibility()).flatMap((it) => {
    const scale = it.getBoundingClientRect().width / it.viewBox.baseVal.width;
    return [...it.querySelectorAll("text")].map((text) => scale * parseFloat(getComputedStyle(text).fontSize));
})"""
_COLOURS = """() => [...document.querySelectorAll(".kind")].map((it) => {
    const { backgroundColor, backgroundImage } = getComputedStyle(it);
    return [it.parentElement.textContent.trim(), backgroundColor, backgroundImage];
})"""


@pytest.fixture(scope="module")
def many_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of nineteen experiments."""
    folder = tmp_path_factory.mktemp("many")
    return page_of(folder / "many.html", Study(MANY).write(folder / "many"))


@pytest.mark.parametrize("viewport", [NARROW, MIDDLE, WIDE], ids=["narrow", "middle", "wide"])
@pytest.mark.parametrize("of", one_in(2, ["many", "study"]))
def test_texts_of_charts_have_11_pixels(
    opened: Opened, study_page: Path, many_page: Path, of: str, viewport: dict[str, int]
) -> None:
    page = _unfolded(opened(study_page if of == "study" else many_page, viewport=viewport))
    sizes = page.evaluate(_SIZES)
    assert len(sizes) > 100
    assert min(sizes) >= 11
    assert max(sizes) <= 17, "no chart is blown up, either"
    assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]


def test_tables_of_charts_have_what_they_say_below_the_rows_name_on_a_narrow_screen(
    opened: Opened, study_page: Path
) -> None:
    page = _unfolded(opened(study_page, viewport=NARROW))
    tables = page.locator("#charts table")
    assert tables.count() > 5
    assert tables.evaluate_all("all => all.filter(it => it.scrollWidth > it.closest('.scroll').clientWidth)") == []
    row = page.locator("#table-figure-compared tbody tr").last
    name, first = row.locator("th"), row.locator("td").first
    assert name.bounding_box()["y"] < first.bounding_box()["y"]
    assert first.bounding_box()["width"] > 300, "each cell has a line of its own"
    assert not tables.locator("thead:visible").count()
    assert first.evaluate("it => getComputedStyle(it, '::before').content") == '"recall@5 ↑"'


@pytest.mark.long
def test_many_experiments_have_small_charts_and_no_violation(opened: Opened, many_page: Path) -> None:
    page = opened(many_page, viewport=WIDE)
    small = page.locator("#table-figure-ranks").locator("xpath=ancestor::figure").locator("svg")
    assert small.count() == 16
    first, second = (small.nth(place).bounding_box() for place in (0, 1))
    assert first is not None
    assert second is not None
    assert first["y"] == second["y"], "beside each other"
    assert not violations(page, "#charts")
    page.emulate_media(color_scheme="dark")
    assert not violations(page, "#charts", ["color-contrast"])


def test_a_kind_of_answer_has_one_colour_in_tables_and_in_the_list(opened: Opened, study_page: Path) -> None:
    page = _unfolded(opened(study_page, "#trials"))
    page.locator("tr[data-trial] .kind").first.wait_for()
    looks: dict[str, set[tuple[str, str]]] = {}
    for name, colour, pattern in page.evaluate(_COLOURS):
        looks.setdefault(name, set()).add((colour, pattern))
    assert len(looks) > 4
    assert {len(found) for found in looks.values()} == {1}
    assert len({look for found in looks.values() for look in found}) == len(looks)
    listed = page.locator("tr[data-trial] td", has=page.locator(".kind")).all_inner_texts()
    assert set(listed) <= set(looks)


def _unfolded(page: Page) -> Page:
    page.evaluate("document.querySelectorAll('details').forEach(it => { it.open = true })")
    return page
