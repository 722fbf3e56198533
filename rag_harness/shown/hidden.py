"""Characters that steer what shows them, or that nobody sees: each is written out as an escape."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

# Controls, soft hyphen, marks of direction, fillers, joiners, ends of lines and paragraphs, invisible operators,
# halves of characters, notes, shorthand, music, tags and selectors of variants beyond the first sixteen.
_HIDDEN = (
    r"\x00-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufeff"
    r"\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_SEEN = rf"[^\x00-\x7f{_HIDDEN}]"
_BELONGS = "|".join(
    (
        # Joiners between two letters of Persian or Hindi, or two pictures: a family is one picture of several.
        rf"(?<={_SEEN})[\u200c\u200d](?={_SEEN})",
        # A flag of a part of a country is spelled in tags.
        r"(?<=\U0001f3f4)[\U000e0020-\U000e007e]{1,8}\U000e007f",
        # Which of its forms an ideograph has.
        r"(?<=[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])[\U000e0100-\U000e01ef]",
    )
)
_FOUND = re.compile(rf"({_BELONGS})|[{_HIDDEN}]")


def escaped(text: str, kept: str = "") -> str:
    r"""Return text with its hidden characters as Python writes them: ``\x1b``, ``\u202e``. ``kept`` stay as they are.

    What is read from left to right or from right to left stays as it is, and so do pictures that are made of several.
    """
    return with_escapes(text, python_escape, kept)


def with_escapes(text: str, escape: Callable[[str], str], kept: str = "") -> str:
    """Return text with each of its hidden characters but ``kept`` as ``escape`` writes it."""
    if text.isascii() and text.isprintable():
        return text
    return _FOUND.sub(lambda found: found[0] if found[1] or found[0] in kept else escape(found[0]), text)


@lru_cache(4096)
def python_escape(letter: str) -> str:
    r"""Return a character as Python writes it: ``\n``, ``\x1b``, ``\u202e``."""
    return letter.encode("unicode_escape").decode("ascii")
