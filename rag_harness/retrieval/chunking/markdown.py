"""Markdown pages: heading sections, blocks at which they may be cut, and their text without markup."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token


# Parser for Markdown pages: heading sections, and the blocks at which they may be cut. Offsets count characters.

NEWLINE = re.compile(r"\r\n?|\n")
"""Line ends of markdown-it. ``str.splitlines`` has more, which would shift the numbers of all later lines."""


_CODE = frozenset({"fence", "code_block", "html_block"})
_LEAVES = _CODE | {"paragraph_open", "heading_open", "hr"}
_INLINE_MARKS = frozenset("\\`*_[<&\r\n")
"""Characters that begin inline Markdown. A title without them is plain text."""
_KEY = re.compile(r"[\w\"'][^:\r\n]*:(?:\s|$)")


# The parsers are imported on first use: a replay has its chunks.


@cache
def _blocks() -> MarkdownIt:
    """Return a parser of blocks. Only headings need inline tokens: parsing them all would take most of the time."""
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").enable("table").disable("inline")


@cache
def _inline() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark")


@cache
def _whole() -> MarkdownIt:
    """Return a parser of pages. Text nested deeper than its limit would be lost."""
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"maxNesting": 200}).enable("table")


@dataclass(frozen=True, slots=True)
class Header:
    """The header and delimiter rows of a table, the last newline included."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class MarkdownBlock:
    """The smallest part of a page that stays whole where it fits, with the blank lines after it.

    ``code`` is a fence, an indented code block or HTML. ``header`` is the header of the table of which this is a row.
    The first row and the header rows are one block. ``title`` marks headings before a body.
    """

    start: int
    end: int
    code: bool = False
    header: Header | None = None
    title: bool = False


