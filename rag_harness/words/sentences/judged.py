"""The sentences that the embedded judge takes as claims: of an answer or a passage, as it was written."""

from __future__ import annotations

import re
from collections.abc import Iterator

Span = tuple[int, int]

_END = re.compile(r"(?<![.!?])[.!?]+[\"'”’)\]*_]*(?=\s)|[。！？]+|\n+")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:[A-Z]|[A-Za-z]\.[A-Za-z]|e\.g|i\.e|etc|vs|approx|no|nr|mr|mrs|ms|dr|prof|sen|gov|rep|gen|st|jr|sr"
    r"|inc|ltd|co|corp|u\.s|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec|a\.m|p\.m)$",
    re.I,
)
_MARKER = re.compile(r"\s*(?:\d{1,3}|[a-zA-Z])$")


def judged_sentences(text: str) -> Iterator[Span]:
    """Yield where each sentence begins and ends, without blank space around it."""
    start = 0
    for mark in _END.finditer(text):
        if _ends(text, start, mark):
            yield from _stripped(text, start, mark.end())
            start = mark.end()
    yield from _stripped(text, start, len(text))


def _ends(text: str, start: int, mark: re.Match[str]) -> bool:
    """Return whether a sentence ends here: not behind an abbreviation, nor behind the number of a list's item."""
    if not mark[0].startswith("."):
        return True
    before = text[start : mark.start()]
    if _MARKER.fullmatch(before) or _ABBREVIATION.search(before[-8:]):
        return False
    following = text[mark.end() : mark.end() + 40].lstrip()
    return not following[:1].islower()


def _stripped(text: str, start: int, end: int) -> Iterator[Span]:
    piece = text[start:end]
    inner = piece.strip()
    if inner:
        first = start + len(piece) - len(piece.lstrip())
        yield first, first + len(inner)
