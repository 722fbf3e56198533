"""The sentences, items and rows of a document that the service shows behind a claim: of Markdown as it is written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from rag_harness.words.languages import ENGLISH, rules_of

Span = tuple[int, int]
_BLANK = "".join(filter(str.isspace, map(chr, range(0x3001))))
"""All blank characters of Unicode."""

# Not after a single letter, as in "e.g. Oslo", and not before a small letter.
_END = re.compile(r"(?<![\s.][A-Za-z])[.!?…][\"'”’)\]*_]*\s+(?=[^\sa-z])|[。！？][”’」』）]*\s*")
_LINE = re.compile(r"[^\n]*\n?")
_ALONE = re.compile(r"[ \t]*(?:#{1,6}[ \t]|\||```|~~~|[-*_]{3,}[ \t]*$)")
_ITEM = re.compile(r"[ \t]*(?:[-*+•>]|\d{1,3}[.)])[ \t]")


def cited_sentences(text: str, start: int, end: int, *, wrapped: bool, language: str = ENGLISH) -> list[Span]:
    """Return where the sentences of ``text[start:end]`` stand, in their order, without blank space around them.

    A heading, an item of a list and a row of a table each have at least one sentence. If lines are ``wrapped``, a
    sentence may continue in the next line; otherwise it ends with its line.
    """
    found = [span for block in _blocks(text, start, end, wrapped) for span in _split(text, *block, language)]
    return [span for span in (stripped(text, *span) for span in found) if span[0] < span[1]]


def stripped(text: str, start: int, end: int, off: str = "") -> Span:
    """Return the span without blank space at either end, and without characters of ``off`` at its start."""
    piece = text[start:end].rstrip()
    kept = piece.lstrip(_BLANK + off)
    return start + len(piece) - len(kept), start + len(piece)


def _blocks(text: str, start: int, end: int, wrapped: bool) -> Iterator[Span]:
    """Yield the blocks of a text: lines that form one paragraph, and lines that stand alone."""
    begin = at = start
    while at < end:
        behind = min(_LINE.match(text, at, end).end(), end)  # type: ignore[union-attr]
        line = text[at:behind]
        alone = not wrapped or not line.strip() or bool(_ALONE.match(line))
        if (alone or _ITEM.match(line)) and begin < at:
            yield begin, at
            begin = at
        if alone:
            yield at, behind
            begin = behind
        at = behind
    if begin < end:
        yield begin, end


def _split(text: str, start: int, end: int, language: str) -> Iterator[Span]:
    rules = rules_of(language)
    borders = (match.end() for match in _END.finditer(text, start, end) if match.end() < end)
    found = [border for border in borders if not (rules and rules.goes_on_at(text, start, border))]
    yield from pairwise([start, *found, end])
