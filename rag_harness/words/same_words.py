"""Whether two texts have the same words. Markdown, white space, punctuation and capitals do not count."""

from __future__ import annotations

import re

from rag_harness.words.comparison import compared_words

FEWEST_WORDS_FOUND = 4
"""Fewest words that identify a quote: "45 days" stands in many texts."""
_LINK = re.compile(r"!?\[([^\]\n]{0,200})\]\([^)\n]{0,200}\)")
_TAG = re.compile(r"<[^<>\n]{1,200}>")
_NUMBER = re.compile(r"(?m)(?:^[ \t>]*|(?<=[.:;!?]\s))\d{1,2}[.)](?=\s)")
"""The number of a list item, at the beginning of a line, or of a sentence where lines were joined."""


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case, without Markdown, targets of links and HTML tags.

    Numbers of list items are left out, too.
    """
    return compared_words(_NUMBER.sub(" ", _TAG.sub(" ", _LINK.sub(r"\1", text))).replace("_", " "))


def says_words(text: str, quote: str) -> bool:
    """Return whether the words of ``quote``, at least four, stand in ``text`` in one sequence."""
    wanted = words_of(quote)
    return len(wanted) >= FEWEST_WORDS_FOUND and f" {' '.join(wanted)} " in f" {' '.join(words_of(text))} "
