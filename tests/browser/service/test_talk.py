"""A conversation on the page: begun, gone on with, shown by turns, begun anew, and there after a reload."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.browser.service.asking import asked
from tests.browser.service.conftest import Visit
from tests.browser.service.near import Near
from tests.browser.service.stub import FIRST, SOURCES, TRACE, Refusal, Stub, answered, events
from tests.browser.test_accessible import violations

if TYPE_CHECKING:
    from playwright.sync_api import Page


SECOND = f"{2:032x}"
UNREAD = "this experiment does not look at what was said before"


def turn(number: int, conversation: str = FIRST, **more: Any) -> dict[str, Any]:
    """Return an answer to a turn of a conversation."""
    read = {"history_read": True} if number > 1 else {"history_read": None}
    usual = {"trace_id": f"{number:032x}", "conversation": conversation, "turn": number, **read}
    return answered(**{**usual, **more})


def sent(stub: Stub) -> list[str]:
    """Return the conversations in which questions were asked."""
    return [json.loads(one["body"])["conversation"] for one in stub.asked("/query")]


def turns(page: Page) -> list[str]:
    """Return what stands below the questions, the newest first."""
    return [text for text in page.locator(".answer h3 + .note").all_inner_texts() if text]


def ask(page: Page, stub: Stub, said: dict[str, Any]) -> None:
    stub.says = events(said)
    asked(page)
    page.locator(f"#answer-{said['trace_id']}").wait_for()


def test_questions_go_on_in_a_conversation_until_another_is_begun(visit: Visit, stub: Stub) -> None:
    page = visit()
    afresh = page.get_by_role("button", name="New conversation")
    assert not afresh.is_visible()
    ask(page, stub, turn(1))
    ask(page, stub, turn(2))
    assert (sent(stub), stub.begun) == ([FIRST, FIRST], 1)
    assert turns(page) == ["Turn 2", "A new conversation begins here"]
    assert not violations(page)
    afresh.click()
    assert page.evaluate("document.activeElement.id") == "question"
    assert not afresh.is_visible()
    ask(page, stub, turn(1, SECOND, trace_id=TRACE))
    assert (sent(stub), stub.ended) == ([FIRST, FIRST, SECOND], [FIRST])
    assert turns(page) == ["A new conversation begins here", "Turn 2", "A new conversation begins here"]


def test_it_is_there_after_a_reload(visit: Visit, stub: Stub) -> None:
    page = visit()
    ask(page, stub, turn(1))
    ask(page, stub, turn(2))
    stub.again = {f"{n:032x}": {**turn(n), "question": f"{n}?", "mode": "normal", "sources": SOURCES} for n in (1, 2)}
    page.reload()
    page.locator(".answer").nth(1).wait_for()
    assert turns(page) == ["Turn 2", "A new conversation begins here"]
    assert page.get_by_role("button", name="New conversation").is_visible()
    ask(page, stub, turn(3))
    assert (sent(stub), stub.begun) == ([FIRST] * 3, 1)


def test_that_an_experiment_does_not_look_at_it_is_said_once(visit: Visit, stub: Stub) -> None:
    page = visit()
    for number in (1, 2, 3):
        ask(page, stub, turn(number, history_read=None if number == 1 else False))
    assert [UNREAD in text for text in turns(page)] == [False, True, False]


def test_one_that_the_server_does_not_keep_any_more_is_begun_anew(visit: Visit, stub: Stub, near: Near) -> None:
    near.statuses |= {404, 409}
    page = visit()
    ask(page, stub, turn(1))
    for code, status in (("no_such_conversation", 404), ("conversation_full", 409)):
        stub.refuses_once["POST /query"] = Refusal(status, "It is gone.", code=code)
        ask(page, stub, turn(1, trace_id=f"{status:032x}"))
    assert stub.begun == 3
    assert sent(stub) == [FIRST, FIRST, SECOND, SECOND, f"{3:032x}"]
    assert page.locator(".bad").count() == 0


def test_a_server_that_refuses_conversations_is_not_asked_for_ever(visit: Visit, stub: Stub, near: Near) -> None:
    near.statuses.add(404)
    stub.refuses["POST /query"] = Refusal(404, "It is gone.", code="no_such_conversation")
    page = visit()
    asked(page, state="failed")
    assert stub.begun == 1
