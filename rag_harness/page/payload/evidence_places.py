"""Finds the evidence in a chunk, with white space folded as in the measure ``evidence_recall``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

_MOST = 65_536


def quotes_in(text: str, quotes: Sequence[str]) -> list[list[int]]:
    """Return number of the quote, start and end in ``text``, for each quote in it."""
    places = ((n, _place(text, quote)) for n, quote in enumerate(quotes))
    return [[n, *place] for n, place in places if place is not None]


@lru_cache(maxsize=_MOST)
def _place(text: str, quote: str) -> tuple[int, int] | None:
    as_it_stands = text.find(quote)
    if as_it_stands >= 0 and quote.strip() == quote != "":
        return as_it_stands, as_it_stands + len(quote)
    words = quote.split()
    if not words or " ".join(words) not in _folded(text):
        return None
    found = re.search(r"\s+".join(map(re.escape, words)), text)
    return found.span() if found else None


@lru_cache(maxsize=_MOST)
def _folded(text: str) -> str:
    return " ".join(text.split())
