"""Lexical features: which words of an answer are in its source, exactly, by stem, in runs, or near each other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rag_harness.judges.embedded.encoding import Float32s
from rag_harness.judges.embedded.words import Bools, Ints, SplitText

_LONGEST_RUN = 10
_BESIDE = 3


def same(of: Sequence[str], among: Sequence[str]) -> Bools:
    """Return which words are equal, shape (n, m)."""
    numbers: dict[str, int] = {}
    left = np.array([numbers.setdefault(word, len(numbers)) for word in of], np.int32)
    right = np.array([numbers.setdefault(word, len(numbers)) for word in among], np.int32)
    equal: Bools = left[:, None] == right[None, :]
    return equal


def covering_runs(equal: Bools) -> Ints:
    """Return for each word the length of the longest run around it that the source has too.

    ``equal`` is (n, m): is word i of the answer equal to word j of the source?
    """
    count, width = equal.shape
    longest, running = np.zeros(count, np.int64), np.zeros(width + 1, np.int64)
    for place in range(count):
        running[1:] = np.where(equal[place], running[:-1] + 1, 0)
        length = int(running.max())
        covered = longest[place - length + 1 : place + 1] if length else longest[:0]
        np.maximum(covered, length, out=covered)
    return np.minimum(longest, _LONGEST_RUN)


def near_pairs(equal: Bools) -> Bools:
    """Return for each word whether the source has it near the word before or after it."""
    wide = equal.copy()
    for shift in range(1, _BESIDE + 1):
        wide[:, shift:] |= equal[:, :-shift]
        wide[:, :-shift] |= equal[:, shift:]
    pairs = (equal[:-1] & wide[1:]).any(axis=1)
    near = np.zeros(len(equal), bool)
    near[:-1] |= pairs
    near[1:] |= pairs
    return near


def novel_runs(known: Bools, text: SplitText) -> Ints:
    """Return for each content word the length of its run of content words that the source does not have."""
    runs = np.zeros(len(known), np.int64)
    for sentence in range(len(text.sentences)):
        row: list[int] = []
        for place in [place for place in text.words_of(sentence) if text.content[place]]:
            row = [] if known[place] else [*row, place]
            runs[row] = len(row)
    return runs


def novel_names(known: Bools, text: SplitText) -> Bools:
    """Return which words are capitalised inside a sentence and not in the source."""
    capital = np.array([word[:1].isupper() for word in text.written], bool)
    capital[text.firsts] = False
    found: Bools = capital & ~known & text.content
    return found


def lexical(answer: SplitText, exact: Bools, stems: Bools) -> Float32s:
    """Return the values of each word, shape (n, names), in the order of NAMES."""
    has, has_stem = np.asarray(exact.any(axis=1)), np.asarray(stems.any(axis=1))
    columns = (
        has,
        has_stem,
        covering_runs(exact) / _LONGEST_RUN,
        near_pairs(stems),
        np.minimum(novel_runs(has_stem, answer), 6) / 6,
        novel_names(has_stem, answer),
    )
    return np.stack([np.asarray(column, np.float32) for column in columns], axis=1)


NAMES = ("exact", "stem", "run", "near_pair", "novel_run", "novel_name")
"""The columns of ``lexical``."""
