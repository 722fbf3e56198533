"""Gives claims their places in an answer, and the citations of their sentence.

A mark is a citation of the claim before it (``Unmarked``). A judge that splits a sentence into several claims leaves
those before the last one without it, though a mark at the end of a sentence stands for the whole sentence.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace

from rag_harness.judges.citations import Unmarked
from rag_harness.measures.judged import Claim
from rag_harness.words.comparison import compared_words
from rag_harness.words.sentence_ends import sentence_spans


def placed_claims(plain: Unmarked, claims: Sequence[Claim]) -> list[Claim]:
    """Return claims of an answer without marks, with their places in the answer as it was given and their citations.

    A claim without a place is put where the sentence stands that has most of its words. A claim without a mark of its
    own has the next mark in its sentence.
    """
    sentences = list(sentence_spans(plain.text))
    located = [claim if claim.start >= 0 else _located(claim, plain.text, sentences) for claim in claims]
    found = plain.placed(located)
    marked = [(one.start, each.citations) for one, each in zip(located, found, strict=True) if each.citations]
    return [
        each if each.citations or one.start < 0 else replace(each, citations=_next(one.start, sentences, marked))
        for one, each in zip(located, found, strict=True)
    ]


def nearest_sentence(claim: str, text: str, sentences: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Return where the sentence stands that has most words of ``claim``, the first of equals; -1 where none has one."""
    wanted = _words(claim)
    shared = ((len(wanted & _words(text[start:end])), (start, end)) for start, end in sentences)
    count, span = max(shared, key=lambda each: each[0], default=(0, (-1, -1)))
    return span if count else (-1, -1)


def _located(claim: Claim, text: str, sentences: Sequence[tuple[int, int]]) -> Claim:
    start, end = nearest_sentence(claim.text, text, sentences)
    return replace(claim, start=start, end=end)


def _next(
    start: int, sentences: Sequence[tuple[int, int]], marked: Sequence[tuple[int, tuple[int, ...]]]
) -> tuple[int, ...]:
    """Return the citations of the first claim behind ``start`` in the same sentence that has some."""
    begins = [begin for begin, _ in sentences]
    mine = bisect_right(begins, start)
    later = ((at, cites) for at, cites in sorted(marked) if at > start and bisect_right(begins, at) == mine)
    return next((cites for _, cites in later), ())


def _words(text: str) -> set[str]:
    return set(compared_words(text))
