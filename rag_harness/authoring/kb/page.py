"""A Markdown page: parse it as GitHub shows it, find faulty markup, and follow its links."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import pairwise
from pathlib import PurePosixPath
from typing import NamedTuple
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.token import Token

from rag_harness.core.text.comparison import slug, with_single_blanks

FRONT_MATTER = re.compile(r"\A---[ \t]*\n.*?\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)


class TextAtLine(NamedTuple):
    """A piece of text and the line that it starts on, 1-based."""

    line: int
    text: str


@dataclass
class Page:
    """A parsed page. ``problems`` are valid Markdown that no author means; ``ragged`` are bad table rows.

    ``headings`` have level and text. ``grids`` have the rows of each table, the header first, with cells as a reader
    sees them.
    """

    doc_id: str
    text: str
    title: str = ""
    links: list[TextAtLine] = field(default_factory=list)
    anchors: dict[str, int] = field(default_factory=dict)
    headings: list[tuple[int, str]] = field(default_factory=list)
    tables: int = 0
    grids: list[list[list[str]]] = field(default_factory=list)
    lists: int = 0
    ragged: list[TextAtLine] = field(default_factory=list)
    diagrams: list[TextAtLine] = field(default_factory=list)
    paragraphs: list[TextAtLine] = field(default_factory=list)
    problems: list[TextAtLine] = field(default_factory=list)

    @cached_property
    def squeezed(self) -> str:
        """The source with each run of white space as one blank."""
        return with_single_blanks(self.text)

    @property
    def body(self) -> str:
        """The source without front matter."""
        front = FRONT_MATTER.match(self.text)
        return self.text[front.end() :] if front else self.text

    @cached_property
    def folded(self) -> str:
        """The source without front matter and bold marks, with each run of white space as one blank."""
        return fold(self.body)


def fold(text: str) -> str:
    """Return ``text`` without bold marks, with each run of white space as one blank."""
    return with_single_blanks(text.replace("**", "").replace("__", ""))


ELSEWHERE = re.compile(r"^(?:[A-Za-z][A-Za-z0-9+.\-]*:|//)")
"""The start of a link to another site."""


def linked_file(page: Page, target: str) -> tuple[str, str]:
    """Return the file and the anchor that a link of ``page`` names. A leading ``/`` is the knowledge base's folder."""
    path, _, anchor = target.partition("#")
    path = unquote(path.partition("?")[0])
    if not path:
        return page.doc_id, unquote(anchor)
    folder = "" if path.startswith("/") else PurePosixPath(page.doc_id).parent.as_posix()
    return posixpath.normpath(posixpath.join(folder, path.lstrip("/"))), unquote(anchor)


def linked_files(page: Page) -> list[str]:
    """Return the files that ``page`` links to, each once, in order, without the page itself and other sites."""
    named = dict.fromkeys(linked_file(page, target)[0] for _, target in page.links if not ELSEWHERE.match(target))
    return [name for name in named if name != page.doc_id]


_HTML_LINK = re.compile(r"""<(?:a|img)\s[^<>]*?\b(?:href|src)\s*=\s*["']([^"']*)["']""", re.IGNORECASE)
_HTML_ANCHOR = re.compile(r"""<[a-z][^<>]*?\s(?:id|name)\s*=\s*["']([^"']+)["']""", re.IGNORECASE)
# CommonMark shows this as plain text, although its author meant a link.
_NO_LINK = re.compile(r"(?<!\w)\[[^\[\]]+\](?:\[[^\[\]]*\]|\([^()<>]*\.md[^()<>]*\))")
_DELIMITER = re.compile(r"^\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?$")
_CONTAINER = " \t>"
_MARKS = re.compile(r"[\\`*_<\[&]")
"""Characters that begin markup within a line."""


def visible_text(text: str) -> str:
    """Return a line of Markdown as a reader sees it, with each run of white space as one blank."""
    if _MARKS.search(text):
        text = "".join(_seen(child) for token in _parser().parseInline(text) for child in token.children or ())
    return with_single_blanks(text)


def parse_page(doc_id: str, text: str) -> Page:
    """Parse ``text`` as GitHub does: CommonMark with tables, without YAML front matter."""
    text = text.replace("\r\n", "\n")
    front = FRONT_MATTER.match(text)
    body = "\n" * front[0].count("\n") + text[front.end() :] if front else text
    page = Page(doc_id, text)
    reader = _Reader(page, body.split("\n"))
    for token in _parser().parse(body):
        reader.read(token)
    if not body.strip():
        page.problems.append(TextAtLine(1, "the page has no text. Write it, or remove the file."))
    return page


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark").enable("table")


