"""BM25 over all chunks, or over a set of chunks that changes."""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property

import numpy as np
import numpy.typing as npt

from rag_harness.core.text.comparison import comparable, divided, is_marked, marks
from rag_harness.core.text.language_detection import spoken
from rag_harness.core.text.languages import ENGLISH, rules_of
from rag_harness.core.types import Chunk, Hit

# BM25 over all chunks: Robertson's formula, and analysis by the language of each text. English is as in Lucene.
#
# The steps are those of Lucene's EnglishAnalyzer: split words by Unicode's UAX #29, remove a possessive 's, convert to
# lower case, drop Lucene's 33 stop words, stem by Porter's algorithm of 1980. A text in another language with rules
# loses its own elided words and stop words, and is stemmed by its own Snowball stemmer; without rules it is taken as
# English.
#
# Two things differ from Lucene: lengths are exact and not rounded to a byte, and scripts without blanks between words
# are cut into pairs of characters, as by its CJKAnalyzer. docs/dev/results/validation.md compares the results with
# Anserini.
#
# The scores equal those of bm25s to the last bit; tests check that. bm25s itself takes 0.2 s to import, in every
# process that reranks.
#
# Source: Robertson & Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009; k1 = 0.9 and b = 0.4 are
# Anserini's.

K1, B = 0.9, 0.4

_Floats = npt.NDArray[np.float32]
Postings = Mapping[str, tuple["Sequence[int] | npt.NDArray[np.int64]", "Sequence[int] | npt.NDArray[np.int64]"]]
"""For each word, the positions of the chunks that have it, and its count in each."""

_WORD = re.compile(r"\w+(?:(?:(?<=[^\W\d_])['.:·](?=[^\W\d_])|(?<=\d)['.,;](?=\d))\w+)*")
"""What stands between letters (that's, e.g) and between digits (3.95, 1,400) is part of a word."""


@cache
def _marked_word() -> re.Pattern[str]:
    return re.compile(_WORD.pattern.replace(r"\w+", rf"[\w{marks()}]+"))


_STOP_WORDS = {
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no", "not", "of",
    "on", "or", "such", "that", "the", "their", "then", "there", "these", "they", "this", "to", "was", "will",
    "with",
}  # fmt: skip
_POSSESSIVE = re.compile(r"'[sS]$")


def bm25_words(text: str, language: str = ENGLISH) -> list[str]:
    """Return the words of a text as BM25 compares them, in order, with repetitions."""
    return cut(text, Stems(language))


def languages_of(chunks: Iterable[Chunk]) -> tuple[str, ...]:
    """Return the languages of chunks, the most frequent first."""
    return tuple(language for language, _ in Counter(chunk.language for chunk in chunks).most_common())


def language_asked(question: str, languages: tuple[str, ...]) -> str:
    """Return the language of a question about documents in ``languages``, the most frequent first."""
    return ENGLISH if languages in ((), (ENGLISH,)) else spoken(question, languages)


class StemsByLanguage(dict[str, "Stems"]):
    """The stems of each language."""

    def __missing__(self, language: str) -> Stems:
        self[language] = made = Stems(language)
        return made