@dataclass(frozen=True, slots=True)
class HeadingSection:
    """The text from a heading to the next one. ``titles`` are the headings before ``blocks``: one, or those joined."""

    path: tuple[str, ...]
    titles: MarkdownBlock | None
    blocks: tuple[MarkdownBlock, ...]

    @property
    def start(self) -> int:
        """Offset of the first character."""
        return self.titles.start if self.titles else self.blocks[0].start

    @property
    def end(self) -> int:
        """Offset after the last character."""
        return self.blocks[-1].end if self.blocks else self.titles.end if self.titles else 0


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading with the offset of its first character. ``path`` ends with it; empty headings are left out."""

    start: int
    level: int
    title: str
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Heading:
    """The lines of a heading: its first line, and the first line after it."""

    line: int
    body_line: int
    path: tuple[str, ...]
    level: int = 0
    title: str = ""


@dataclass(frozen=True, slots=True)
class _Cut:
    code: bool = False
    header_line: int | None = None


def read_sections(text: str) -> list[HeadingSection]:
    """Return the sections of a page that have text, without front matter and byte order mark.

    Headings inside lists and quotes begin no section. A heading without a body belongs to the next section.
    """
    start = body_start(text)
    references: dict[str, Any] = {}
    tokens = _blocks().parse(text[start:], references)
    headings = [_Heading(0, 0, ()), *_headings(tokens, references)]
    return list(_sections(headings, _Page(text, _line_starts(text, start), _cuts(tokens))))


def read_headings(text: str) -> list[Heading]:
    """Return the headings of a page in order, also those without a body, but none inside lists and quotes."""
    start = body_start(text)
    references: dict[str, Any] = {}
    tokens = _blocks().parse(text[start:], references)
    lines = _line_starts(text, start)
    found = _headings(tokens, references)
    return [Heading(lines[heading.line], heading.level, heading.title, heading.path) for heading in found]


def _line_starts(text: str, start: int) -> list[int]:
    return [start, *(match.end() for match in NEWLINE.finditer(text, start)), len(text)]


def body_start(text: str) -> int:
    """Return the offset after byte order mark and front matter.

    Front matter is a ``---`` line at the very top, then a line ``key:`` (comments may come before it), and a closing
    ``---`` or ``...``. Any other ``---`` at the top is a thematic break, and the text after it stays.
    """
    start, has_key = int(text.startswith("\ufeff")), False
    lines = _lines(text, start)
    if next(lines)[0].rstrip() != "---":
        return start
    for number, (line, end) in enumerate(lines):
        if line.rstrip() in ("---", "..."):
            return end if has_key or number == 0 else start
        has_key = has_key or bool(_KEY.match(line))
        if not has_key and not line.startswith("#"):
            break
    return start


def _lines(text: str, start: int) -> Iterator[tuple[str, int]]:
    for match in NEWLINE.finditer(text, start):
        yield text[start : match.start()], match.end()
        start = match.end()
    yield text[start:], len(text)


def _headings(tokens: Sequence[Token], references: dict[str, Any]) -> Iterator[_Heading]:
    stack: list[tuple[int, str]] = []
    for token, inline in pairwise(tokens):
        if token.type == "heading_open" and token.level == 0 and token.map:
            level = int(token.tag[1:])
            stack = [above for above in stack if above[0] < level]
            stack.append((level, _plain_text(inline.content, references)))
            line, body_line = token.map
            yield _Heading(line, body_line, tuple(title for _, title in stack if title), level, stack[-1][1])


def _plain_text(markup: str, references: dict[str, Any]) -> str:
    if _INLINE_MARKS.isdisjoint(markup):  # 30 times as fast, and true of nearly every title
        return " ".join(markup.split())
    children = _inline().parseInline(markup, references)[0].children or []
    return " ".join("".join(_visible(child) for child in children).split())


def _visible(token: Token) -> str:
    if token.type in ("softbreak", "hardbreak"):
        return " "
    return token.content if token.type in ("text", "code_inline", "image") else ""


def _cuts(tokens: Sequence[Token]) -> dict[int, _Cut]:
    # List items and quotes need no cuts: they start where a leaf starts or where the leaf before has ended.
    cuts: dict[int, _Cut] = {}
    table = 0
    for token in tokens:
        first, end = token.map or (0, 0)
        if token.type in _LEAVES:
            cuts[first] = _Cut(code=token.type in _CODE)
            cuts.setdefault(end, _Cut())
        elif token.type == "table_open":
            table = first
            cuts[first] = _Cut(header_line=table)
            cuts.setdefault(end, _Cut())
        elif token.type == "tr_open" and first > table + 2:
            cuts[first] = _Cut(header_line=table)
    return cuts


class _Page:
    def __init__(self, text: str, lines: list[int], cuts: dict[int, _Cut]) -> None:
        self._text, self._lines, self._cuts = text, lines, cuts
        self._cut_lines = sorted(cuts)

    @property
    def last_line(self) -> int:
        return len(self._lines) - 1

    def is_blank(self, first: int, end: int) -> bool:
        return not self._text[self._lines[first] : self._lines[end]].strip()

    def titles(self, first: int, end: int) -> MarkdownBlock | None:
        return None if self.is_blank(first, end) else MarkdownBlock(self._lines[first], self._lines[end], title=True)

    def blocks(self, first: int, end: int) -> tuple[MarkdownBlock, ...]:
        inner = self._cut_lines[bisect_right(self._cut_lines, first) : bisect_left(self._cut_lines, end)]
        pairs = zip([first, *inner], [*inner, end], strict=True)
        # A blank part does not count as a block. It belongs to the block before, which then ends where the next one
        # starts.
        starts = [line for line, behind in pairs if not self.is_blank(line, behind)]
        return tuple(self._block(line, behind) for line, behind in pairwise([*starts, end]))

    def _block(self, first: int, end: int) -> MarkdownBlock:
        cut = self._cuts.get(first, _Cut())
        return MarkdownBlock(self._lines[first], self._lines[end], cut.code, self._header(cut.header_line))

    def _header(self, line: int | None) -> Header | None:
        if line is None:
            return None
        start, end = self._lines[line], self._lines[line + 2]
        return Header(end - len(self._text[start:end].lstrip()), end)


def _sections(headings: Sequence[_Heading], page: _Page) -> Iterator[HeadingSection]:
    waiting: int | None = None
    ends = [*(heading.line for heading in headings[1:]), page.last_line]
    for number, (heading, end) in enumerate(zip(headings, ends, strict=True), start=1):
        first = heading.line if waiting is None else waiting
        if page.is_blank(heading.body_line, end) and number < len(headings):
            waiting = first
            continue
        section = HeadingSection(
            heading.path, page.titles(first, heading.body_line), page.blocks(heading.body_line, end)
        )
        waiting = None
        if section.titles or section.blocks:
            yield section


# Removal of Markdown from a page or a fragment: the visible words, by markdown-it's tokens.

_CELLS = frozenset({"th_open", "td_open"})


def references_of(page: str) -> dict[str, Any]:
    """Return the link references of a page, for ``unmarked`` of its parts."""
    found: dict[str, Any] = {}
    _whole().parse(page, found)
    return found


def unmarked(markdown: str, references: dict[str, Any] | None = None) -> str:
    """Return ``markdown`` without markup, with a line for each line that has words.

    Markup is the marks of headings, emphasis, lists, quotes, code and rules, and the targets of links. A blank
    separates table cells; rows are recognized also without their header. HTML stays, because it is not Markdown.
    """
    lines = NEWLINE.split(markdown)
    columns = _columns(lines)
    above = [_row("", columns), _row("---", columns)] if columns else []
    tokens = _whole().parse("\n".join([*above, *lines]), dict(references or {}))
    return _joined(list(_pieces(tokens)))


def _columns(lines: Sequence[str]) -> int:
    """Return the number of columns of table rows without a header. 0 if the first line is not a row, or is a header."""
    first, second = (lines[n].strip() if n < len(lines) else "" for n in (0, 1))
    headed = second.startswith("|") and not second.strip("|:- ")
    if headed or len(first) < 2 or not (first.startswith("|") and first.endswith("|")):
        return 0
    return max(line.count("|") for line in lines)


def _row(cell: str, columns: int) -> str:
    return f"|{f'{cell}|' * columns}" if cell else f"|{' |' * columns}"


def _pieces(tokens: Sequence[Token]) -> Iterator[tuple[int, int, str]]:
    """Yield the first line, the line after the end, and the words of each block and each table row."""
    at, row = (0, 0), list[str]()
    for before, token in zip([None, *tokens], tokens, strict=False):
        at = (token.map[0], token.map[1]) if token.map else at
        if token.type in _CODE:
            yield *at, token.content.rstrip("\n")
        elif token.type == "inline" and before is not None and before.type in _CELLS:
            row.append(_text_without_marks(token))
        elif token.type == "inline":
            yield *at, _text_without_marks(token)
        elif token.type == "tr_close":
            # The line of dashes after the header is not text of the table.
            header = before is not None and before.type == "th_close"
            yield at[0], at[1] + header, " ".join(filter(None, row))
            row = []


def _text_without_marks(inline: Token) -> str:
    return "".join(map(_shown, inline.children or [])).strip()


def _shown(token: Token) -> str:
    return "\n" if token.type in ("softbreak", "hardbreak") else token.content


def _joined(pieces: Sequence[tuple[int, int, str]]) -> str:
    """Join blocks line by line, with an empty line where the page has one."""
    text, end = "", 0
    for first, behind, words in pieces:
        if words:
            text += ("\n\n" if first > end else "\n") * bool(text) + words
            end = behind
    return text
