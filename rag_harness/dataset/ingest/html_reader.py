"""Reader of HTML events that writes Markdown: it knows the open elements, what is visible, and where text goes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from html.parser import HTMLParser

from rag_harness.dataset.ingest.hidden import Look, Sheet, look_of
from rag_harness.dataset.ingest.html_elements import BEGINS, BLOCKS, ENDS, tags
from rag_harness.dataset.ingest.markdown_writer import MarkdownWriter

DEEPEST_ELEMENT = 500
"""Most open elements. Of deeper elements only the text counts."""
_LONGEST_TITLE = 300

_VOID = tags("area base br col embed hr img input link meta param source track wbr")
_NO_TEXT = tags(
    "script style template noscript svg math iframe object audio video canvas select datalist textarea button nav"
)
_NO_TEXT_ROLES = frozenset({"navigation", "menu", "menubar", "search"})
# The elements that a start tag closes, and the elements at which the search for them stops.
_ENDS = {
    "li": (("li",), ("ul", "ol")),
    "tr": (("tr",), ("table",)),
    "td": (("td", "th"), ("table",)),
    "th": (("td", "th"), ("table",)),
    "dt": (("dt", "dd"), ("dl",)),
    "dd": (("dt", "dd"), ("dl",)),
}
_P_STANDS = ("table", "td", "th", "caption", "object", "button")
_TABLE = tags("table tbody thead tfoot tr td th caption")
_FORMATTING = tags("a b big code em font i nobr s small strike strong tt u")


@dataclass(slots=True)
class _Open:
    tag: str
    look: Look
    silent: bool
    began: bool = False


class PageReader(HTMLParser):
    """Reads one page. ``hidden`` counts the characters of hidden text that were left out."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.title: str = ""
        self.hidden: int = 0
        self._open: list[_Open] = []
        self._count: Counter[str] = Counter()
        self._too_deep: Counter[str] = Counter()
        self._sheet = Sheet()
        self._media = ""
        self._out = MarkdownWriter()

    def text(self) -> str:
        """Return the page as Markdown."""
        return self._out.text()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in reversed(attrs)}  # of equal attributes the first counts
        self._end_implied(tag)
        self._media = attributes.get("media", "")
        around = self._open[-1] if self._open else _Open("", Look(), False)
        look = look_of(tag, attributes, around.look, self._sheet)
        if tag in ("main", "article") and self._count["nav"]:
            around = replace(around, silent=False)  # the nav was never closed
        silent = around.silent or tag in _NO_TEXT or attributes.get("role", "").lower() in _NO_TEXT_ROLES
        opened = _Open(tag, look, silent, began=not (silent or look.hidden))
        if tag not in _VOID and len(self._open) >= DEEPEST_ELEMENT:
            self._too_deep[tag] += 1
            self._out.end_block()
            return
        if opened.began and tag in BEGINS:
            BEGINS[tag](self._out, attributes)
        if tag not in _VOID:
            self._open.append(opened)
            self._count[tag] += 1

    def handle_endtag(self, tag: str) -> None:
        if self._too_deep[tag]:
            self._too_deep[tag] -= 1
            self._out.end_block()
        elif self._count[tag]:
            self._end(tag)

    def handle_data(self, data: str) -> None:
        inside = self._open[-1] if self._open else _Open("", Look(), False)
        if inside.tag == "title" and not self._count["svg"]:
            self.title = " ".join(f"{self.title}{data[:_LONGEST_TITLE]}".split())[:_LONGEST_TITLE]
        elif inside.tag == "style":
            self._sheet.add(data, self._media)
        elif inside.silent:
            return
        elif inside.look.hidden:
            self.hidden += sum(map(len, data.split()))
        else:
            self._out.write(data)

    def parse_marked_section(self, i: int, report: int = 1) -> int:  # noqa: ARG002
        """Read ``<![…`` as a comment, as browsers do. The standard library refuses unknown ones."""
        return self.parse_bogus_comment(i)

    def _end(self, tag: str) -> None:
        """Close ``tag`` and all elements inside, as browsers do. Else an end tag could make hidden text visible."""
        for depth in range(len(self._open) - 1, -1, -1):
            inside = self._open[depth].tag
            if inside == tag:
                while len(self._open) > depth:
                    self._close_last()
                return
            if inside in (_P_STANDS if tag in BLOCKS else BLOCKS) and tag not in _TABLE:
                self._drop_formatting(tag, depth)
                return

    def _drop_formatting(self, tag: str, below: int) -> None:
        # Bold text ends inside a block that began in it. The text after it is not bold, but still in the block.
        if tag in _FORMATTING:
            depth = next((n for n in range(below - 1, -1, -1) if self._open[n].tag == tag), None)
            if depth is not None:
                del self._open[depth]
                self._count[tag] -= 1

    def _end_implied(self, tag: str) -> None:
        if tag in BLOCKS and self._count["p"]:
            self._close_nearest(("p",), _P_STANDS)
        ended, stop = _ENDS.get(tag, ((), ()))
        if any(self._count[name] for name in ended):
            self._close_nearest(ended, stop)

    def _close_nearest(self, tags: tuple[str, ...], stop: tuple[str, ...]) -> None:
        for depth in range(len(self._open) - 1, -1, -1):
            if self._open[depth].tag in stop:
                return
            if self._open[depth].tag in tags:
                while len(self._open) > depth:
                    self._close_last()
                return

    def _close_last(self) -> str:
        closed = self._open.pop()
        self._count[closed.tag] -= 1
        if closed.began and closed.tag in ENDS:
            ENDS[closed.tag](self._out)
        return closed.tag
