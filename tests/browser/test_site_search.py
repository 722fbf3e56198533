"""The search of the documentation's site finds what readers ask for, in their own words, without a network.

The questions of ``searches.jsonl`` were written by readers who had not seen the search, with the pages that answer
each.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.sampled import one_in

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Dialog, Page, Request


Search = Callable[[str], "Page"]
"""Question -> page of results."""
FIRST = 3
"""Pages that a reader looks at."""
SEARCHES = [
    json.loads(line) for line in Path(__file__).with_name("searches.jsonl").read_text(encoding="utf-8").splitlines()
]


@pytest.fixture(scope="session")
def tab(chromium: Browser, site: Path) -> Iterator[tuple[Page, list[str]]]:
    """The page of results, without a network, and what it did that it must not."""
    found: list[str] = []

    def asks(request: Request) -> None:
        if not request.url.startswith("file:"):
            found.append(f"asked for: {request.url}")

    def pops_up(dialog: Dialog) -> None:
        found.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    context = chromium.new_context()
    context.set_offline(True)
    page = context.new_page()
    page.on("request", asks)
    page.on("pageerror", lambda error: found.append(f"error: {error}"))
    page.on("dialog", pops_up)
    page.goto((site / "search.html").as_uri())
    yield page, found
    context.close()


@pytest.fixture
def search(tab: tuple[Page, list[str]]) -> Iterator[Search]:
    """Types a question. A request to anywhere else, an error of the page or a dialog fails the test."""
    page, found = tab

    def searched(asked: str) -> Page:
        box = page.locator('input[name="q"]').first
        box.fill(asked)
        box.press("Enter")
        return page

    yield searched
    assert not found


def places(page: Page) -> list[str]:
    return [str(link.get_attribute("href")) for link in page.locator("#search-results a").all()]


@pytest.mark.parametrize("each", one_in(4, SEARCHES), ids=lambda each: each["query"])
def test_a_reader_finds_the_page(search: Search, each: dict[str, Any]) -> None:
    found = places(search(each["query"]))
    pages = list(dict.fromkeys(place.partition(".html")[0] for place in found))
    assert set(pages[:FIRST]) & set(each["pages"]), found[:10]


def test_what_is_found_is_there(search: Search, site: Path) -> None:
    page = search("--rag-run")
    assert places(page)[0] == "reference/options.html#rag-run"
    page.locator("#search-results a").first.click()
    page.locator("#rag-run").wait_for()
    page.go_back()
    assert page.locator("#search-state").inner_text().endswith("for “--rag-run”")


def test_a_slip_is_taken_for_the_nearest_word(search: Search) -> None:
    assert places(search("faithfullness"))[0].partition("#")[0] in (
        "reference/glossary.html",
        "reference/measures.html",
    )


@pytest.mark.parametrize("asked", ["", "the", "zzqqxv", "<img src=x onerror=alert(1)>", "%", "a" * 2000])
def test_any_question_gets_an_answer(search: Search, asked: str) -> None:
    page = search(asked)
    said = page.locator("#search-state").inner_text()
    assert said.startswith("Type what you look for") if not asked else asked in said
    assert page.locator("#search-results img").count() == 0


def test_a_word_that_most_pages_have_finds_nothing_by_itself(search: Search) -> None:
    page = search("german documents")
    shown = [line.lower() for line in page.locator("#search-results li").all_inner_texts()]
    assert 3 < len(shown) < 20
    assert sum("german" in line for line in shown) >= len(shown) - 2


def test_a_word_of_another_form_finds_the_same(search: Search) -> None:
    assert set(places(search("cassette"))) == set(places(search("cassettes")))


def test_words_that_no_page_has_are_named(search: Search) -> None:
    page = search("xylophones or zithers in a cassette")
    said = page.locator("#search-state").inner_text()
    assert said.startswith("No page has “xylophones” or “zithers”. ")
    assert "cassette" not in said.partition(" for ")[0]
    assert places(page)
    assert "No page has" not in search("cassettes").locator("#search-state").inner_text()


def test_a_word_that_only_leads_to_a_page_is_named_too(search: Search) -> None:
    page = search("weaviate")
    assert page.locator("#search-state").inner_text() == "No page has “weaviate”. 1 place for “weaviate”"
    assert places(page) == ["how-to/bring-your-own-pipeline.html"]


def test_another_word_for_it_is_looked_for_too(search: Search) -> None:
    assert "reference/glossary.html#row-recording" in places(search("cassette"))


def test_a_row_says_what_its_cells_are(search: Search) -> None:
    row = search("rerank_ms").locator('#search-results li:has(a[href="reference/measures.html#row-rerank-ms"])')
    assert "unit: ms; better: lower" in row.inner_text()
