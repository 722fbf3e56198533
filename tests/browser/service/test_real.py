"""The page with the whole service behind it: the shipped study played back, and documents of one's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.service.asking import asked, text_of, verdict_of
from tests.browser.service.conftest import visiting
from tests.browser.service.near import Near
from tests.browser.service.serving import served
from tests.browser.service.test_add import listed

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from rag_harness.service.database import StateFolder


ROOT = Path(__file__).parents[3]
STUDIED = "At what time on the delivery day does Swiftfox text the two-hour window for an express parcel?"


@contextmanager
def service(folder: Path, experiment: str, rootdir: Path, **chosen: Any) -> Iterator[tuple[str, StateFolder]]:
    """Serve an experiment, and yield its address and its state."""
    from rag_harness.core.settings.loading import load_settings
    from rag_harness.service.app_state import Options
    from rag_harness.service.database import StateFolder
    from rag_harness.service.server import create_app, opened

    settings = load_settings({**chosen, "cache_dir": str(folder / "cache")}, rootdir=rootdir)
    options = Options(experiment, folder / "state", kb=rootdir / "kb" if chosen["profile"] == "mock" else None)
    with StateFolder(options.state) as state, served(create_app(lambda: opened(options, settings, state))) as url:
        yield url, state


@contextmanager
def visited(chromium: Browser, near: Near) -> Iterator[Page]:
    """Open the page of a service; what it did that it must not fails the test."""
    opening = visiting(chromium, near)
    yield next(opening)()
    next(opening, None)


@pytest.fixture(autouse=True)
def _needed() -> None:
    for package in ("fastapi", "uvicorn", "multipart", "structlog", "prometheus_client", "limits"):
        pytest.importorskip(package, reason=f"{package} is not installed: pip install '.[service]'")


def test_a_question_of_the_study_and_the_passage_that_answers_it(chromium: Browser, tmp_path: Path) -> None:
    with (
        service(tmp_path, "r1", ROOT, profile="embedded", mode="replay") as (url, _),
        visited(chromium, Near(address=url)) as page,
    ):
        answer = asked(page, STUDIED)
        assert "07:30" in text_of(answer)
        assert "Fairly sure, 83 %" in verdict_of(answer)
        answer.locator("[data-source]").first.click()
        passage = answer.locator(".source[open]")
        assert "express-shipping.md" in passage.locator("summary").inner_text()
        assert "07:30" in passage.locator("mark").inner_text()
        assert len(passage.locator("[role=region]").inner_text()) > len(passage.locator("mark").inner_text())
        answer.get_by_role("button", name="Yes").click()
        answer.get_by_text("Thank you: kept.").wait_for()
        said = text_of(answer)
        page.reload()
        answer = page.locator(".answer[data-state=done]")
        answer.wait_for()
        assert text_of(answer) == said
        answer.locator("[data-source]").first.click()
        assert "07:30" in answer.locator(".source[open] mark").inner_text(), "its citations are as they were"


def test_a_document_is_added_found_and_deleted(chromium: Browser, tmp_path: Path) -> None:
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb" / "tents.md").write_text("# Tents\n\nReturn a tent within thirty days.\n", encoding="utf-8")
    near = Near(address="", statuses={415})
    with service(tmp_path, "e2", tmp_path, profile="mock") as (near.address, _), visited(chromium, near) as page:
        page.get_by_text("1 document", exact=True).wait_for()
        page.get_by_label("Add a document").set_input_files(
            [
                {
                    "name": "kites.md",
                    "mimeType": "",
                    "buffer": b"# Kites\n\nA kite flies in wind of five metres a second.",
                },
                {"name": "kites.exe", "mimeType": "text/markdown", "buffer": b"# Kites"},
            ]
        )
        page.get_by_role("button", name="Add", exact=True).click()
        page.locator("#uploads .good", has_text="Added:").wait_for()
        page.locator("#uploads .bad", has_text="'.exe' are not read").wait_for()
        assert listed(page) == ["kites.md", "tents.md"]
        answer = asked(page, "In which wind does a kite fly?")
        assert "kites.md" in answer.locator("[data-passage='1'] summary").inner_text()
        assert "Unchecked" in verdict_of(answer)
        page.get_by_role("button", name="Delete kites.md").click()
        page.get_by_role("button", name="Delete it").click()
        page.get_by_text("1 document", exact=True).wait_for()
        page.get_by_role("button", name="Ask", exact=True).click()
        page.locator(".answer[data-state=done]").nth(1).wait_for()
        later = page.locator(".answer").first
        assert "kites.md" not in " ".join(later.locator("summary").all_inner_texts())
        assert (
            "Turn 2: this experiment does not look at what was said before" in later.locator("h3 + .note").inner_text()
        )
        page.reload()
        page.locator(".answer").nth(1).wait_for()
        page.get_by_role("button", name="New conversation").click()
        asked(page, "How long may I return a tent?")
        page.locator(".answer[data-state=done]").nth(2).wait_for()
        assert page.locator(".answer h3 + .note").first.inner_text() == "A new conversation begins here"


def test_a_key_that_may_only_ask(chromium: Browser, tmp_path: Path) -> None:
    from rag_harness.service.keys import make_key as make

    (tmp_path / "kb").mkdir()
    (tmp_path / "kb" / "tents.md").write_text("# Tents\n\nReturn a tent within thirty days.\n", encoding="utf-8")
    near = Near(address="", statuses={401, 403})
    with service(tmp_path, "e2", tmp_path, profile="mock") as (near.address, state):
        key = make(state.database, ["query"])
        with visited(chromium, near) as page:
            page.get_by_label("Key", exact=True).fill(key)
            page.keyboard.press("Enter")
            page.get_by_text("This key may ask, and neither see nor add documents.").wait_for()
            assert "Tents" in asked(page, "How long may I return a tent?").locator("summary").first.inner_text()
