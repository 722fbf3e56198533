"""The page makes no request, runs only its own code, and has the same bytes each time it is made."""

from __future__ import annotations

from pathlib import Path

from tests.browser.conftest import Opened, page_of
from tests.browser.watched import Watch


def test_it_opens_with_the_network_cut(opened: Opened, study_page: Path) -> None:
    page = opened(study_page)
    assert page.locator("h1").inner_text().startswith("RAG evaluation: e1, e2 and e3")


def test_the_same_run_gives_the_same_bytes(study: Path, study_page: Path, tmp_path: Path) -> None:
    assert page_of(tmp_path / "again.html", study).read_bytes() == study_page.read_bytes()


def test_the_policy_refuses_a_script_that_is_not_the_pages(opened: Opened, study_page: Path, watch: Watch) -> None:
    page = opened(study_page)
    page.evaluate("""() => {
        const script = document.createElement('script')
        script.textContent = 'window.wasRun = true'
        document.body.append(script)
    }""")
    assert page.evaluate("window.wasRun") is None
    (said,) = watch.found
    assert "Content Security Policy" in said
    watch.found.clear()


def test_the_policy_refuses_every_address(opened: Opened, study_page: Path, watch: Watch) -> None:
    page = opened(study_page)
    said = page.evaluate("""async () => {
        const image = new Image()
        const failed = new Promise(done => { image.onerror = () => done('image refused') })
        image.src = 'https://example.com/pixel.png'
        const fetched = fetch('https://example.com/').then(() => 'fetched', () => 'fetch refused')
        return [await failed, await fetched]
    }""")
    assert said == ["image refused", "fetch refused"]
    assert watch.found
    assert not [line for line in watch.found if "request:" in line], "refused before anything was asked for"
    watch.found.clear()


def test_a_request_would_be_noticed(opened: Opened, tmp_path: Path, watch: Watch) -> None:
    file = tmp_path / "open.html"
    file.write_text("<!doctype html><img src='https://example.com/pixel.png'><script>alert(1); missing()</script>")
    opened(file, waits=False)
    assert {line.split(":")[0] for line in watch.found} >= {"request", "dialog", "error"}
    watch.found.clear()
