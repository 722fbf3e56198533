"""Where the evidence stands in a chunk, white space folded as the measure ``evidence_recall`` folds it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

_MOST = 65_536


def quotes_in(text: str, quotes: Sequence[str]) -> list[list[int]]:
    """Return number of the quote, start and end in ``text``, of each quote that stands there."""
    places = ((n, _place(text, quote)) for n, quote in enumerate(quotes))
    return [[n, *place] for n, place in places if place is not None]


@lru_cache(maxsize=_MOST)
def _place(text: str, quote: str) -> tuple[int, int] | None:
    pattern = _pattern(quote)
    found = pattern.search(text) if pattern is not None else None
    return found.span() if found else None


@lru_cache(maxsize=_MOST)
def _pattern(quote: str) -> re.Pattern[str] | None:
    words = quote.split()
    return re.compile(r"\s+".join(map(re.escape, words))) if words else None