class Bm25Index:
    """Scores and finds chunks by words that they share with a query.

    Args:
        chunks: returns the chunks; called at the first query.
    """

    def __init__(self, chunks: Callable[[], Sequence[Chunk]]) -> None:
        self._make = chunks
        self._weights: dict[str, tuple[npt.NDArray[np.int64], _Floats]] = {}

    @cached_property
    def _chunks(self) -> Sequence[Chunk]:
        return self._make()

    @cached_property
    def _counted(self) -> tuple[Postings, npt.NDArray[np.float64]]:
        """The chunks of each word, and the effect of each chunk's length on its score."""
        stems = StemsByLanguage()
        texts = [cut(chunk.text, stems[chunk.language]) for chunk in self._chunks]
        return _postings(texts), length_parts(np.array([len(text) for text in texts], np.float64))

    def scores(self, query: str) -> dict[str, float]:
        """Return the BM25 score of each chunk by chunk_id; 0 without a shared word."""
        return dict(zip((chunk.chunk_id for chunk in self._chunks), self._scores(query).tolist(), strict=True))

    def search(self, query: str, k: int) -> list[Hit]:
        """Return the ``k`` best chunks that share a word with the query, best first. Ties are in the chunks' order."""
        scores = self._scores(query)
        best = [i for i in np.argsort(-scores, kind="stable")[:k] if scores[i] > 0]
        return [Hit(self._chunks[i], float(scores[i]), n, "bm25") for n, i in enumerate(best, 1)]

    @cached_property
    def _languages(self) -> tuple[str, ...]:
        return languages_of(self._chunks)

    def language_of(self, query: str) -> str:
        """Return the language whose rules cut a query: its own, among those of the chunks."""
        return language_asked(query, self._languages)

    def _scores(self, query: str) -> _Floats:
        scores = np.zeros(len(self._chunks), np.float32)
        postings, _ = self._counted
        for word in bm25_words(query, self.language_of(query)):
            if word in postings:
                positions, weights = self._weights[word] = self._weights.get(word) or self._weighed(word)
                scores[positions] += weights
        return scores

    def _weighed(self, word: str) -> tuple[npt.NDArray[np.int64], _Floats]:
        """Return the positions of the chunks that have a word, and its contribution to the score of each."""
        postings, length_parts = self._counted
        positions, counts = postings[word]
        without = len(self._chunks) - len(positions)
        rarity = np.float32(math.log(1 + (without + 0.5) / (len(positions) + 0.5)))
        frequency = np.array(counts, np.float64)
        weights = (rarity * (frequency / (length_parts[positions] + frequency))).astype(np.float32)
        return np.array(positions, np.int64), weights


