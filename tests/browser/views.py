"""The views of a page, and how to come to each: an address, or an address and keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page


_UNFOLD = """document.querySelectorAll("details").forEach(it => { it.removeAttribute("name"); it.open = true })"""


ROW, NOTHING = "tr[data-trial]", "#app .none"
CHUNKS, COLUMN = "[data-panel] [data-chunk='1']", "[data-column='{}']"


@dataclass(frozen=True)
class View:
    """A view: which page it is of, its address, keys to press there, and what can be seen then.

    ``unfolds`` opens whatever is folded, which screens and contrast checkers pass over.
    """

    name: str
    at: str
    seen: str
    keys: tuple[str, ...] = ()
    of: str = "study"
    unfolds: bool = False

    def __str__(self) -> str:
        return self.name

    def arrive(self, page: Page) -> None:
        """Wait for what can be seen, pressing the keys first."""
        for key in self.keys:
            page.keyboard.press(key)
        page.locator(self.seen).first.wait_for()
        if self.unfolds:
            page.evaluate(_UNFOLD)


VIEWS = (
    View("top", "", "#first"),
    View("unfolded", "", "#first", unfolds=True),
    View("list", "#trials", ROW),
    View("filtered", "#trials?experiment=e3&faithfulness=0..0.9&q=lamp&sort=-ms", "[data-chips] button"),
    View("nothing found", "#trials?q=nosuchword", NOTHING),
    View("opened", "#trials?open=e3-q003", CHUNKS, unfolds=True),
    View("citations judged", "#trials?open=e3-q003&by=citation_support", ".sources", of="cited", unfolds=True),
    View("an error", "#trials?open=e3-q010", "[data-panel] .bad"),
    View("side by side", "#trials?open=e3-q003&with=e2-q003", COLUMN.format("e2-q003")),
    View("help", "#trials", "[data-help][open]", keys=("?",)),
    View("two runs", "", "#first", of="two"),
    View(
        "two runs side by side",
        "#trials?open=after/e3-q003&with=before/e3-q003",
        COLUMN.format("before/e3-q003"),
        of="two",
    ),
    View("empty", "", NOTHING, of="empty"),
    View("steps of an agent", "#trials?open=a1-q0", ".told", of="agent", unfolds=True),
    View("hostile", "#trials?open=e3-q000", CHUNKS, of="hostile", unfolds=True),
    View("a turn", "#trials?open=c2-own-lamp%234", CHUNKS, of="talks", unfolds=True),
    View("right to left", "#trials?open=c1-rtl%233", CHUNKS, of="talks"),
    View("turns side by side", "#trials?open=c1-own-lamp%234&with=c2-own-lamp%234", ".chat .columns", of="talks"),
    View("conversations that got worse", "#diff", "#diff", of="worse talks", unfolds=True),
    View("a long conversation", "#trials?open=c1-long%23100", CHUNKS, of="long talk", unfolds=True),
    View("a hostile conversation", "#trials?open=c1-own-bad%237", CHUNKS, of="bad talk", unfolds=True),
)
