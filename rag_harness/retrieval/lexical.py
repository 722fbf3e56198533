"""BM25 over all chunks: Robertson's formula and the English analysis as Lucene has them.

Words are cut as Unicode's UAX #29 says, lose a possessive 's, are lower-cased, dropped where they are one of Lucene's
33 stop words, and stemmed by Porter's algorithm of 1980: the steps of Lucene's EnglishAnalyzer. Two things differ:
lengths are exact where Lucene rounds them to a byte, and scripts without blanks between words are not cut.
docs/validation.md sets it against Anserini.

The scores are those of bm25s to the last bit, which the tests hold it to; bm25s itself takes 0.2 s to import, in every
process that reranks.

Source: Robertson & Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009; k1 = 0.9 and b = 0.4 are
Anserini's.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from rag_harness.types import Chunk, Hit

K1, B = 0.9, 0.4

Floats = npt.NDArray[np.float32]
Postings = Mapping[str, tuple["Sequence[int] | npt.NDArray[np.int64]", "Sequence[int] | npt.NDArray[np.int64]"]]
"""By word, the positions of the chunks that have it, and how often each has it."""

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
    return cut(text, Stems())


class Bm25Index:
    """Scores and finds chunks by the words they share with a query.

    Args:
        chunks: makes the chunks; asked when the first query comes.
    """

    def __init__(self, chunks: Callable[[], Sequence[Chunk]]) -> None:
        self._make = chunks
        self._weights: dict[str, tuple[npt.NDArray[np.int64], Floats]] = {}

    @cached_property
    def _chunks(self) -> Sequence[Chunk]:
        return self._make()

    @cached_property
    def _counted(self) -> tuple[Postings, npt.NDArray[np.float64]]:
        """The chunks that have each word, and what a chunk's length does to its score."""
        stems = Stems()
        texts = [cut(chunk.text, stems) for chunk in self._chunks]
        return _postings(texts), length_parts(np.array([len(text) for text in texts], np.float64))

    def scores(self, query: str) -> dict[str, float]:
        """Return the BM25 score of each chunk by chunk_id; 0 where no word is shared."""
        return dict(zip((chunk.chunk_id for chunk in self._chunks), self._scores(query).tolist(), strict=True))

    def search(self, query: str, k: int) -> list[Hit]:
        """Return the ``k`` best chunks that share a word with the query, best first; ties in the chunks' order."""
        scores = self._scores(query)
        best = [i for i in np.argsort(-scores, kind="stable")[:k] if scores[i] > 0]
        return [Hit(self._chunks[i], float(scores[i]), n, "bm25") for n, i in enumerate(best, 1)]

    def _scores(self, query: str) -> Floats:
        scores = np.zeros(len(self._chunks), np.float32)
        postings, _ = self._counted
        for word in words(query):
            if word in postings:
                positions, weights = self._weights[word] = self._weights.get(word) or self._weighed(word)
                scores[positions] += weights
        return scores

    def _weighed(self, word: str) -> tuple[npt.NDArray[np.int64], Floats]:
        """Return the positions of the chunks that have a word, and what it adds to the score of each."""
        postings, length_parts = self._counted
        positions, counts = postings[word]
        without = len(self._chunks) - len(positions)
        rarity = np.float32(math.log(1 + (without + 0.5) / (len(positions) + 0.5)))
        frequency = np.array(counts, np.float64)
        weights = (rarity * (frequency / (length_parts[positions] + frequency))).astype(np.float32)
        return np.array(positions, np.int64), weights


def length_parts(lengths: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return what the length of each chunk, in words, does to its score."""
    mean = lengths.mean() if lengths.any() else 1.0
    return K1 * ((1 - B) + B * lengths / mean)


class Stems(dict[str, "str | None"]):
    """What a word is compared as, None for a stop word. Worked out once a word: a corpus repeats each ten times."""

    def __init__(self) -> None:
        import Stemmer

        # One each time: it costs 0.3 µs, and a stemmer belongs to one thread.
        self._stem = Stemmer.Stemmer("porter", 0).stemWord

    def __missing__(self, written: str) -> str | None:
        word = _POSSESSIVE.sub("", written).lower()
        stem = None if word in _STOP_WORDS else self._stem(word)
        self[written] = stem
        return stem


def cut(text: str, stems: Stems) -> list[str]:
    """Return the words of a text as ``words`` does; ``stems`` are shared by texts that are cut together."""
    return [stem for word in _WORD.findall(text) if (stem := stems[word]) is not None]


def _postings(texts: Sequence[Sequence[str]]) -> dict[str, tuple[list[int], list[int]]]:
    """Return, by word, the positions of the texts that have it and how often each has it."""
    found: dict[str, tuple[list[int], list[int]]] = {}
    for position, text in enumerate(texts):
        for word, count in Counter(text).items():
            positions, counts = found.setdefault(word, ([], []))
            positions.append(position)
            counts.append(count)
    return found
