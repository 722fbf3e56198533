"""Texts of strangers on a terminal: what would steer it is written out."""

from __future__ import annotations

import unicodedata

_STEERS = ("Cc", "Cs", "Zl", "Zp")
_TURNS = "\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
"""Marks of direction: one that is left open turns whatever follows on the screen."""


def safe(text: str) -> str:
    """Return a text that prints itself and does nothing else; its lines are kept."""
    text = text.replace("\r\n", "\n").expandtabs(4)
    return text if text.isprintable() else "".join(map(_harmless, text))


def _harmless(letter: str) -> str:
    if letter in _TURNS:
        return ""
    if letter == "\n" or unicodedata.category(letter) not in _STEERS:
        return letter
    return f"<{ord(letter):02x}>"
