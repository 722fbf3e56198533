"""What a person does on the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page


QUESTION = "How long can I return a lamp?"


def asked(page: Page, text: str = QUESTION, state: str = "done") -> Locator:
    """Ask, and return the answer's part of the page when it has come to a state."""
    page.get_by_label("Your question").fill(text)
    page.get_by_role("button", name="Ask", exact=True).click()
    answer = page.locator(".answer").first
    page.locator(f".answer[data-state={state}]").first.wait_for()
    return answer


def text_of(answer: Locator) -> str:
    """Return what the answer says."""
    return answer.locator(".said").text_content() or ""


def verdict_of(answer: Locator) -> str:
    """Return what is said about the answer, blanks being equal."""
    return " ".join(answer.locator(".verdict").inner_text().split())
