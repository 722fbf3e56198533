"""Add a document, see it found, ask about it, delete it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.browser.service.conftest import Visit
from tests.browser.service.stub import Refusal, Stub, document

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page


def added(page: Page, *names: str) -> Locator:
    """Add files of these names, and return what the page says of them."""
    files: list[Any] = [{"name": name, "mimeType": "text/markdown", "buffer": b"# Hello"} for name in names]
    page.get_by_label("Add a document").set_input_files(files)
    page.get_by_role("button", name="Add", exact=True).click()
    return page.locator("#uploads > li")


def listed(page: Page) -> list[str]:
    return [*page.locator("[data-document] .name").all_inner_texts()]


def test_a_document_is_sent_read_and_found(visit: Visit, stub: Stub) -> None:
    page = visit()
    line = added(page, "new.md")
    line.get_by_text("Added:").wait_for()
    assert "12 passages · 98 % of its text is searched · left out: 1,234 hidden characters" in (
        line.inner_text().replace("\u00a0", " ")
    )
    page.locator("[data-document='id-of-new.md']").wait_for()
    assert listed(page) == ["lamps.md", "bulbs.pdf", "new.md"]
    (sent,) = stub.asked("/ingest")
    assert b'filename="new.md"' in sent["body"]
    assert len(stub.asked("/ingest/id-of-new.md")) == 2, "it is asked about until it can be found"
    line.get_by_role("button", name="Ask about it").click()
    question = page.get_by_label("Your question")
    assert question.input_value() == "What does “new.md” say about "
    assert page.evaluate("document.activeElement.id") == "question"


def test_several_are_added_one_after_the_other(visit: Visit, stub: Stub) -> None:
    stub.polls = 0
    page = visit()
    lines = added(page, "a.md", "b.md")
    lines.get_by_text("Added:").nth(1).wait_for()
    assert [one["path"] for one in stub.requests if one["path"].startswith("/ingest")] == [
        "/ingest",
        "/ingest/id-of-a.md",
        "/ingest",
        "/ingest/id-of-b.md",
    ]


def test_a_document_that_cannot_be_read_says_why(visit: Visit, stub: Stub) -> None:
    stub.documents = [document("scan.pdf", status="failed", why="no text on any of its 3 pages", coverage=None)]
    page = visit()
    assert "could not be read: no text on any of its 3 pages" in page.locator("[data-document]").inner_text()
    assert page.locator("[data-document] button").all_text_contents() == ["Delete scan.pdf"]


def test_a_document_is_deleted_when_that_is_confirmed(visit: Visit, stub: Stub) -> None:
    page = visit()
    page.get_by_role("button", name="Delete lamps.md").click()
    box = page.get_by_role("dialog", name="Delete lamps.md?")
    assert "cannot be undone" in box.inner_text()
    assert page.evaluate("document.activeElement.id") == "delete-keep", "Enter deletes nothing unawares"
    page.keyboard.press("Escape")
    box.wait_for(state="hidden")
    assert not stub.asked("/documents/id-of-lamps.md")
    page.get_by_role("button", name="Delete lamps.md").click()
    page.get_by_role("button", name="Delete it").click()
    page.locator("[data-document='id-of-lamps.md']").wait_for(state="detached")
    assert listed(page) == ["bulbs.pdf"]
    assert page.evaluate("document.activeElement.id") == "documents-title"


def test_one_that_cannot_be_deleted_stays_and_says_why(visit: Visit, stub: Stub, near: Any) -> None:
    near.statuses.add(409)
    stub.refuses["DELETE /documents/{id}"] = Refusal(409, "it is being read")
    page = visit()
    page.get_by_role("button", name="Delete lamps.md").click()
    page.get_by_role("button", name="Delete it").click()
    page.locator("#uploads .bad").wait_for()
    assert "it is being read" in page.locator("#uploads").inner_text()
    assert listed(page) == ["lamps.md", "bulbs.pdf"]


def test_many_documents_are_found_by_name(visit: Visit, stub: Stub) -> None:
    stub.documents = [document(f"page-{n:03d}.md") for n in range(120)]
    page = visit()
    page.locator("[data-document]").first.wait_for()
    assert page.locator("[data-document]").count() == 50
    assert "120 documents" in page.locator("#documents").inner_text()
    page.get_by_role("button", name="Show 70 more").click()
    assert page.locator("[data-document]").count() == 120
    page.get_by_label("Find a document by its name").press_sequentially("PAGE-11")
    page.get_by_text("10 of 120 have this in their names").wait_for()
    assert page.evaluate("document.activeElement.id") == "seek"
    assert listed(page)[-1] == "page-119.md"


def test_a_lost_connection_only_takes_longer(visit: Visit, stub: Stub, near: Any) -> None:
    near.statuses.add(503)
    stub.refuses["GET /ingest/{id}"] = Refusal(503)
    page = visit()
    line = added(page, "new.md")
    line.get_by_text("The page asks again").wait_for()
    stub.refuses.clear()
    line.get_by_text("Added:").wait_for()


DROP = """([type, names]) => {
    const dropped = new DataTransfer()
    for (const name of names) dropped.items.add(new File(["# Hello"], name))
    const event = new DragEvent(type, { dataTransfer: dropped, bubbles: true, cancelable: true })
    document.querySelector("h1").dispatchEvent(event)
    return event.defaultPrevented
}"""


def test_files_are_dropped_anywhere_on_the_page(visit: Visit, stub: Stub) -> None:
    page = visit()
    page.locator("[data-document]").first.wait_for()
    page.evaluate(DROP, ["dragenter", ["a.md"]])
    assert page.locator("html.dropping").count() == 1
    page.evaluate(DROP, ["dragleave", ["a.md"]])
    assert page.locator("html.dropping").count() == 0
    page.evaluate(DROP, ["dragenter", ["a.md"]])
    assert page.evaluate(DROP, ["dragover", ["a.md"]]), "else the browser would open the file"
    assert page.evaluate(DROP, ["drop", ["a.md", "b.md"]]), "else the browser would open the file"
    page.locator("#uploads > li").get_by_text("Added:").nth(1).wait_for()
    assert listed(page) == ["lamps.md", "bulbs.pdf", "a.md", "b.md"]
    assert page.locator("html.dropping").count() == 0


def test_text_that_is_dropped_is_no_file(visit: Visit, stub: Stub) -> None:
    page = visit()
    assert not page.evaluate(DROP, ["drop", []])
    assert not stub.asked("/ingest")


def test_a_deleted_document_offers_no_question_about_it(visit: Visit, stub: Stub) -> None:
    page = visit()
    line = added(page, "new.md")
    ask = line.get_by_role("button", name="Ask about it")
    ask.wait_for()
    page.get_by_role("button", name="Delete new.md").click()
    page.get_by_role("button", name="Delete it").click()
    ask.wait_for(state="hidden")
    assert line.get_by_text("Added:").is_visible(), "what was done stays to be read"


def test_what_could_not_be_read_is_no_document(visit: Visit, stub: Stub) -> None:
    stub.documents = [document("a.md"), document("b.md", status="failed"), document("c.md", status="pending")]
    page = visit()
    page.get_by_text("1 document · 1 being read · 1 could not be read", exact=True).wait_for()
