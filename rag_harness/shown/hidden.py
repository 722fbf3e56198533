"""Escapes for control characters and invisible characters."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

# Control characters, soft hyphen, direction marks, fillers, joiners, line separators, invisible operators, surrogates,
# annotations, shorthand and musical format controls, tags, variation selectors beyond the first sixteen.
_HIDDEN = (
    r"\x00-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufeff"
    r"\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_SEEN = rf"[^\x00-\x7f{_HIDDEN}]"
_BELONGS = "|".join(
    (
        # A joiner between two letters (Persian, Hindi) or two emoji: a family is several emoji in one.
        rf"(?<={_SEEN})[\u200c\u200d](?={_SEEN})",
        # The flag of a region, such as Scotland, is a flag followed by tag characters.
        r"(?<=\U0001f3f4)[\U000e0020-\U000e007e]{1,8}\U000e007f",
        # A variation selector after an ideograph.
        r"(?<=[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])[\U000e0100-\U000e01ef]",
    )
)
_FOUND = re.compile(rf"({_BELONGS})|[{_HIDDEN}]")


def escaped(text: str, kept: str = "") -> str:
    r"""Return text with its hidden characters as Python writes them: ``\x1b``, ``\u202e``. ``kept`` stay as they are.

    Text of either direction stays as it is, and so do emoji that are made of several characters.
    """
    return with_escapes(text, python_escape, kept)


def with_escapes(text: str, escape: Callable[[str], str], kept: str = "") -> str:
    """Return text with each hidden character replaced by ``escape`` of it, except for ``kept``."""
    if text.isascii() and text.isprintable():
        return text
    return _FOUND.sub(lambda found: found[0] if found[1] or found[0] in kept else escape(found[0]), text)


@lru_cache(4096)
def python_escape(letter: str) -> str:
    r"""Return a character as Python writes it: ``\n``, ``\x1b``, ``\u202e``."""
    return letter.encode("unicode_escape").decode("ascii")
