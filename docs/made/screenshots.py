"""Takes all pictures of the docs again, and records what they show: ``python -m docs.made.screenshots [FOLDER]``.

Needs the extras ``browser`` and ``service``, a Chromium on the path, the font Liberation, and Pillow, without which
files are too large (``pip install pillow``). Takes two minutes. Run it before a release, and when a test says that a
picture is stale. Then look at each picture.

``made.json`` has the words of each picture: tests compare them with what is shown now. They see no colours, no layout.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from playwright.sync_api import Browser, Locator, Page, sync_playwright

from docs.made import IMAGES
from docs.made.recorded import FILE, QUESTION, TRIAL, chat_of, race_of
from docs.made.replays import conversation, raced, served, tested
from docs.made.small_pictures import small
from docs.made.terminal_page import brief, page, plain
from rag_harness.page.report import write_report

_FOUR = "e1 or e2 or e3 or e4"
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_MARGIN = 14
# The same font on every machine, and no edge around what a script has put the focus on.
_STYLE = (
    "body,button,input,textarea,svg text{font-family:'Liberation Sans',sans-serif!important}"
    ":focus{outline:none!important}"
)
_WORDS = """box => {
  const words = [], walker = document.createTreeWalker(
    document.querySelector(box.part), NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const range = document.createRange(); range.selectNodeContents(node);
    const at = range.getBoundingClientRect(), text = node.data.replace(/\\s+/g, " ").trim();
    const inside = at.top >= box.top && at.bottom <= box.bottom && at.left >= 0 && at.left < box.right;
    if (text && at.width > 1 && at.height > 1 && inside) words.push(text);
  }
  return words;
}"""
# A trace has another id each time; this one is the example of W3C's Trace Context.
_SAME_ID = """() => {
  const id = /\\b[0-9a-f]{32}\\b/, walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode())
    node.data = node.data.replace(id, "4bf92f3577b34da6a3ce929d0e0e4736");
}"""


Edges = tuple[float, float]
"""Top and bottom, in pixels of the page."""


@dataclass(frozen=True)
class Shot:
    """A picture: where it is taken, what is done before, and where it ends.

    Attributes:
        name: name of the file.
        address: of the page.
        prepare: brings the page to what the picture shows; returns where that begins and ends.
        width: of the window, in CSS pixels.
        height: of the window.
        is_dark: whether the page is asked for its dark colours.
        scale: pixels of the picture for one of the page.
        part: selector of the part whose words are recorded.
    """

    name: str
    address: str
    prepare: Callable[[Page], Edges]
    width: int = 1060
    height: int = 1400
    is_dark: bool = False
    scale: int = 2
    part: str = "body"


def main() -> None:
    """Replay, open, take, record."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES
    words: dict[str, list[str]] = {}
    with TemporaryDirectory() as made, chromium() as browser:
        work = Path(made)
        lines = brief(tested(work / "e3", "-m", "e3"), str(work / "e3"))
        taken(browser, terminal(work / "terminal.html", lines), folder)
        words["terminal.png"] = plain(lines)
        for shot in report(work):
            words[shot.name] = taken(browser, shot, folder)
        with served(work) as url:
            words["service-page.png"] = taken(browser, Shot("service-page.png", url, asked, 1100), folder)
        conversation(work / "talk")
        raced(work / "race")
        _write(FILE, {"race": race_of(work / "race"), "chat": chat_of(work / "talk")})
    _write(folder / "made.json", words)


def _write(file: Path, said: Mapping[str, Any]) -> None:
    file.write_text(json.dumps(said, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start the browser.

    Raises:
        SystemExit: there is none.
    """
    program = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if program is None:
        raise SystemExit(f"There is no browser: put one of {', '.join(_BROWSERS)} on the path.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


def terminal(file: Path, lines: Sequence[str]) -> Shot:
    """Return the picture of what the README's first command prints."""
    file.write_text(page(["$ pytest -m e3", *lines]), encoding="utf-8")
    return Shot("terminal.png", file.as_uri(), lambda shown: edges(shown.locator("pre")), 818)


def report(work: Path) -> Iterator[Shot]:
    """Yield the pictures of the report."""
    tested(work / "four", "-m", _FOUR)
    write_report([work / "four"], work / "report.html", "html")
    address = (work / "report.html").as_uri()
    yield Shot("report-first-screen.png", address, first_screen)
    yield Shot("report-dark.png", address, first_screen, is_dark=True)
    yield Shot("report-narrow.png", address, narrow, 390, scale=1)
    yield Shot("report-trial.png", f"{address}#trials?experiment=e3&open=e3-{TRIAL}", opened, 880, part="[data-panel]")


def first_screen(shown: Page) -> Edges:
    """Show the page down to the gates that did not pass."""
    shown.locator("html[data-ready]").wait_for(state="attached")
    return 0, edges(shown.get_by_text("The interval says how far"))[1] + _MARGIN


def narrow(shown: Page) -> Edges:
    """Show the page down to the gates: their table is wider than a telephone, and can be scrolled."""
    shown.locator("html[data-ready]").wait_for(state="attached")
    return 0, edges(shown.get_by_text("gates passed,"))[1] + _MARGIN


def opened(shown: Page) -> Edges:
    """Show the opened trial down to its answer, with the claims as compared with the ground truth."""
    panel = shown.locator("[data-panel]")
    panel.get_by_role("button", name="factuality").click()
    shown.get_by_text("Show 100 more").evaluate("button => { button.style.visibility = 'hidden'; }")
    top = edges(panel.locator(".headline"))[0] - _MARGIN
    return top, edges(panel.get_by_role("heading", name="Expectations"))[0] - _MARGIN


def asked(shown: Page) -> Edges:
    """Ask the service, and open the first source that is cited."""
    shown.get_by_label("Your question").fill(QUESTION)
    shown.get_by_role("button", name="Ask", exact=True).click()
    answer = shown.locator(".answer[data-state=done]")
    answer.wait_for()
    answer.locator("[data-source]").first.click()
    shown.evaluate("() => scrollTo(0, 0)")
    shown.evaluate(_SAME_ID)
    return 0, edges(answer.locator(".source[open]"))[1] + 2


def edges(found: Locator) -> Edges:
    """Return the top and the bottom of an element."""
    box = found.first.bounding_box() or {}
    return box["y"], box["y"] + box["height"]


def taken(browser: Browser, shot: Shot, folder: Path) -> list[str]:
    """Take a picture; return the words on it."""
    context = browser.new_context(
        viewport={"width": shot.width, "height": shot.height},
        color_scheme="dark" if shot.is_dark else "light",
        device_scale_factor=shot.scale,
        bypass_csp=True,
    )
    shown = context.new_page()
    shown.goto(shot.address)
    shown.add_style_tag(content=_STYLE)
    top, bottom = shot.prepare(shown)
    clip: Any = {"x": 0, "y": top, "width": shot.width, "height": bottom - top}
    (folder / shot.name).write_bytes(small(shown.screenshot(clip=clip), shot.name))
    words: list[str] = shown.evaluate(_WORDS, {"top": top, "bottom": bottom, "right": shot.width, "part": shot.part})
    context.close()
    return words


if __name__ == "__main__":
    main()
