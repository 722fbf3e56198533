"""One browser a session, a context with the network cut a test. Without playwright or a browser all of it skips."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rag_harness.page.report import write_report
from tests.browser.agent_run import agent_run
from tests.browser.hostile import Hostile
from tests.browser.runs import Study, cited_run, empty_run
from tests.browser.talks import LAMP, Talks, hostile_talk, long_talk
from tests.browser.watched import Watch

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


Pages = Callable[[str], Path]
"""Name -> page."""
Opened = Callable[..., "Page"]
"""File of a page, address in it, and options of the context -> the page, opened."""
NAMES = ("chromium", "chromium-browser", "google-chrome")
WAIT_MS = 20_000
ROOT = Path(__file__).parents[2]
LONG = {
    f"q{number:03}": f"Number {number}. {'And how long would that take on top of it all? ' * 4}" for number in range(60)
}


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """The browser."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install '.[browser]'")
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is on the path")
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"] if is_root else [])
        yield browser
        browser.close()


@pytest.fixture
def watch() -> Watch:
    """What happened that must not."""
    return Watch()


@pytest.fixture
def opened(chromium: Browser, watch: Watch) -> Iterator[Opened]:
    """Opens a file in a context of its own; what the page did that it must not fails the test."""
    contexts = []

    def open_page(file: Path, at: str = "", before: str = "", waits: bool = True, **options: Any) -> Page:
        context = chromium.new_context(**options)
        contexts.append(context)
        context.set_default_timeout(WAIT_MS)
        if before:
            context.add_init_script(before)
        watch.context(context)
        page = context.new_page()
        page.goto(f"{file.as_uri()}{at}")
        if options.get("java_script_enabled", True) and waits:
            page.locator("html[data-ready]").wait_for()
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not watch.found


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site of the documentation."""
    pytest.importorskip("furo", reason="sphinx is not installed: pip install '.[docs]'")
    folder = tmp_path_factory.mktemp("site")
    subprocess.run([sys.executable, "-m", "sphinx", "-q", str(ROOT / "docs"), str(folder)], check=True, timeout=300)
    return folder


@pytest.fixture(scope="session")
def places(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for what the session makes once."""
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="session")
def study(places: Path) -> Path:
    """The output folder of a small study."""
    said = {"abstained": False, "llm_answer": "You may return it within 14 days. [Source 1] Ask for a new label."}
    return Study(texts={("e2", "q003"): said}).write(places / "study")


@pytest.fixture(scope="session")
def pages(study: Path, places: Path) -> Callable[[str], Path]:
    """Makes a page once: "study", "two" runs, "long", "cited", "empty", "agent", "hostile".

    Of conversations: "talks", "worse talks", which are two runs, "long talk", "bad talk".
    """
    makers: Mapping[str, Callable[[], tuple[Path, ...]]] = {
        "study": lambda: (study,),
        "two": lambda: (
            Study(cases=6, seed=8).write(places / "after"),
            Study(("e2", "e3"), 6).write(places / "before"),
        ),
        "long": lambda: (Study(cases=60, queries=LONG).write(places / "long"),),
        "cited": lambda: (cited_run(places / "cited"),),
        "empty": lambda: (empty_run(places / "empty"),),
        "agent": lambda: (agent_run(places / "agent"),),
        "hostile": lambda: (Hostile().write(places / "hostile"),),
        "talks": lambda: (Talks().write(places / "talks"),),
        "worse talks": lambda: (
            Talks(worse=[f"{LAMP}#3", f"{LAMP}#4"]).write(places / "talks-after"),
            Talks().write(places / "talks-before"),
        ),
        "long talk": lambda: (Talks(questions=long_talk()).write(places / "long-talk"),),
        "bad talk": lambda: (Talks(questions=hostile_talk()).write(places / "bad-talk"),),
    }

    @cache
    def made(name: str) -> Path:
        return page_of(places / f"{name}.html", *makers[name]())

    return made


@pytest.fixture(scope="session")
def study_page(pages: Callable[[str], Path]) -> Path:
    """The page of the small study."""
    return pages("study")


def page_of(file: Path, *outputs: Path, is_plain: bool = False) -> Path:
    """Write the page of these runs."""
    write_report(outputs, file, "html", is_plain)
    return file
