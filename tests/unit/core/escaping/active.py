"""Oracles for each medium that find active text by the medium's own rules, without knowing how texts are made safe."""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from html.parser import HTMLParser

from markdown_it import MarkdownIt

_FORMAT_THAT_IS_SEEN = {*map(chr, range(0x600, 0x606)), "\u06dd", "\u070f", "\u0890", "\u0891", "\u08e2"}
_COMMAND = re.compile(r"^\s*::|##\w*\[", re.MULTILINE)
# By the filters that GitHub runs over the text of what it has rendered, and the addresses that cmark-gfm finds there.
_GITHUB = re.compile(
    r"(?:^|[^0-9A-Za-z_])@[0-9A-Za-z]"
    r"|(?:^|[^0-9A-Za-z_&])#\d|[\w-]/[\w.-]+#\d|(?i:\bGH-\d|\bGHSA-\w|\b[A-Z]+-\d+\b)"
    r"|\b[0-9a-f]{7,40}\b|[\w.-]+/[\w.-]+@[0-9a-f]{7}"
    r"|(?i:https?|ftp)://|(?i:\bwww\.\w)|[\w.+-]+@[\w-]+\.\w"
    r"|:[a-z0-9+_-]+:"
)
_PULL_REQUEST = MarkdownIt("commonmark").enable(["table", "strikethrough"])
_SIGNS = tuple("=+-@\t\r＝＋－＠")
OURS = frozenset(
    "h1 h2 p ul li table thead tbody tr th td strong em code pre details summary sub br".split()  # noqa: SIM905
)
"""Elements that a report in Markdown has, links, images and scripts not among them."""


def on_terminal(text: str, kept: str = "\n\t") -> list[str]:
    """Return the characters that a terminal obeys or that nobody sees, and the commands of a CI job."""
    return [*unseen(text, kept), *(repr(text[each.start() : each.end() + 20]) for each in _COMMAND.finditer(text))]


def unseen(text: str, kept: str = "\n\t") -> list[str]:
    """Return the characters that steer what shows them, or that nobody sees."""
    return [
        f"{each!r} in {text[max(0, at - 20) : at + 20]!r}"
        for at, each in enumerate(text)
        if each not in kept
        and (
            unicodedata.category(each) in ("Cc", "Cs", "Zl", "Zp")
            or (unicodedata.category(each) == "Cf" and each not in _FORMAT_THAT_IS_SEEN)
        )
    ]


class Page(HTMLParser):
    """What a browser makes of a page: its elements, their attributes, and the texts that are no code."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.attributes: list[str] = []
        self.others: list[str] = []
        self._open: list[str] = []
        self._last = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [f"{name}={value}" for name, value in attrs]
        self._open.append(tag)
        self._last = "tag"

    def handle_endtag(self, tag: str) -> None:
        if tag in self._open:
            while self._open.pop() != tag:
                pass
        self._last = "tag"

    def handle_data(self, data: str) -> None:
        if not {"code", "pre", "script", "style"} & {*self._open}:
            if self._last == "data":
                self.texts[-1] += data
            else:
                self.texts.append(data)
            self._last = "data"

    def handle_comment(self, data: str) -> None:
        self.others.append(data)

    def handle_decl(self, decl: str) -> None:
        self.others.append(decl)


def read_html(text: str) -> Page:
    """Return what a browser makes of a page."""
    reader = Page()
    reader.feed(text)
    reader.close()
    return reader


def in_markdown(text: str) -> list[str]:
    """Return what a pull request would link, fetch, run or notify."""
    html = _PULL_REQUEST.render(text)
    page = read_html(html)
    tags = [f"<{tag}>" for tag in page.tags if tag not in OURS]
    acts = [f"{found[0]!r} in {text!r}" for text in page.texts for found in _GITHUB.finditer(text)]
    return [*tags, *page.attributes, *page.others, *acts, *unseen(text, "\n\t\u2060")]


def in_csv(text: str) -> list[str]:
    """Return the cells that a spreadsheet runs, whatever parts cells where it is opened."""
    return [
        repr(cell)
        for delimiter in ",;\t"
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        for cell in row
        if cell.lstrip(" ").startswith(_SIGNS) and not _is_harmless(cell, delimiter)
    ] + unseen(text, "\n\t\r")


def _is_harmless(cell: str, delimiter: str) -> bool:
    # A number; and a line of a list, which a spreadsheet that parts cells by semicolons shows as an error.
    return bool(re.fullmatch(r"-?[\d.]+(?:e[+-]\d+)?", cell)) or (
        delimiter != "," and bool(re.match(r" *- [^|]*$", cell))
    )
