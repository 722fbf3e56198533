"""Removal of Markdown from a page or a fragment: the visible words, by markdown-it's tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from rag_harness.retrieval.chunking.heading_sections import NEWLINE

# Text nested deeper than the parser's limit would be lost.
_MARKDOWN = MarkdownIt("commonmark", {"maxNesting": 200}).enable("table")
_CODE = frozenset({"fence", "code_block", "html_block"})
_CELLS = frozenset({"th_open", "td_open"})


def references_of(page: str) -> dict[str, Any]:
    """Return the link references of a page, for ``unmarked`` of its parts."""
    found: dict[str, Any] = {}
    _MARKDOWN.parse(page, found)
    return found


def unmarked(markdown: str, references: dict[str, Any] | None = None) -> str:
    """Return ``markdown`` without markup, with a line for each line that has words.

    Markup is the marks of headings, emphasis, lists, quotes, code and rules, and the targets of links. A blank
    separates table cells; rows are recognized also without their header. HTML stays, because it is not Markdown.
    """
    lines = NEWLINE.split(markdown)
    columns = _columns(lines)
    above = [_row("", columns), _row("---", columns)] if columns else []
    tokens = _MARKDOWN.parse("\n".join([*above, *lines]), dict(references or {}))
    return _joined(list(_pieces(tokens)))


def _columns(lines: Sequence[str]) -> int:
    """Return the number of columns of table rows without a header. 0 if the first line is no row, or is a header."""
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
            row.append(_visible(token))
        elif token.type == "inline":
            yield *at, _visible(token)
        elif token.type == "tr_close":
            # The line of dashes after the header is no text of the table.
            header = before is not None and before.type == "th_close"
            yield at[0], at[1] + header, " ".join(filter(None, row))
            row = []


def _visible(inline: Token) -> str:
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
