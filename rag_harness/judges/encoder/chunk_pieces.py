"""Cuts a chunk that is longer than a model's window into pieces of whole sentences."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from rag_harness.words.sentence_ends import Span, sentence_spans

Count = Callable[[Sequence[str]], list[int]]
"""Counts tokens or words of each text."""
_WORD = re.compile(r"\S+")


def word_counts(texts: Sequence[str]) -> list[int]:
    """Return the number of words of each text."""
    return [len(text.split()) for text in texts]


def chunk_pieces(chunk: str, count: Count, most: int) -> list[str]:
    """Return ``chunk`` in pieces of at most ``most``, as ``count`` counts them. Nothing of it is left out.

    A piece ends with a sentence. A sentence that is too long by itself is cut between words, and a word within.
    """
    if count([chunk])[0] <= most:
        return [chunk]
    parts = [part for sentence in sentence_spans(chunk) for part in _short(chunk, sentence, count, most)]
    pieces: list[Span] = []
    room = 0
    for (start, end), size in zip(parts, count([chunk[start:end] for start, end in parts]), strict=True):
        # One more for what stands between two parts.
        if pieces and size + 1 <= room:
            pieces[-1] = (pieces[-1][0], end)
            room -= size + 1
        else:
            pieces.append((start, end))
            room = most - size
    return [chunk[start:end] for start, end in pieces]


def _short(chunk: str, part: Span, count: Count, most: int) -> Iterator[Span]:
    """Yield ``part`` in halves, until each is short enough."""
    start, end = part
    if count([chunk[start:end]])[0] <= most or end - start < 2:
        yield part
        return
    words = [found.start() for found in _WORD.finditer(chunk, start, end)]
    middle = words[len(words) // 2] if len(words) > 1 else (start + end) // 2
    yield from _short(chunk, (start, middle), count, most)
    yield from _short(chunk, (middle, end), count, most)
