"""Texts of strangers stay texts: nothing of them runs, asks, reaches over its neighbours, or chokes the page."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser.conftest import Opened, Pages, page_of
from tests.browser.hostile import ALL, IMAGE, LONG_ENDS, SCRIPT, UNBROKEN
from tests.browser.views import CHUNKS

SPOTS = {
    "labels": ".tags",
    **{
        name: f"[data-part='{name}']"
        for name in ("question", "answer", "ground truth", "why it failed", "in the prompt", "candidates", "stages")
    },
    **{name: f"[data-part='{name}']" for name in ("decisions", "reasoning", "raw output")},
}
"""Parts of an opened trial that show a hostile text."""
_TURNED = """() => {
    // Letters that stand from right to left, though their text has no override: one beside it has spilt over. Words
    // of the page in one text with an override, told by the dot between them. Within a text of a stranger they may.
    const found = [], range = document.createRange()
    const letter = (node, at) => {
        range.setStart(node, at)
        range.setEnd(node, at + 1)
        return range.getBoundingClientRect()
    }
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        const [before, ...turned] = node.data.split('\\u202e'), at = before.search(/[A-Za-z]{2}/)
        if (node.parentElement.closest('script, .text')) continue
        if (turned.join().includes(' · ')) found.push(turned.join())
        if (at < 0) continue
        const [first, second] = [letter(node, at), letter(node, at + 1)]
        if (first.width && first.top === second.top && first.left > second.left) found.push(node.data.slice(0, 60))
    }
    return found
}"""


@pytest.mark.parametrize(
    "at", ["", "#trials", "#trials?open=e3-q000", "#trials?open=e3-q000&with=e2-q000", "#trials?q=alert"]
)
@pytest.mark.parametrize("name", ["hostile"])
def test_nothing_of_it_runs_or_asks(opened: Opened, pages: Pages, at: str, name: str) -> None:
    page = opened(pages(name), at)
    page.evaluate("document.querySelectorAll('details').forEach(it => { it.removeAttribute('name'); it.open = true })")
    page.wait_for_timeout(100)
    assert page.locator("main img, main iframe, main object, main script, main style, main link").count() == 0
    assert page.locator("a[href^='javascript' i]").count() == 0
    handlers = "all => all.filter(it => [...it.attributes].some(one => one.name.startsWith('on'))).length"
    assert page.locator("*").evaluate_all(handlers) == 0


def test_it_is_shown_as_the_text_that_it_is(opened: Opened, pages: Pages) -> None:
    page = opened(pages("hostile"), "#trials?open=e3-q000")
    page.locator(CHUNKS).wait_for()
    page.evaluate("document.querySelectorAll('[data-panel] details').forEach(it => { it.open = true })")
    shown = {name: page.locator(spot).first.text_content() or "" for name, spot in SPOTS.items()}
    missing = [name for name, text in shown.items() if SCRIPT not in text and IMAGE not in text]
    assert not missing
    assert ALL.split("\x00")[0] in (page.locator("[data-part=question]").text_content() or "")


def test_it_stays_out_of_the_static_part_too(opened: Opened, pages: Pages) -> None:
    page = opened(pages("hostile"), java_script_enabled=False)
    assert page.locator("main img, main iframe, main script").count() == 0
    assert SCRIPT in (page.locator("#failures").text_content() or "")


def test_directions_do_not_reach_over_their_neighbours(opened: Opened, pages: Pages) -> None:
    page = opened(pages("hostile"), "#trials?open=e3-q000")
    page.locator(CHUNKS).wait_for()
    page.evaluate("document.querySelectorAll('details').forEach(it => { it.removeAttribute('name'); it.open = true })")
    assert page.evaluate(_TURNED) == []


def test_a_million_letters_are_shown_when_they_are_asked_for(opened: Opened, pages: Pages) -> None:
    page = opened(pages("hostile"), "#trials?open=e3-q001")
    answer = page.locator("[data-part=answer]")
    answer.wait_for()
    assert len(answer.inner_text()) < 50_000, "what stands in the page at first"
    answer.get_by_role("button", name="Show all").first.click()
    page.wait_for_function(
        "end => document.querySelector('[data-part=answer]').textContent.includes(end)", arg=LONG_ENDS
    )


def test_a_word_without_end_does_not_widen_the_page(opened: Opened, pages: Pages) -> None:
    for at in ("", "#trials", "#trials?open=e3-q002"):
        page = opened(pages("hostile"), at, viewport={"width": 360, "height": 740})
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, at
    assert UNBROKEN[:1000] in (page.locator("[data-part=answer]").text_content() or "")


def test_a_row_that_cannot_be_read_is_a_lost_trial(opened: Opened, pages: Pages) -> None:
    page = opened(pages("hostile"), "#trials?open=e3-q003")
    page.locator("[data-panel] h3").wait_for()
    assert "lost" in page.locator(".tags").inner_text()


def test_half_a_letter_in_a_claim_is_shown_as_a_sign_for_it(opened: Opened, pages: Pages) -> None:
    page = opened(pages("hostile"), "#trials?open=e2-q001")
    page.locator("[data-part=answer]").wait_for()
    assert SCRIPT in (page.locator("[data-part=answer]").text_content() or "")


def test_a_hostile_plain_page_is_inert_too(opened: Opened, pages: Pages, places: Path) -> None:
    pages("hostile")
    file = page_of(places / "plain.html", places / "hostile", is_plain=True)
    page = opened(file, "#trials?open=e3-q000")
    page.locator(CHUNKS).wait_for()
    assert page.locator("main img").count() == 0
