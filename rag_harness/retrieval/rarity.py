"""Weights of words: rare words of an index weigh more."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

from rag_harness.types import Chunk
from rag_harness.words.terms import terms


class Rarity:
    """The weight of a word of a question: its IDF over the chunks of an index.

    ln(1 + (N - n + 0.5) / (n + 0.5)), where n of N chunks have the word (Robertson & Zaragoza 2009).
    """

    def __init__(self, chunks: Iterable[Chunk]) -> None:
        held = [terms(chunk.text, chunk.language) for chunk in chunks]
        self._count, self._having = len(held), Counter(word for words in held for word in words)

    def of(self, word: str) -> float:
        """Return the weight of a word. A word that no chunk has gets the highest."""
        having = self._having[word]
        return math.log(1 + (self._count - having + 0.5) / (having + 0.5))