def length_parts(lengths: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the effect of each chunk's length, in words, on its score."""
    mean = lengths.mean() if lengths.any() else 1.0
    return K1 * ((1 - B) + B * lengths / mean)


class Stems(dict[str, "str | None"]):
    """Caches the stem of each word, None for a stop word. A corpus repeats each word ten times."""

    def __init__(self, language: str = ENGLISH) -> None:
        import Stemmer

        self._rules = rules_of(language)
        # A new stemmer each time: it costs 0.3 µs, and a stemmer is not thread-safe.
        self._stem = Stemmer.Stemmer(self._rules.stemmer if self._rules else "porter", 0).stemWord

    def __missing__(self, written: str) -> str | None:
        if self._rules:
            word = self._rules.plain(written)
            stem = self._stem(word) if word else None
        else:
            word = _POSSESSIVE.sub("", written).lower()
            stem = None if word in _STOP_WORDS else self._stem(word)
        self[written] = stem
        return stem


def cut(text: str, stems: Stems) -> list[str]:
    """Return the words of a text as ``bm25_words`` does. Several texts share ``stems``."""
    return [stem for word in _words(comparable(text)) if (stem := stems[word]) is not None]


def _words(text: str) -> list[str]:
    if not is_marked(text):
        return _WORD.findall(text)
    return divided(_marked_word().findall(text))


def _postings(texts: Sequence[Sequence[str]]) -> dict[str, tuple[list[int], list[int]]]:
    """Return for each word the positions of the texts that have it, and its count in each."""
    found: dict[str, tuple[list[int], list[int]]] = {}
    for position, text in enumerate(texts):
        for word, count in Counter(text).items():
            positions, counts = found.setdefault(word, ([], []))
            positions.append(position)
            counts.append(count)
    return found


# BM25 over a changing set of chunks. Words of a chunk are counted once, and each state of the set has a view.
#
# The scores equal those of ``Bm25Index`` over the same chunks, to the last bit; tests check that.

_LEAST_DEAD = 1_000
"""Number of removed chunks from which their words are deleted. Fewer cost nothing."""

ChunkPositions = npt.NDArray[np.int64]


@dataclass
class _Counted:
    """Words of chunks by slot. Entries are only added, because views of older states read them in other threads."""

    chunks: list[Chunk] = field(default_factory=list)
    slots: dict[int, int] = field(default_factory=dict)
    lengths: array[int] = field(default_factory=lambda: array("q"))
    having: dict[str, tuple[array[int], array[int]]] = field(default_factory=dict)

    def add(self, chunks: Sequence[Chunk]) -> None:
        known = StemsByLanguage()
        for chunk in chunks:
            slot, words = len(self.chunks), cut(chunk.text, known[chunk.language])
            for word, count in Counter(words).items():
                slots, counts = self.having.setdefault(word, (array("q"), array("q")))
                # A reader takes the slots first, so each slot must already have its count.
                counts.append(count)
                slots.append(slot)
            self.lengths.append(len(words))
            self.chunks.append(chunk)
            self.slots[id(chunk)] = slot

    def kept(self, chunks: Sequence[Chunk]) -> _Counted:
        """Return a copy with only these chunks."""
        own = [self.slots[id(chunk)] for chunk in chunks]
        places = np.full(len(self.chunks), -1, np.int64)
        places[own] = np.arange(len(own))
        made = _Counted(list(chunks), {id(chunk): place for place, chunk in enumerate(chunks)})
        made.lengths.extend(self.lengths[slot] for slot in own)
        for word, (slots, counts) in self.having.items():
            now = places[_read(slots)]
            if (now >= 0).any():
                own_counts = _read(counts)[now >= 0]
                made.having[word] = array("q", now[now >= 0].tobytes()), array("q", own_counts.tobytes())
        return made


def _read(numbers: array[int]) -> ChunkPositions:
    # Copied while Python's lock is held, because an array cannot grow while NumPy has a view of it.
    return np.frombuffer(numbers.tobytes(), np.int64)


class LiveWords:
    """The words of all chunks of a collection. Only one thread at a time makes views; other threads read them."""

    def __init__(self) -> None:
        self._counted = _Counted()

    def view(self, chunks: Sequence[Chunk]) -> Bm25Index:
        """Return BM25 over these chunks; new chunks are counted. Chunks are compared by identity, not by equality."""
        counted = self._counted
        counted.add([chunk for chunk in chunks if id(chunk) not in counted.slots])
        if len(counted.chunks) > max(2 * len(chunks), len(chunks) + _LEAST_DEAD):
            counted = self._counted = counted.kept(chunks)
        return _View(chunks, counted)


class _View(Bm25Index):
    def __init__(self, chunks: Sequence[Chunk], counted: _Counted) -> None:
        super().__init__(lambda: chunks)
        self._own = counted
        self._slots = np.array([counted.slots[id(chunk)] for chunk in chunks], np.int64)
        self._all = len(counted.chunks)

    @cached_property
    def _counted(self) -> tuple[Postings, npt.NDArray[np.float64]]:
        places = np.full(self._all, -1, np.int64)
        places[self._slots] = np.arange(len(self._slots))
        lengths = _read(self._own.lengths)[self._slots].astype(np.float64)
        return _Postings(self._own, places), length_parts(lengths)


class _Postings(Mapping[str, tuple[ChunkPositions, ChunkPositions]]):
    """The places of one state's chunks that have a word, and its count in each."""

    def __init__(self, counted: _Counted, places: ChunkPositions) -> None:
        self._counted, self._places = counted, places

    def __getitem__(self, word: str) -> tuple[ChunkPositions, ChunkPositions]:
        slots, counts = self._counted.having[word]
        read = _read(slots)
        read = read[: np.searchsorted(read, len(self._places))]
        places = self._places[read]
        return places[places >= 0], _read(counts)[: len(read)][places >= 0]

    def __contains__(self, word: object) -> bool:
        return word in self._counted.having

    def __iter__(self) -> Iterator[str]:
        return iter(self._counted.having)

    def __len__(self) -> int:
        return len(self._counted.having)
