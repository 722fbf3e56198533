"""Divides a text into sentences and words, each with its position. Pure; comparisons use lower-case words and stems."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from rag_harness.words.terms import STOPWORDS, stem

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Span = tuple[int, int]

LONGEST = 100
"""Most words of a sentence. A longer one is divided into parts, each a claim of its own."""

_WORD = re.compile(r"\d+(?:[.,:]\d+)*|[^\W\d_]+(?:['’][^\W\d_]+)*")
_END = re.compile(r"(?<![.!?])[.!?]+[\"'”’)\]*_]*(?=\s)|[。！？]+|\n+")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:[A-Z]|[A-Za-z]\.[A-Za-z]|e\.g|i\.e|etc|vs|approx|no|nr|mr|mrs|ms|dr|prof|sen|gov|rep|gen|st|jr|sr"
    r"|inc|ltd|co|corp|u\.s|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec|a\.m|p\.m)$",
    re.I,
)
_MARKER = re.compile(r"\s*(?:\d{1,3}|[a-zA-Z])$")


@dataclass(frozen=True)
class Text:
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


def read(text: str) -> Text:
    """Return ``text`` with its sentences and words. A sentence without a word, e.g. an emoji, is left out."""
    found = [word.span() for word in _WORD.finditer(text)]
    spans = np.array(found, np.int64).reshape(-1, 2)
    sentences, firsts = [], []
    for start, end in _sentences(text):
        here = range(*np.searchsorted(spans[:, 0], [start, end]).tolist())
        for first in here[::LONGEST]:
            last = min(first + LONGEST, here.stop)
            sentences.append((start if first == here.start else found[first][0], _end(found, last, here.stop, end)))
            firsts.append(first)
    return Text(text, tuple(sentences), spans, np.array(firsts, np.int64))


def _end(found: list[Span], last: int, stop: int, end: int) -> int:
    return end if last == stop else found[last - 1][1]


def _sentences(text: str) -> Iterator[Span]:
    start = 0
    for mark in _END.finditer(text):
        if _ends(text, start, mark):
            yield from _stripped(text, start, mark.end())
            start = mark.end()
    yield from _stripped(text, start, len(text))


def _ends(text: str, start: int, mark: re.Match[str]) -> bool:
    """Return whether a sentence ends here: not after an abbreviation, nor after the number of a list item."""
    if not mark[0].startswith("."):
        return True
    before = text[start : mark.start()]
    if _MARKER.fullmatch(before) or _ABBREVIATION.search(before[-8:]):
        return False
    following = text[mark.end() : mark.end() + 40].lstrip()
    return not following[:1].islower()


def _stripped(text: str, start: int, end: int) -> Iterator[Span]:
    piece = text[start:end]
    inner = piece.strip()
    if inner:
        first = start + len(piece) - len(piece.lstrip())
        yield first, first + len(inner)


def _folded(word: str) -> str:
    lower = word.lower().replace("’", "'")
    return lower.replace(",", "") if lower[0].isdigit() else lower
