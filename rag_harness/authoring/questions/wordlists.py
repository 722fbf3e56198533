"""Lists of words as they are best read: a paragraph, not a word a line."""

from __future__ import annotations


def listed(words: str) -> frozenset[str]:
    """Return the words of a text, which blanks separate."""
    return frozenset(words.split())
