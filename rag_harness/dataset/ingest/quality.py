"""Detection of garbage: binaries, text in a wrong charset, characters without words, repeated lines."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

from rag_harness.errors import UnreadableError

SHORT_TEXT = 200
"""Fewest characters of a text to judge. Counting says nothing about a shorter text."""
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f\ufffe\uffff]")
# UTF-8 that was read as Latin-1 or Windows-1252, and the replacement character of unreadable bytes.
_MOJIBAKE = re.compile("[\u00c2\u00c3][\u0080-\u00bf\u0152-\u0178\u2013-\u2122]|\u00e2\u20ac|\u00ef\u00bf\u00bd|\ufffd")
_LETTER = re.compile(r"[^\W_]")
_MARKS = ("Mn", "Mc")
"""Unicode categories: vowel signs of Devanagari, Thai, Tamil, and combining accents."""
_RUN = re.compile(r"[!-~]{200,}")

MOST_CONTROL, MOST_MOJIBAKE, LEAST_LETTERS, MOST_RUNS, MOST_REPEATED = 0.02, 0.02, 0.4, 0.5, 0.8
"""Shares of the characters that are not blank. The last is a share of the lines, if there are ``MANY_LINES``."""
MANY_LINES = 50


def checked_text(text: str, judged: str | None = None) -> str:
    """Return ``text`` if it is not garbage. ``judged`` is the part to judge, without marks that the loader added.

    Raises:
        UnreadableError: the text is garbage; names the shares that show it.
    """
    fault = garbage(text if judged is None else judged)
    if fault:
        raise UnreadableError(f"{fault}. Remove it, or save it anew as UTF-8 text")
    return text


def garbage(text: str) -> str:
    """Return why ``text`` is garbage; empty where it is not."""
    solid = sum(map(len, text.split()))
    if "\0" in text:
        return "holds NUL characters: a binary file"
    if solid < SHORT_TEXT:
        return ""
    shares = {
        "control characters: a binary file": (_count(_CONTROL, text) / solid, MOST_CONTROL),
        "letters read in a wrong charset": (_count(_MOJIBAKE, text) / solid, MOST_MOJIBAKE),
        "runs of 200 characters without a blank: data, no words": (_length(_RUN, text) / solid, MOST_RUNS),
        "neither letters nor digits": (1 - _letters(text, solid * LEAST_LETTERS) / solid, 1 - LEAST_LETTERS),
        "lines that are the same": (_repeated(text), MOST_REPEATED),
    }
    found = [f"{min(share, 1):.0%} {what}" for what, (share, most) in shares.items() if share > most]
    return "garbage: " + ", ".join(found) if found else ""


def _letters(text: str, enough: float) -> int:
    """Count letters and digits. If these are too few, count vowel signs and accents, too."""
    letters = _count(_LETTER, text)
    if letters >= enough or text.isascii():
        return letters
    return letters + sum(n for each, n in Counter(text).items() if unicodedata.category(each) in _MARKS)


def _count(pattern: re.Pattern[str], text: str) -> int:
    return sum(1 for _ in pattern.finditer(text))


def _length(pattern: re.Pattern[str], text: str) -> int:
    return sum(match.end() - match.start() for match in pattern.finditer(text))


def _repeated(text: str) -> float:
    lines = [line for line in map(str.strip, text.splitlines()) if line]
    if len(lines) < MANY_LINES:
        return 0.0
    return Counter(lines).most_common(1)[0][1] / len(lines)
