"""BM25 over all chunks, by bm25s: Robertson's formula and the English analysis as Lucene has them.

Words are cut as Unicode's UAX #29 says, lose a possessive 's, are lower-cased, dropped where they are one of Lucene's
33 stop words, and stemmed by Porter's algorithm of 1980: the steps of Lucene's EnglishAnalyzer. Two things differ:
lengths are exact where Lucene rounds them to a byte, and scripts without blanks between words are not cut.
docs/validation.md sets it against Anserini.

Source: Robertson & Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009; k1 = 0.9 and b = 0.4 are
Anserini's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from rag_harness.types import Chunk, Hit

K1, B = 0.9, 0.4

_WORD = re.compile(
    r"""\w+(?:(?:(?<=[^\W\d_])['‘’.:·](?=[^\W\d_])   # that's, e.g: between letters
            |(?<=\d)['‘’.,;](?=\d))\w+)*            # 3.95, 1,400: between digits""",
    re.VERBOSE,
)
_STOP_WORDS = {
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no", "not", "of",
    "on", "or", "such", "that", "the", "their", "then", "there", "these", "they", "this", "to", "was", "will",
    "with",
}  # fmt: skip
_POSSESSIVE = re.compile(r"['’＇][sS]$")


def words(text: str) -> list[str]:
    """Return the words of an English text as BM25 compares them, in their order, repeated ones too."""
    import Stemmer

    found = (_POSSESSIVE.sub("", word).lower() for word in _WORD.findall(text))
    # One each time: it costs 0.3 µs, and a stemmer belongs to one thread.
    stemmed: list[str] = Stemmer.Stemmer("porter", 0).stemWords([word for word in found if word not in _STOP_WORDS])
    return stemmed


class Bm25Index:
    """Scores and finds chunks by the words they share with a query.

    Args:
        chunks: makes the chunks; asked when the first query comes.
    """

    def __init__(self, chunks: Callable[[], Sequence[Chunk]]) -> None:
        self._make = chunks

    @cached_property
    def _chunks(self) -> Sequence[Chunk]:
        return self._make()

    @cached_property
    def _bm25(self) -> Any:
        """The index; None where no chunk has a word, which bm25s cannot index."""
        import bm25s

        tokens = [words(chunk.text) for chunk in self._chunks]
        if not any(tokens):
            return None
        made = bm25s.BM25(k1=K1, b=B, method="lucene")
        made.index(tokens, show_progress=False)
        return made

    def scores(self, query: str) -> dict[str, float]:
        """Return the BM25 score of each chunk by chunk_id; 0 where no word is shared."""
        return dict(zip((chunk.chunk_id for chunk in self._chunks), self._scores(query).tolist(), strict=True))

    def search(self, query: str, k: int) -> list[Hit]:
        """Return the ``k`` best chunks that share a word with the query, best first; ties in the chunks' order."""
        scores = self._scores(query)
        best = [i for i in np.argsort(-scores, kind="stable")[:k] if scores[i] > 0]
        return [Hit(self._chunks[i], float(scores[i]), n, "bm25") for n, i in enumerate(best, 1)]

    def _scores(self, query: str) -> np.ndarray:
        wanted = words(query)
        if self._bm25 is None or not wanted:
            return np.zeros(len(self._chunks), np.float32)
        scores: np.ndarray = self._bm25.get_scores(wanted)
        return scores
