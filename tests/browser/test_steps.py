"""A trial of an agent shows its steps: what each search brought that was new, and which one found the gold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.browser.agent_run import STRANGE
from tests.browser.conftest import Opened, Pages

if TYPE_CHECKING:
    from playwright.sync_api import Page


AT = "#trials?open=a1-q0"


def steps(page: Page) -> list[str]:
    page.locator(".told").first.wait_for()
    return [" ".join(text.split()) for text in page.locator("ol.stages > li").all_inner_texts()]


def test_steps_stand_in_their_order_with_times_and_what_was_new(opened: Opened, pages: Pages) -> None:
    page = opened(pages("agent"), AT)
    plan, first, look, second, third, said = steps(page)
    assert plan.startswith("plan 1.0 ms How long?")
    assert "return a lamp ★ finds returns.md 2 chunks, 2 new" in first
    assert look.startswith('page 2.0 ms {"name":"returns.md"} came back')
    assert "★ finds refunds.md 3 chunks, 2 new" in second
    assert "the moon found nothing" in third
    assert said == "generate 9.0 ms"
    assert page.locator("[data-part=steps] h4").inner_text() == "Steps"


def test_the_chunks_of_a_search_say_which_were_found_before_and_which_are_gold(opened: Opened, pages: Pages) -> None:
    page = opened(pages("agent"), AT)
    page.locator(".told summary", has_text="3 chunks").click()
    found = [" ".join(text.split()) for text in page.locator(".told details[open] li").all_inner_texts()]
    assert found == ["returns.md#0 · found before ★ gold", "refunds.md#1 ★ gold", "refunds.md#2 ★ gold"]


def test_texts_of_strangers_do_nothing_in_steps(opened: Opened, pages: Pages) -> None:
    page = opened(pages("agent"), "#trials?open=a1-q1")
    assert len(steps(page)) == 2
    for summary in page.locator(".told summary").all():
        summary.click()
    assert page.locator(".told img").count() == 0
    shown = page.locator(".told").first.inner_text()
    assert "<img src=x" in shown
    assert STRANGE not in shown  # the mark that turns the direction is written out


def test_a_flat_trace_has_stages(opened: Opened, pages: Pages) -> None:
    page = opened(pages("study"), "#trials?open=e3-q003")
    page.locator("[data-part=stages]").wait_for()
    assert page.locator(".told").count() == 0
