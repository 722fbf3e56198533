"""The numbers of a text."""

from __future__ import annotations

import re

from rag_harness.words.citation_marks import CITATION
from rag_harness.words.terms import figures

NUMBER_WORDS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"
)  # fmt: skip
_NUMBER_WORD = re.compile(rf"\b({'|'.join(NUMBER_WORDS)})\b", re.I)


def figures_of(text: str) -> frozenset[str]:
    """Return the numbers of a text, small ones in words too, without those of its citations."""
    in_digits = _NUMBER_WORD.sub(lambda found: str(NUMBER_WORDS.index(found[1].lower())), CITATION.sub(" ", text))
    return frozenset(map(_trimmed, figures(in_digits)))


def _trimmed(number: str) -> str:
    """Return 9.90 as 9.9, and 30.0 as 30."""
    whole, point, rest = number.partition(".")
    return f"{whole}.{rest.rstrip('0')}".rstrip(".") if point and rest.isdigit() else number
