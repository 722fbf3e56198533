"""The first screen holds best, how sure, main cause and next without scrolling, on a desk and on a phone."""

from __future__ import annotations

from typing import Literal

import pytest

from tests.browser.conftest import Opened, Pages
from tests.browser.sampled import one_in

_BOTTOMS = "all => all.map(it => it.getBoundingClientRect().bottom)"


@pytest.mark.parametrize("scheme", one_in(2, ["light", "dark"]))
@pytest.mark.parametrize(("width", "height"), [(1440, 900), (360, 800)])
@pytest.mark.parametrize("of", ["study", "two", "hostile"])
def test_the_topics_are_in_view(
    opened: Opened, pages: Pages, of: str, width: int, height: int, scheme: Literal["light", "dark"]
) -> None:
    page = opened(pages(of), viewport={"width": width, "height": height}, color_scheme=scheme)
    topics = page.locator("[data-topic]")
    assert {"best", "sure", "why", "next"} <= set(topics.evaluate_all("all => all.map(it => it.dataset.topic)"))
    assert max(topics.evaluate_all(_BOTTOMS)) <= height


def test_chunks_are_rendered_or_shown_as_written(opened: Opened, pages: Pages) -> None:
    page = opened(pages("study"), "#trials?open=e3-q003")
    chunk = page.locator("article.chunk").first
    chunk.locator(".heading").wait_for()
    assert "##" not in chunk.inner_text()
    page.locator("[data-raw]").click()
    page.locator("[data-raw][aria-pressed=true]").wait_for()
    assert "## Rule" in page.locator("article.chunk").first.inner_text()
