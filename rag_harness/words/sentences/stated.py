"""The sentences that statements are read from, to find contradictions: of one paragraph or one item of a list."""

from __future__ import annotations

import re
from collections.abc import Iterator

Span = tuple[int, int]

_END = re.compile(r"[.!?;][\"'”’)]{0,3}(?=\s|$)")
_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|approx|no|nr|vs|mr|mrs|dr|st|incl|max|min|a\.m|p\.m|etc|[0-9]{1,2})$", re.I)


def stated_sentences(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield where the sentences of ``text[start:end]`` stand; a semicolon ends one, too."""
    first = start
    for mark in _END.finditer(text, first, end):
        if mark[0][0] != "." or not _goes_on(text, first, mark.start()):
            yield first, mark.end()
            first = mark.end()
    if text[first:end].strip():
        yield first, end


def _goes_on(text: str, first: int, dot: int) -> bool:
    """Return whether a dot ends no sentence: behind "e.g", or behind the number that a sentence begins with."""
    found = _ABBREVIATION.search(text, max(first, dot - 8), dot)
    return bool(found) and not (text[dot - 1].isdigit() and text[first : dot - 2].strip())
