"""Gives claims their places in an answer, and the citations of their sentence.

A mark is a citation of the claim before it (``Unmarked``). A judge that splits a sentence into several claims leaves
those before the last one without it, though a mark at the end of a sentence stands for the whole sentence.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from rag_harness.judges.citations import Unmarked
from rag_harness.measures.judged import Claim
from rag_harness.words.comparison import compared_words
from rag_harness.words.sentence_ends import sentence_spans


def placed_claims(plain: Unmarked, claims: Sequence[Claim]) -> list[Claim]:
    """Return claims of an answer without marks, with their places in the answer as it was given and their citations.

    A claim without a place is put where the sentence stands that has most of its words. A claim without a mark of its
    own has the next mark in its sentence.
    """
    sentences = Sentences(plain.text)
    located = [claim if claim.start >= 0 else _located(claim, sentences) for claim in claims]
    found = plain.placed(located)
    marked = sorted((one.start, each.citations) for one, each in zip(located, found, strict=True) if each.citations)
    return [
        each if each.citations or one.start < 0 else replace(each, citations=_next(one.start, sentences, marked))
        for one, each in zip(located, found, strict=True)
    ]


class Sentences:
    """The sentences of a text, each with its place and its words."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._spans = list(sentence_spans(text))

    @cached_property
    def _words(self) -> list[set[str]]:
        return [_words(self._text[start:end]) for start, end in self._spans]

    @cached_property
    def begins(self) -> list[int]:
        """Where they begin."""
        return [begin for begin, _ in self._spans]

    def nearest(self, claim: str) -> str:
        """Return the sentence that has most words of ``claim``, the first of equals; empty if none has one."""
        start, end = self.place_of(claim)
        return self._text[start:end] if start >= 0 else ""

    def place_of(self, claim: str) -> tuple[int, int]:
        """Return where the sentence stands that has most words of ``claim``, the first of equals; -1 if none has."""
        wanted = _words(claim)
        shared = ((len(wanted & words), span) for words, span in zip(self._words, self._spans, strict=True))
        count, span = max(shared, key=lambda each: each[0], default=(0, (-1, -1)))
        return span if count else (-1, -1)


def _located(claim: Claim, sentences: Sentences) -> Claim:
    start, end = sentences.place_of(claim.text)
    return replace(claim, start=start, end=end)


def _next(start: int, sentences: Sentences, marked: Sequence[tuple[int, tuple[int, ...]]]) -> tuple[int, ...]:
    """Return the citations of the first claim behind ``start`` in the same sentence that has some."""
    behind = bisect_right(marked, start, key=lambda each: each[0])
    if behind == len(marked):
        return ()
    at, cites = marked[behind]
    return cites if bisect_right(sentences.begins, at) == bisect_right(sentences.begins, start) else ()


def _words(text: str) -> set[str]:
    return set(compared_words(text))
