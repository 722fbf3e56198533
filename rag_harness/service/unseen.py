"""Finds invisible characters. A name with such characters looks like another name, or is empty to the eye."""

from __future__ import annotations

import unicodedata

_FORGES = ("Cc", "Cs", "Zl", "Zp")
"""Categories of characters: control, surrogate, line separator, paragraph separator."""
_JOINS = "\u200c\u200d\ufe0e\ufe0f"
"""Persian words and emoji need these after a character outside ASCII. After a Latin letter they are not needed."""
_BLANK = "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"
"""Letters, marks and signs without a picture (Unicode's Default_Ignorable_Code_Point, and Braille without a dot)."""


def unseen_fault(name: str) -> str:
    """Return what is invisible in ``name``; empty if nothing is."""
    if not any(_is_seen(each) for each in name):
        return "is empty" if not name else "has nothing that can be seen"
    for before, each in zip(" " + name, name, strict=False):
        if unicodedata.category(each) in _FORGES:
            return "has control characters"
        if not (_is_seen(each) or unicodedata.category(each) == "Zs" or (each in _JOINS and before > "\x7f")):
            return f"has U+{ord(each):04X}, which cannot be seen or turns text around"
    return ""


def _is_seen(each: str) -> bool:
    """Whether a character has a picture. Formats (zero-width, turning, tags), selectors and blanks have none."""
    if each.isascii():
        return "!" <= each <= "~"
    is_selector = "\ufe00" <= each <= "\ufe0f" or "\U000e0100" <= each <= "\U000e01ef"
    return not (unicodedata.category(each) in ("Cf", "Zs", *_FORGES) or each in _BLANK or is_selector)
