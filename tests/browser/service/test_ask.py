"""Ask, see the answer appear, open what it rests on; what was checked is said in words."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.browser.service.conftest import Visit
from tests.browser.service.stub import ANSWER, Stub, answered, events

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

QUESTION = "How long can I return a lamp?"


def asked(page: Page, text: str = QUESTION, state: str = "done") -> Locator:
    """Ask, and return the answer's part of the page when it has come to a state."""
    page.get_by_label("Your question").fill(text)
    page.get_by_role("button", name="Ask", exact=True).click()
    page.locator(f".answer[data-state={state}]").first.wait_for()
    return page.locator(".answer").first


def test_an_answer_with_its_verdict_and_citations(visit: Visit, stub: Stub) -> None:
    page = visit()
    answer = asked(page)
    assert answer.locator(".said").text_content() == ANSWER
    assert answer.get_by_role("heading", name=QUESTION).is_visible()
    assert "Fairly sure, 83\u00a0%" in answer.locator(".verdict").inner_text()
    assert json.loads(stub.asked("/query")[0]["body"]) == {"query": QUESTION, "mode": "normal", "debug": False}
    assert "text/event-stream" in stub.asked("/query")[0]["headers"]["accept"]


def test_it_grows_while_it_comes(visit: Visit, stub: Stub) -> None:
    stub.says = [*events()[:6], 0.5, *events()[6:]]
    page = visit()
    answer = asked(page, state="growing")
    assert "not checked yet" in answer.locator(".verdict").inner_text()
    assert answer.locator(".said").get_attribute("aria-busy") == "true"
    assert 0 < len(answer.locator(".said").text_content() or "") < len(ANSWER)
    page.locator(".answer[data-state=done]").wait_for()
    assert answer.locator(".said").text_content() == ANSWER


def test_a_citation_opens_its_passage_with_the_quote_marked(visit: Visit, stub: Stub) -> None:
    page = visit()
    answer = asked(page)
    answer.get_by_role("button", name="Source 1").click()
    passage = answer.locator("[data-passage='1']")
    assert passage.locator("mark").text_content() == "Lamps can be returned within 45 days.  \nThe label is"
    assert "lamps.md · Returns" in passage.locator("summary").inner_text()
    link = passage.get_by_role("link")
    assert (link.get_attribute("href"), link.get_attribute("rel")) == (
        "https://example.com/lamps",
        "noopener noreferrer",
    )
    assert page.evaluate("[...CSS.highlights.get('claim')].map(String)") == ["You can return lamps within 45 days"]
    answer.get_by_role("button", name="Source 2").click()
    assert page.evaluate("[...CSS.highlights.get('claim')].map(String)") == ["Bulbs stay 💡 with you"]
    assert "page 3" in answer.locator("[data-passage='2'] summary").inner_text()


def test_an_answer_that_is_not_streamed_is_shown_whole(visit: Visit, stub: Stub) -> None:
    stub.says = answered()
    answer = asked(visit())
    assert answer.locator(".said").text_content() == ANSWER
    answer.get_by_role("button", name="Source 2").click()
    assert answer.locator("[data-passage='2'] mark").text_content() == "Opened bulbs stay with you."


def test_what_is_withdrawn_is_shown_as_withdrawn(visit: Visit, stub: Stub) -> None:
    instead = answered(
        answer="I am not sure enough.", citations=[], decision="abstain", confidence=0.2, reasons=["UNGROUNDED_ANSWER"]
    )
    stub.says = [*events()[:-2], ("replace", {"answer": instead["answer"]}), *events(instead, [])[1:]]
    answer = asked(visit())
    assert answer.locator(".said").text_content() == instead["answer"]
    assert "withdrawn" in answer.locator(".box.unsure strong").inner_text()
    assert ANSWER in (answer.locator("del").text_content() or "")
    assert not answer.locator("del").is_visible()
    assert "Not sure enough to answer, 20\u00a0%" in answer.locator(".verdict").inner_text()


def test_an_answer_that_ends_otherwise_than_it_came_is_never_changed_silently(visit: Visit, stub: Stub) -> None:
    stub.says = events(answered(answer="Something else.", citations=[]), ["You can return it."])
    answer = asked(visit())
    assert answer.locator(".said").text_content() == "Something else."
    assert answer.locator("del").text_content() == "You can return it."


def test_strict_is_asked_for(visit: Visit, stub: Stub) -> None:
    page = visit()
    page.get_by_label("Strict").check()
    asked(page)
    assert json.loads(stub.asked("/query")[0]["body"])["mode"] == "strict"


def test_stop_ends_the_request(visit: Visit, stub: Stub) -> None:
    stub.says = [*events()[:6], 30.0]
    page = visit()
    answer = asked(page, state="growing")
    page.get_by_role("button", name="Stop").click()
    page.locator(".answer[data-state=stopped]").wait_for()
    assert "unfinished" in answer.locator(".verdict").inner_text()
    assert page.get_by_role("button", name="Ask", exact=True).is_visible()
    page.wait_for_timeout(500)
    assert stub.left == 1
