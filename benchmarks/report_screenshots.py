"""Pictures of a report's page for the docs: ``python benchmarks/report_screenshots.py report.html [docs/images]``.

Needs the extra ``browser``, a Chromium on the path, and Pillow, which makes palettes: each picture stays below 200 kB.
"""

from __future__ import annotations

import argparse
import io
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

MOST_BYTES = 200_000
WIDTH = 1280
_COLOURS = (128, 64, 32)
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
Box = dict[str, float]


@dataclass(frozen=True)
class Shot:
    """A picture: its name, the part of the page that it shows, and how the browser is set."""

    name: str
    part: Callable[[Page], Box]
    at: str = ""
    width: int = WIDTH
    height: int = 900
    dark: bool = False


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("page", type=Path)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("docs/images"))
    parser.add_argument("--trial", default="", help="id of the trial to open, default: the first that failed")
    chosen = parser.parse_args()
    program = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if program is None:
        raise SystemExit(f"There is no browser: put one of {', '.join(_BROWSERS)} on the path.")
    chosen.folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        trial, other = trials(browser, chosen.page, chosen.trial)
        for shot in shots(trial, other):
            file = chosen.folder / f"report-{shot.name}.png"
            file.write_bytes(small(taken(browser, chosen.page, shot)))
            print(f"{file}: {file.stat().st_size / 1000:.0f} kB")
        browser.close()


def shots(trial: str, other: str) -> list[Shot]:
    """Return what is pictured; ``other`` answers the same question as ``trial``."""
    return [
        Shot("first-screen", window),
        Shot("scorecard", lambda page: between(page, "#scorecard", "#table-categories", 1100)),
        Shot("charts", lambda page: between(page, "#charts", "#charts", 1500)),
        Shot("trial", window, f"#trials?experiment={trial.partition('-')[0]}&sort=-hri&open={trial}"),
        Shot("side-by-side", window, f"#trials?open={trial}&with={other}"),
        Shot("dark", lambda page: between(page, "#charts", "#charts", 900), dark=True),
        Shot("narrow", window, width=360, height=740),
    ]


def trials(browser: Browser, file: Path, wanted: str) -> tuple[str, str]:
    """Return the trial to open, and the next one that answers the same question; that of the first failure else."""
    page = opened(browser, file, Shot("", window, "#trials"))
    links = page.locator(".failures a[href*='open=']")
    trial = wanted or (links.nth(links.count() // 2).inner_text() if links.count() else "")
    trial = trial or str(page.locator("tr[data-trial]").first.get_attribute("data-trial"))
    page.goto(f"{file.absolute().as_uri()}#trials?open={trial}")
    beside = page.get_by_role("link", name="beside it")
    beside.last.wait_for()
    others = [name.removesuffix(" beside it") for name in beside.evaluate_all("all => all.map(it => it.ariaLabel)")]
    differing = (other for other in others[::-1] if differs(page, file, trial, other))
    other = next(differing, others[-1])
    page.close()
    return trial, other


def differs(page: Page, file: Path, trial: str, other: str) -> bool:
    """Whether two answers share some words and not others."""
    page.goto(f"{file.absolute().as_uri()}#trials?open={trial}&with={other}")
    page.locator(f"[data-column='{other}']").wait_for()
    shown = page.locator("[data-panel]")
    return shown.locator("ins").count() > 0 and "I don't know" not in shown.inner_text()


def opened(browser: Browser, file: Path, shot: Shot) -> Page:
    """Return the page with what the picture shows."""
    scheme: Any = "dark" if shot.dark else "light"
    size: Any = {"width": shot.width, "height": shot.height}
    page = browser.new_page(viewport=size, color_scheme=scheme, device_scale_factor=2 if shot.width < WIDTH else 1)
    page.goto(f"{file.absolute().as_uri()}{shot.at}")
    page.locator("html[data-ready]").wait_for(state="attached")
    return page


def taken(browser: Browser, file: Path, shot: Shot) -> bytes:
    """Return the picture."""
    page = opened(browser, file, shot)
    if "open=" in shot.at:
        page.locator("[data-panel] h3").wait_for()
    box = shot.part(page)
    picture = page.screenshot(full_page="width" in box, clip=box if "width" in box else None)
    page.close()
    return bytes(picture)


def window(page: Page) -> Box:  # noqa: ARG001 - what a part takes
    """Show what the window shows."""
    return {}


def between(page: Page, first: str, last: str, most: float) -> Box:
    """Show the page from the top of one element to the end of another, at most so many pixels."""
    ends = [page.locator(selector).first.bounding_box() or {} for selector in (first, last)]
    top = max(0.0, ends[0]["y"] - 24)
    height = min(most, ends[1]["y"] + ends[1]["height"] + 24 - top)
    return {"x": 0.0, "y": top, "width": float(WIDTH), "height": height}


def small(picture: bytes) -> bytes:
    """Return a picture with as many colours as leave it below the limit.

    Raises:
        SystemExit: the fewest colours are still too many.
    """
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    for colours in _COLOURS:
        kept = io.BytesIO()
        image.quantize(colours, dither=Image.Dither.NONE).save(kept, "PNG", optimize=True)
        if kept.tell() <= MOST_BYTES:
            return kept.getvalue()
    raise SystemExit(f"A picture has {kept.tell()} bytes with {colours} colours, more than {MOST_BYTES}. Show less.")


if __name__ == "__main__":
    main()
