"""Divides a text into sentences and words, each with its position. Pure; comparisons use lower-case words and stems."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from rag_harness.words.sentence_ends import Span, sentence_spans
from rag_harness.words.terms import STOPWORDS, stem

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

LONGEST_SENTENCE = 100
"""Most words of a sentence. A longer one is divided into parts, each a claim of its own."""

_WORD = re.compile(r"\d+(?:[.,:]\d+)*|[^\W\d_]+(?:['’][^\W\d_]+)*")


@dataclass(frozen=True)
class SplitText:
    """A text with its sentences and words.

    Attributes:
        text: the text as it stands.
        sentences: start and end of each sentence with a word.
        spans: start and end of each word, shape (n, 2).
        firsts: first word of each sentence, shape (sentences,).
    """

    text: str
    sentences: tuple[Span, ...]
    spans: Ints
    firsts: Ints

    @cached_property
    def written(self) -> list[str]:
        """The words as written."""
        return [self.text[start:end] for start, end in self.spans.tolist()]

    @cached_property
    def words(self) -> list[str]:
        """The words in lower case; figures without their thousands separators."""
        return [_folded(word) for word in self.written]

    @cached_property
    def stems(self) -> list[str]:
        """The stem of each word."""
        return [stem(word.removesuffix("'s")) for word in self.words]

    @cached_property
    def content(self) -> Bools:
        """Whether each word is more than a function word."""
        return np.array([word not in STOPWORDS for word in self.words], bool)

    @cached_property
    def sentence_of(self) -> Ints:
        """The sentence of each word."""
        counts = np.diff([*self.firsts.tolist(), len(self.spans)])
        return np.repeat(np.arange(len(self.firsts)), counts)

    def words_of(self, sentence: int) -> range:
        """Return the positions of a sentence's words."""
        after = self.firsts[sentence + 1] if sentence + 1 < len(self.firsts) else len(self.spans)
        return range(int(self.firsts[sentence]), int(after))


def split_text(text: str) -> SplitText:
    """Return ``text`` with its sentences and words. A sentence without a word, e.g. an emoji, is left out."""
    found = [word.span() for word in _WORD.finditer(text)]
    spans = np.array(found, np.int64).reshape(-1, 2)
    sentences, firsts = [], []
    for start, end in sentence_spans(text):
        here = range(*np.searchsorted(spans[:, 0], [start, end]).tolist())
        for first in here[::LONGEST_SENTENCE]:
            last = min(first + LONGEST_SENTENCE, here.stop)
            sentences.append((start if first == here.start else found[first][0], _end(found, last, here.stop, end)))
            firsts.append(first)
    return SplitText(text, tuple(sentences), spans, np.array(firsts, np.int64))


def _end(found: list[Span], last: int, stop: int, end: int) -> int:
    return end if last == stop else found[last - 1][1]


def _folded(word: str) -> str:
    lower = word.lower().replace("’", "'")
    return lower.replace(",", "") if lower[0].isdigit() else lower
