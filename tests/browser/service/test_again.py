"""Documents that are still being loaded, answers after a reload and by their links, and sources beside an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.browser.service.asking import QUESTION, asked, text_of, verdict_of
from tests.browser.service.conftest import Visit
from tests.browser.service.near import Near
from tests.browser.service.stub import ANSWER, SOURCES, TRACE, Refusal, Stub, answered, events
from tests.browser.test_accessible import violations

if TYPE_CHECKING:
    from playwright.sync_api import Page


OTHER = "0" * 31 + "1"
WIDE = {"width": 1440, "height": 900}


def given(trace: str, question: str) -> dict[str, Any]:
    """Return an answer as the server has it again."""
    return answered(trace_id=trace, question=question, mode="normal", sources=SOURCES)


def questions(page: Page) -> list[str]:
    return [*page.locator(".answer h3").all_inner_texts()]


def test_it_says_how_far_the_loading_is_and_a_question_waits(visit: Visit, stub: Stub, near: Near) -> None:
    near.statuses.add(503)
    stub.loading = ["", *["loading 48/100 documents, 1.5/s, 0:40 left"] * 3]
    page = visit()
    page.get_by_text("Starting the models and reading the documents").wait_for()
    page.get_by_label("Your question").fill(QUESTION)
    page.get_by_role("button", name="Ask", exact=True).click()
    page.get_by_text("Loading 48/100 documents, 1.5/s, 0:40 left").wait_for()
    assert "Waiting until the documents are loaded" in verdict_of(page.locator(".answer"))
    assert page.locator(".bad").count() == 0
    assert not violations(page)
    page.emulate_media(color_scheme="dark")
    assert not violations(page, "html", ["color-contrast"])
    assert [one["path"] for one in stub.requests if one["path"] in {"/query", "/documents"}] == []
    page.locator(".answer[data-state=done]").wait_for()
    assert not page.locator("#loading").is_visible()
    assert page.locator(".bad").count() == 0
    assert page.locator("[data-document]").count() == 2


def test_a_question_that_waits_can_be_stopped(visit: Visit, stub: Stub, near: Near) -> None:
    near.statuses.add(503)
    stub.loading = [""] * 100
    page = visit()
    page.get_by_label("Your question").fill(QUESTION)
    page.get_by_role("button", name="Ask", exact=True).click()
    page.get_by_role("button", name="Stop").click()
    page.locator(".answer[data-state=stopped]").wait_for()
    assert not stub.asked("/query")


def test_a_server_that_was_started_again_is_waited_for(visit: Visit, stub: Stub, near: Near) -> None:
    near.statuses.add(503)
    page = visit()
    page.locator("[data-document]").first.wait_for()
    stub.refuses["POST /query"] = Refusal(503, "it starts", code="starting")
    stub.loading = ["loading 1/2 documents"] * 2
    page.get_by_label("Your question").fill(QUESTION)
    page.get_by_role("button", name="Ask", exact=True).click()
    page.get_by_text("Loading 1/2 documents").wait_for()
    stub.refuses.clear()
    page.locator(".answer[data-state=done]").wait_for()
    assert page.locator(".bad").count() == 0


def test_answers_are_there_after_a_reload(visit: Visit, stub: Stub) -> None:
    page = visit()
    asked(page, "The first?")
    stub.says = events(answered(trace_id=OTHER))
    asked(page, "The second?")
    page.locator(f"#answer-{OTHER}").wait_for()
    stub.again = {TRACE: given(TRACE, "The first?"), OTHER: given(OTHER, "The second?")}
    page.reload()
    page.locator(".answer").nth(1).wait_for()
    assert questions(page) == ["The second?", "The first?"]
    answer = page.locator(".answer").first
    assert text_of(answer) == ANSWER
    assert "Fairly sure, 83\u00a0%" in answer.locator(".verdict").inner_text()
    answer.get_by_role("button", name="Source 1").click()
    assert (
        answer.locator("[data-passage='1'] mark").text_content()
        == "Lamps can be returned within 45 days.  \nThe label is"
    )
    assert len(stub.asked("/query")) == 2, "nothing is asked twice"
    assert not violations(page)


def test_those_that_are_not_kept_any_more_are_counted(visit: Visit, stub: Stub, near: Near) -> None:
    near.statuses.add(404)
    page = visit()
    asked(page)
    page.reload()
    page.get_by_text("1 earlier answer cannot be shown again").wait_for()
    assert page.locator(".answer").count() == 0
    page.reload()
    page.locator("[data-document]").first.wait_for()
    assert page.get_by_text("cannot be shown again").count() == 0, "it is said once"


def test_a_link_shows_its_answer_in_another_tab(visit: Visit, stub: Stub) -> None:
    first = visit()
    link = asked(first).get_by_role("link", name="Link to this answer").get_attribute("href")
    stub.again = {TRACE: given(TRACE, QUESTION)}
    page = visit()
    page.goto(f"{page.url}{link}")
    page.locator(".answer").wait_for()
    assert questions(page) == [QUESTION]
    assert page.evaluate("document.activeElement.className") == "answer"
    page.evaluate("location.hash = ''")
    page.evaluate(f"location.hash = '{link}'")
    page.wait_for_timeout(300)
    assert questions(page) == [QUESTION], "it is shown once"


def test_a_link_that_is_not_for_this_key_says_so(visit: Visit, stub: Stub, near: Near) -> None:
    near.statuses.add(404)
    page = visit()
    page.goto(f"{page.url}#{OTHER}")
    box = page.locator(".box.bad")
    box.get_by_text("The answer of this link is not kept any more, or it is not for this key.").wait_for()
    assert not violations(page)
    stub.again = {OTHER: given(OTHER, QUESTION)}
    box.get_by_role("button", name="Try again").click()
    page.locator(".answer").wait_for()
    assert box.count() == 0


def test_sources_stay_beside_a_long_answer(visit: Visit, stub: Stub) -> None:
    stub.says = events(answered(answer=f"{ANSWER} {'And so on. ' * 2_000}"))
    page = visit(viewport=WIDE)
    answer = asked(page)
    page.evaluate("scrollTo(0, 2000)")
    page.wait_for_timeout(100)
    said, sources = answer.locator(".said").bounding_box(), answer.locator(".sources").bounding_box()
    assert said is not None
    assert sources is not None
    assert said["y"] < -1_000
    assert sources["x"] >= said["x"] + said["width"], "beside, and not below"
    assert 0 <= sources["y"] < 40, "still in sight"
    assert page.evaluate("document.documentElement.scrollWidth") <= WIDE["width"]


def test_sources_stand_below_the_answer_on_a_narrow_screen(visit: Visit, stub: Stub) -> None:
    answer = asked(visit(viewport={"width": 360, "height": 740}))
    said, sources = answer.locator(".said").bounding_box(), answer.locator(".sources").bounding_box()
    assert said is not None
    assert sources is not None
    assert sources["y"] >= said["y"] + said["height"]
