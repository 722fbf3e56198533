"""The sentences that questions are written from: of one block of Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from rag_harness.words.languages import ENGLISH, rules_of

Span = tuple[int, int]

_END = re.compile(r"[.!?][\"'”’)\]*_`]*(?=\s+[\"'“(\[*_`]*[A-Z0-9])|[。！？]")
_ABBREVIATION = re.compile(r"(?:\b(?:e\.g|i\.e|approx|no|nr|vs|mr|mrs|dr|st|incl|max|min|fig|al|(?<!°)[A-Z])\.)$", re.I)


_CAPITAL = re.compile(r"[.!?][\"'”’“»)\]*_`]*(?=\s+[\"'“„«¿¡(\[*_`]*[^\W_a-z])|[。！？]")
"""As ``_END``, with capitals of any alphabet."""


def asked_sentences(text: str, start: int, language: str = ENGLISH) -> Iterator[Span]:
    """Yield where the sentences of ``text`` from ``start`` on stand, with the blank space before each."""
    rules = rules_of(language)
    if rules:
        borders = (found.end() for found in _CAPITAL.finditer(text, start))
        return pairwise([start, *(end for end in borders if not rules.goes_on_at(text, start, end)), len(text)])
    ends = (found.end() for found in _END.finditer(text, start))
    whole = (end for end in ends if not _ABBREVIATION.search(text[max(0, end - 10) : end]))
    return pairwise([start, *whole, len(text)])
