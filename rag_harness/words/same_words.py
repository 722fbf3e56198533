"""Do two texts say the same words? Marks of Markdown, white space, punctuation and capitals do not count."""

from __future__ import annotations

import re

FEWEST = 4
"""Words that say where a text is from: "45 days" stands anywhere."""
_LINK = re.compile(r"!?\[([^\]\n]{0,200})\]\([^)\n]{0,200}\)")
_TAG = re.compile(r"<[^<>\n]{1,200}>")
_NUMBER = re.compile(r"(?m)(?:^[ \t>]*|(?<=[.:;!?]\s))\d{1,2}[.)](?=\s)")
"""Of an item of a list: at the begin of a line, or of a sentence where lines have been joined."""
_WORD = re.compile(r"[^\W_]+")


def words_of(text: str) -> list[str]:
    """Return the words of a text in small letters, without the marks of Markdown, targets of links and tags of HTML.

    Numbers of the items of a list are marks too.
    """
    return _WORD.findall(_NUMBER.sub(" ", _TAG.sub(" ", _LINK.sub(r"\1", text))).casefold())


def says_words(text: str, quote: str) -> bool:
    """Return whether the words of ``quote``, four or more, stand in ``text`` one after the other."""
    wanted = words_of(quote)
    return len(wanted) >= FEWEST and f" {' '.join(wanted)} " in f" {' '.join(words_of(text))} "
