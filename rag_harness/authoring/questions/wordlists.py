"""Reads lists of words that are written as paragraphs, which are easier to read than one word a line."""

from __future__ import annotations


def word_set(words: str) -> frozenset[str]:
    """Return the words of a text that are separated by blanks."""
    return frozenset(words.split())
