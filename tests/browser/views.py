"""The views of a page, and how to come to each: an address, or an address and keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page


@dataclass(frozen=True)
class View:
    """A view: its address, keys to press there, and what can be seen then."""

    name: str
    at: str
    seen: str
    keys: tuple[str, ...] = ()

    def arrive(self, page: Page) -> None:
        """Wait for what can be seen, pressing the keys first."""
        for key in self.keys:
            page.keyboard.press(key)
        page.locator(self.seen).first.wait_for()


VIEWS = (View("top", "", "#verdict"),)
IDS = [view.name for view in VIEWS]
