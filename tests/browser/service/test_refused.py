"""Messages for refused requests say what to do; and the page asks for a key if the service needs one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.browser.service.asking import asked, text_of
from tests.browser.service.conftest import Visit
from tests.browser.service.near import Near
from tests.browser.service.stub import ANSWER, FIRST, TRACE, Refusal, Stub, answered, events
from tests.browser.service.test_add import added

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page


THE_KEY = "rh_the-key-of-this-test"


def key_box(page: Page) -> Locator:
    return page.get_by_role("dialog", name="API key")


@pytest.fixture
def locked(stub: Stub, near: Near) -> Stub:
    """A stub that wants a key."""
    stub.key = THE_KEY
    near.statuses.add(401)
    return stub


def test_a_key_is_asked_for_once_and_kept_in_this_tab(visit: Visit, locked: Stub) -> None:
    page = visit()
    key_box(page).wait_for()
    field = page.get_by_label("Key", exact=True)
    assert page.evaluate("document.activeElement.id") == "key"
    field.fill("wrong")
    page.keyboard.press("Enter")
    page.get_by_text("does not know this key").wait_for()
    field.fill(f" {THE_KEY} ")
    page.get_by_role("button", name="Use this key").click()
    page.locator("[data-document]").first.wait_for()
    assert text_of(asked(page)) == ANSWER
    assert field.get_attribute("type") == "password"
    assert field.input_value() == "", "it stands in no field any more"
    kept = page.evaluate("[{...sessionStorage}, {...localStorage}, document.cookie, location.href]")
    own = {"rag-key": THE_KEY, "rag-answers": json.dumps([TRACE]), "rag-conversation": FIRST}
    assert kept == [own, {}, "", page.url]
    assert THE_KEY not in "".join(one["path"] for one in locked.requests)
    locked.again = {TRACE: answered(question="?", mode="normal", sources=[])}
    page.reload()
    page.locator("[data-document]").first.wait_for()
    page.locator(".answer").wait_for()
    assert not key_box(page).is_visible()


def test_a_forgotten_key_takes_what_it_saw_along(visit: Visit, locked: Stub) -> None:
    page = visit(before=f"if (location.protocol === 'http:') sessionStorage.setItem('rag-key', '{THE_KEY}')")
    asked(page)
    page.get_by_role("button", name="API key").click()
    page.get_by_role("button", name="Forget the key").click()
    page.locator(".answer").wait_for(state="detached")
    assert page.locator("[data-document]").count() == 0
    assert page.evaluate("sessionStorage.length") == 0
    assert locked.ended == [FIRST]
    assert locked.asked(f"/conversations/{FIRST}")[0]["headers"]["authorization"] == f"Bearer {THE_KEY}"
    assert page.evaluate("document.activeElement.id") == "key-open"


def test_without_a_key_the_page_says_so(visit: Visit, locked: Stub) -> None:
    page = visit()
    key_box(page).wait_for()
    page.keyboard.press("Escape")
    page.locator("#documents", has_text="The server asks for an API key.").wait_for()
    page.get_by_role("button", name="Try again").click()
    key_box(page).wait_for()


@pytest.mark.parametrize(
    ("status", "headers", "words"),
    [
        (403, {}, "This key may not do that."),
        (404, {}, "It is not there, or not for this key."),
        (413, {}, "It is larger than this server takes."),
        (422, {}, "could not make sense of what was sent"),
        (429, {"Retry-After": "12"}, "Try again in 12 seconds."),
        (503, {"Retry-After": "1"}, "Try again in 1 second."),
        (504, {}, "It took too long."),
        (418, {}, "status 418"),
    ],
)
def test_a_question_that_is_refused(
    visit: Visit, stub: Stub, near: Near, status: int, headers: dict[str, str], words: str
) -> None:
    near.statuses.add(status)
    stub.refuses["POST /query"] = Refusal(status, "what the server has to say", headers)
    page = visit()
    answer = asked(page, state="failed")
    assert words in answer.inner_text()
    assert "what the server has to say" in answer.inner_text()
    stub.refuses.clear()
    answer.get_by_role("button", name="Ask again").click()
    page.locator(".answer[data-state=done]").wait_for()


@pytest.mark.parametrize(("status", "words"), [(413, "larger than"), (415, "Markdown, text, HTML and PDF are.")])
def test_a_file_that_is_refused(visit: Visit, stub: Stub, near: Near, status: int, words: str) -> None:
    near.statuses.add(status)
    stub.refuses["POST /ingest"] = Refusal(status, "what the server has to say")
    line = added(visit(), "new.exe")
    line.locator(".bad").wait_for()
    assert words in line.inner_text()
    assert "what the server has to say" in line.inner_text()


def test_a_key_that_may_only_ask(visit: Visit, stub: Stub, near: Near) -> None:
    near.statuses.add(403)
    stub.refuses["GET /documents"] = Refusal(403)
    page = visit()
    page.get_by_text("This key may ask, and neither see nor add documents.").wait_for()
    asked(page)


def test_an_error_within_a_stream(visit: Visit, stub: Stub) -> None:
    stub.says = [*events()[:5], ("error", {"status": 504, "detail": "no answer within 60 s"})]
    answer = asked(visit(), state="failed")
    assert "It took too long" in answer.inner_text()
    assert "nothing of it was checked" in answer.inner_text()


@pytest.mark.parametrize("hangs_up", [False, True])
def test_a_stream_that_ends_too_soon(visit: Visit, stub: Stub, near: Near, hangs_up: bool) -> None:
    stub.says, stub.cut = events()[:5], hangs_up
    answer = asked(visit(), state="failed")
    assert "The connection ended before the answer did." in answer.inner_text()
    assert text_of(answer), "what came stays"
    near.found[:] = [line for line in near.found if "ERR_INCOMPLETE_CHUNKED_ENCODING" not in line]


def test_an_answer_that_is_no_answer(visit: Visit, stub: Stub) -> None:
    stub.says = [*events()[:5], ("raw", "data: {no json\n\n")]
    assert "cannot be read" in asked(visit(), state="failed").inner_text()


def test_offline_is_shown(visit: Visit, near: Near) -> None:
    page = visit()
    notice = page.get_by_text("You are offline: nothing can be asked")
    page.context.set_offline(True)
    notice.wait_for()
    assert "The server cannot be reached." in asked(page, state="failed").inner_text()
    page.context.set_offline(False)
    notice.wait_for(state="hidden")
    near.found[:] = [line for line in near.found if "ERR_INTERNET_DISCONNECTED" not in line]
