"""A turn of a conversation: the chat before it, what came of each turn, and two experiments where they part."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser.conftest import Opened, Pages
from tests.browser.test_hostile import _TURNED
from tests.browser.test_journey import arrived, column, focused, press_until, trials_of
from tests.browser.test_widths import _CUT, A4_PX
from tests.browser.views import CHUNKS
from tests.hostile import WHOLE

if TYPE_CHECKING:
    from playwright.sync_api import Page


TALK = "[data-part=conversation]"
LAST_TURN = "#trials?open=c2-own-lamp%234"


def chat(page: Page) -> list[str]:
    """Return the turns of the chat, each as its text on one line."""
    page.locator(TALK).wait_for()
    return [" ".join(text.split()) for text in page.locator(f"{TALK} .chat > li").all_inner_texts()]


def test_a_turn_shows_what_was_said_by_whom_and_what_came_of_it(opened: Opened, pages: Pages) -> None:
    first, second, third = chat(opened(pages("talks"), LAST_TURN))
    assert first.startswith("Turn 1 User How long may I return a lamp? Reply Reply to lamp#1. [Source 1] c2-own-lamp#1")
    assert "✓ (kept) kept its expectations" in first
    assert "faithfulness 0.850" in first
    assert "Reply ✗ failed Sorry, something went wrong. Please ask again. c2-own-lamp#2 · error" in second
    assert second.endswith("✗ (not kept) expectations 0.000 · Retrieval Miss Context")
    assert "Other. Reply to lamp#3." in third


def test_each_turn_before_shows_what_was_in_its_prompt_when_asked(opened: Opened, pages: Pages) -> None:
    page = opened(pages("talks"), LAST_TURN)
    for place, shown in enumerate(("returns.md#chunk_0 Returns > Windows ★ gold", "none")):
        turn = page.locator(f"{TALK} .chat > li").nth(place)
        turn.locator("summary", has_text="Context").focus()
        page.keyboard.press("Enter")
        turn.locator("details li").first.wait_for()
        assert [" ".join(line.split()) for line in turn.locator("details li").all_inner_texts()] == [shown]


def test_this_turn_ends_the_chat_and_says_what_was_searched(opened: Opened, pages: Pages) -> None:
    page = opened(pages("talks"), "#trials?open=c1-own-lamp%233")
    now = page.locator(f"{TALK} .now")
    now.wait_for()
    assert "who pays for the parcel?" in now.locator("[data-part=question]").inner_text()
    assert "Searched for: “who pays for the parcel? (lamp broken)” · by rules" in now.inner_text()
    assert "Reply to lamp#3." in now.locator("[data-part=answer]").inner_text()
    page.goto(page.url.replace("%233", "%232"))
    page.locator("[data-panel] h3", has_text="lamp#2").wait_for()
    assert "Searched" not in page.locator("[data-panel]").inner_text()


def test_reference_replies_are_named_as_that(opened: Opened, pages: Pages) -> None:
    first, *_ = chat(opened(pages("talks"), "#trials?open=c1-lamp%232"))
    assert "Reference reply Reference 1. c1-lamp#1" in first


def test_the_first_turn_has_nothing_before_it_and_leads_to_the_next(opened: Opened, pages: Pages) -> None:
    page = opened(pages("talks"), "#trials?open=c1-lamp%231")
    assert chat(page) == []
    page.locator(TALK).get_by_role("link", name="c1-lamp#2").click()
    page.locator("[data-panel] h3", has_text="c1-lamp#2").wait_for()


def test_an_earlier_turn_is_reached_by_keyboard(opened: Opened, pages: Pages) -> None:
    page = opened(pages("talks"), LAST_TURN)
    page.locator(CHUNKS).wait_for()
    press_until(page, "Tab", f"{TALK} .chat a")
    page.keyboard.press("Enter")
    page.locator("[data-panel] h3", has_text="c2-own-lamp#1").wait_for()
    assert focused(page, "#opened")


def test_of_a_long_conversation_the_last_turns_are_in_sight(opened: Opened, pages: Pages) -> None:
    page = opened(pages("long talk"), "#trials?open=c1-long%23100")
    assert [turn.split(" User")[0] for turn in chat(page)] == [f"Turn {n}" for n in (96, 97, 98, 99)]
    page.locator(f"{TALK} > details > summary").focus()
    page.keyboard.press("Enter")
    page.locator(f"{TALK} .chat > li", has_text="Turn 95").first.wait_for()
    assert [turn.split(" User")[0] for turn in chat(page)] == [f"Turn {n}" for n in range(1, 100)]


def test_two_experiments_are_shown_once_up_to_where_they_part(opened: Opened, pages: Pages) -> None:
    page = opened(pages("talks"), "#trials?open=c1-own-lamp%233&with=c2-own-lamp%233")
    first, second = chat(page)
    assert first.count("Reply to lamp#1.") == 1
    assert "c1-own-lamp#1" in first
    assert "c2-own-lamp#1" in first
    assert second.count("and if it is broken?") == 1
    assert page.locator(".chat > li").nth(1).locator(".columns .said").all_inner_texts() == [
        "Reply\nReply to lamp#2. [Source 1]",
        "Reply ✗ failed\nSorry, something went wrong. Please ask again.",
    ]
    page.locator(TALK).get_by_role("link", name="turn 2").click()
    arrived(page, "#trials?open=c1-own-lamp%232&with=c2-own-lamp%232")
    assert "first differ here" in page.locator(TALK).inner_text()


def test_two_that_never_part_say_so(opened: Opened, pages: Pages) -> None:
    page = opened(pages("talks"), "#trials?open=c1-lamp%234&with=c1-own-lamp%234")
    page.locator(TALK).wait_for()
    assert "Their answers are the same in every turn." in page.locator(TALK).inner_text()
    assert page.locator(".chat > li").first.locator(".columns .who").all_inner_texts() == ["Reference reply", "Reply"]


def test_a_conversation_that_got_worse_leads_to_its_first_turn_that_did_before_and_now(
    opened: Opened, pages: Pages
) -> None:
    page = opened(pages("worse talks"))
    page.locator("#diff summary", has_text="c1-own: conversations that got worse in").click()
    page.locator("#table-worse-talks-1-c1-own").get_by_role("link", name="turn 3").click()
    arrived(page, "#trials?open=talks-after/c1-own-lamp%233&with=talks-before/c1-own-lamp%233")
    assert "Their answers first differ here." in page.locator(TALK).inner_text()
    columns = page.locator("[data-column]")
    assert columns.evaluate_all("all => all.map(one => one.dataset.column)") == [
        "talks-before/c1-own-lamp#3",
        "talks-after/c1-own-lamp#3",
    ]


def test_the_list_is_filtered_by_conversation_and_turn(opened: Opened, pages: Pages) -> None:
    page = opened(pages("talks"), "#trials")
    page.locator("[data-facet=conversation] summary").click()
    page.get_by_role("checkbox", name="lamp").check()
    page.locator("[data-count]", has_text="12 of 21").wait_for()
    page.locator("[data-facet=turn] summary").click()
    page.locator("[data-facet=turn] input[value='3']").check()
    page.locator("[data-count]", has_text="3 of 21").wait_for()
    assert sorted(trials_of(page)) == ["c1-lamp#3", "c1-own-lamp#3", "c2-own-lamp#3"]


def test_one_conversation_is_listed_in_the_order_of_its_turns(opened: Opened, pages: Pages) -> None:
    page = opened(pages("talks"), LAST_TURN)
    page.get_by_role("link", name="List this conversation").click()
    page.locator("[data-count]", has_text="12 of 21").wait_for()
    assert trials_of(page)[:5] == [*(f"c1-lamp#{turn}" for turn in (1, 2, 3, 4)), "c1-own-lamp#1"]


def test_turns_and_conversations_are_sorted_as_people_count(opened: Opened, pages: Pages) -> None:
    page = opened(pages("long talk"), "#trials?cols=turn&sort=turn&experiment=c1")
    page.locator("tr[data-trial]").first.wait_for()
    assert column(page, "turn")[:12] == list(range(1, 13))
    page = opened(pages("talks"), "#trials")
    page.locator("[data-sort=conversation]").click()
    assert [trial.rpartition("#")[0].rpartition("-")[2] for trial in trials_of(page)] == ["lamp"] * 12 + ["rtl"] * 9


@pytest.mark.parametrize("at", ["#trials?open=c1-own-bad%237", "#trials?open=c1-own-bad%237&with=c1-bad%237"])
def test_hostile_messages_are_shown_and_do_nothing(opened: Opened, pages: Pages, at: str) -> None:
    page = opened(pages("bad talk"), at)
    page.locator(f"{TALK} .chat > li").first.wait_for()
    assert page.locator("main img, main iframe, main script, main style, a[href^='javascript' i]").count() == 0
    handlers = "all => all.filter(it => [...it.attributes].some(one => one.name.startsWith('on'))).length"
    assert page.locator("*").evaluate_all(handlers) == 0
    assert page.evaluate(_TURNED) == []
    shown = page.locator("[data-panel]").text_content() or ""
    plain = [text for text in WHOLE if text.isascii() and text.isprintable()]
    assert [text for text in plain if text not in shown] == []
    assert not {"\x1b", "\x9b", "\u202e", "\u2066"} & {*shown}


def test_paper_has_the_chat_and_says_what_it_lacks(opened: Opened, pages: Pages) -> None:
    page = opened(pages("long talk"), "#trials?open=c1-long%23100", viewport={"width": A4_PX, "height": 1000})
    page.locator(f"{TALK} .chat").wait_for()
    page.emulate_media(media="print")
    assert page.locator(f"{TALK} .chat > li").last.is_visible()
    assert page.locator(f"{TALK} summary", has_text="95 earlier turns").is_visible()
    assert not page.get_by_role("link", name="List this conversation").is_visible()
    assert page.evaluate(_CUT.replace("main *", "[data-panel] *"), A4_PX) == []
