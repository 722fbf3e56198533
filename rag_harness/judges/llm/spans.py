"""Finds the quotes of a judge in their text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rag_harness.measures.judged import Claim


def placed(said: Sequence[tuple[str, str]], text: str) -> tuple[Claim, ...]:
    """Return claims with the positions of their quotes in ``text``, or of the claims where a quote is missing.

    Two claims with the same quote have the same position, unless the words occur again later.
    """
    claims: list[Claim] = []
    at = 0
    for claim, quote in said:
        start, end = find_quote(quote or claim, text, at)
        if start < 0 and quote:
            start, end = find_quote(claim, text, at)
        claims.append(Claim(claim, start, end))
        at = max(at, start)
    return tuple(claims)


def find_quote(words: str, text: str, after: int = 0) -> tuple[int, int]:
    """Return start and end of ``words`` in ``text``, at or after ``after`` if possible; -1 where they are not there.

    Blanks and line ends count as equal.
    """
    if not words.strip():
        return -1, -1
    pattern = re.compile(r"\s+".join(map(re.escape, words.split())))
    found = pattern.search(text, after) or pattern.search(text)
    return found.span() if found else (-1, -1)
