"""The sentences that questions are written from: of one block of Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

Span = tuple[int, int]

_END = re.compile(r"[.!?][\"'”’)\]*_`]*(?=\s+[\"'“(\[*_`]*[A-Z0-9])|[。！？]")
_ABBREVIATION = re.compile(r"(?:\b(?:e\.g|i\.e|approx|no|nr|vs|mr|mrs|dr|st|incl|max|min|fig|al|(?<!°)[A-Z])\.)$", re.I)


def asked_sentences(text: str, start: int) -> Iterator[Span]:
    """Yield where the sentences of ``text`` from ``start`` on stand, with the blank space before each."""
    ends = (found.end() for found in _END.finditer(text, start))
    whole = (end for end in ends if not _ABBREVIATION.search(text[max(0, end - 10) : end]))
    return pairwise([start, *whole, len(text)])