class _Reader:
    """Fills a page from its tokens, one handler for each type of token."""

    def __init__(self, page: Page, lines: list[str]) -> None:
        self.page = page
        self.lines = lines
        self.heading = ""
        self.in_table = False
        self.slugs: dict[str, int] = {}

    def read(self, token: Token) -> None:
        handler = getattr(self, f"_{token.type}", None)
        if handler is not None:
            handler(token)

    def _heading_open(self, token: Token) -> None:
        self.heading = token.tag

    def _heading_close(self, _: Token) -> None:
        self.heading = ""

    def _bullet_list_open(self, _: Token) -> None:
        self.page.lists += 1

    _ordered_list_open = _bullet_list_open

    def _html_block(self, token: Token) -> None:
        self._html(_lines_of(token)[0] + 1, token.content)

    def _html(self, line: int, text: str) -> None:
        self.page.links += [
            TextAtLine(line + text[: found.start()].count("\n"), found[1]) for found in _HTML_LINK.finditer(text)
        ]
        self.page.anchors |= {found[1]: line for found in _HTML_ANCHOR.finditer(text)}

    def _fence(self, token: Token) -> None:
        first, end = _lines_of(token)
        last = self.lines[end - 1].strip(_CONTAINER)
        if end - first < 2 or not last.startswith(token.markup) or last.strip(token.markup[0]):
            what = f"the code block is never closed. End it with a line of {token.markup}."
            self.page.problems.append(TextAtLine(first + 1, what))
        if token.info.split()[:1] == ["mermaid"]:
            self.page.diagrams.append(TextAtLine(first + 1, token.content))

    def _table_open(self, token: Token) -> None:
        first, end = _lines_of(token)
        self.in_table = True
        self.page.tables += 1
        self.page.grids.append([])
        wanted = _cells(self.lines[first])
        for number in range(first + 2, end):
            found = _cells(self.lines[number])
            if found != wanted:
                where = f"the header on line {first + 1}"
                self._ragged(number, f"the row has {_count(found)}, {where} has {wanted}")

    def _table_close(self, _: Token) -> None:
        self.in_table = False

    def _tr_open(self, _: Token) -> None:
        self.page.grids[-1].append([])

    def _ragged(self, number: int, what: str) -> None:
        advice = r"Add or remove cells; a | inside a cell is written \|, and a blank line ends a table."
        self.page.ragged.append(TextAtLine(number + 1, f"{what}. {advice}"))

    def _inline(self, token: Token) -> None:
        first = _lines_of(token)[0]
        text = "".join(_seen(child) for child in token.children or ())
        if self.heading:
            self._add_heading(text, first + 1)
        else:
            self.page.paragraphs.append(TextAtLine(first + 1, text))
        if self.in_table:
            self.page.grids[-1][-1].append(with_single_blanks(text))
        self._no_table(first, token.content.split("\n"))
        self._add_links(token, first + 1)

    def _add_heading(self, text: str, line: int) -> None:
        self.page.headings.append((int(self.heading[1:]), text.strip()))
        if self.heading == "h1" and not self.page.title:
            self.page.title = text.strip()
        plain = unique = slug(text)
        while unique in self.slugs:
            self.slugs[plain] += 1
            unique = f"{plain}-{self.slugs[plain]}"
        self.slugs[unique] = 0
        self.page.anchors[unique] = line

    def _no_table(self, first: int, lines: list[str]) -> None:
        """Note a broken table: a header and a delimiter row of different lengths make no table."""
        for offset, (header, delimiter) in enumerate(pairwise(lines)):
            if "|" in header and "|" in delimiter and _DELIMITER.match(delimiter.strip()):
                wanted, found = _cells(header), _cells(delimiter)
                self._ragged(
                    first + offset + 1, f"the delimiter row has {_count(found)}, its header {wanted}: no table"
                )

    def _add_links(self, token: Token, line: int) -> None:
        for child in token.children or ():
            if child.type in ("softbreak", "hardbreak"):
                line += 1
            elif child.type in ("link_open", "image"):
                self.page.links.append(TextAtLine(line, str(child.attrs.get("href", child.attrs.get("src", "")))))
            elif child.type == "html_inline":
                self._html(line, child.content)
            elif child.type == "text":
                self._add_no_links(child.content, line)

    def _add_no_links(self, text: str, line: int) -> None:
        advice = "Write [text](file.md), a target with blanks as <my file.md>, or define the reference."
        for found in _NO_LINK.finditer(text):
            self.page.problems.append(TextAtLine(line, f"{found[0]!r} is shown as text, not as a link. {advice}"))


def _lines_of(token: Token) -> tuple[int, int]:
    """Return the first line of a token and the line after its last, 0-based."""
    return (token.map[0], token.map[1]) if token.map else (0, 0)


def _seen(token: Token) -> str:
    if token.type in ("softbreak", "hardbreak"):
        return " "
    return token.content if token.type in ("text", "code_inline") else ""


def _cells(row: str) -> int:
    inner = row.strip(_CONTAINER).removeprefix("|")
    inner = inner[:-1] if inner.endswith("|") and not inner.endswith("\\|") else inner
    return len(re.split(r"(?<!\\)\|", inner))


def _count(cells: int) -> str:
    return "1 cell" if cells == 1 else f"{cells} cells"
