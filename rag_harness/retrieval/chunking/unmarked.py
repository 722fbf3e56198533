"""Markdown -> the words that a reader sees, by markdown-it's tokens; a fragment of a page is read as a whole one is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from rag_harness.retrieval.chunking.markdown import NEWLINE

# Text that is nested deeper than the parser follows would be lost.
_MARKDOWN = MarkdownIt("commonmark", {"maxNesting": 200}).enable("table")
_CODE = frozenset({"fence", "code_block", "html_block"})
_CELLS = frozenset({"th_open", "td_open"})


def references_of(page: str) -> dict[str, Any]:
    """Return what the links of a page refer to by name, wherever it says so; for ``unmarked`` of its parts."""
    found: dict[str, Any] = {}
    _MARKDOWN.parse(page, found)
    return found


def unmarked(markdown: str, references: dict[str, Any] | None = None) -> str:
    """Return ``markdown`` without its marks, a line for each of its lines that has words.

    Marks are those of headings, emphasis, lists, quotes, code and rules, and what a link leads to. Cells of a table are
    parted by a blank; rows count as such without their header, too. HTML stays: it is no mark of Markdown.
    """
    lines = NEWLINE.split(markdown)
    columns = _columns(lines)
    above = [_row("", columns), _row("---", columns)] if columns else []
    tokens = _MARKDOWN.parse("\n".join([*above, *lines]), dict(references or {}))
    return _joined(list(_pieces(tokens)))


def _columns(lines: Sequence[str]) -> int:
    """Return how many columns rows without a header may have; 0 where the first line is none, or there is a header."""
    first, second = (lines[n].strip() if n < len(lines) else "" for n in (0, 1))
    headed = second.startswith("|") and not second.strip("|:- ")
    if headed or len(first) < 2 or not (first.startswith("|") and first.endswith("|")):
        return 0
    return max(line.count("|") for line in lines)


def _row(cell: str, columns: int) -> str:
    return f"|{f'{cell}|' * columns}" if cell else f"|{' |' * columns}"


def _pieces(tokens: Sequence[Token]) -> Iterator[tuple[int, int, str]]:
    """Yield first line, line behind, and words of each block and of each row of a table."""
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
            # Behind the header there is the line of dashes, which is none of the table's words.
            header = before is not None and before.type == "th_close"
            yield at[0], at[1] + header, " ".join(filter(None, row))
            row = []


def _visible(inline: Token) -> str:
    return "".join(map(_shown, inline.children or [])).strip()


def _shown(token: Token) -> str:
    return "\n" if token.type in ("softbreak", "hardbreak") else token.content


def _joined(pieces: Sequence[tuple[int, int, str]]) -> str:
    """Put blocks below each other, an empty line between those that have one."""
    text, end = "", 0
    for first, behind, words in pieces:
        if words:
            text += ("\n\n" if first > end else "\n") * bool(text) + words
            end = behind
    return text
