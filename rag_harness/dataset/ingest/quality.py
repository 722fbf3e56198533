"""Text that is none: binaries, letters of a wrong charset, characters without words, one line again and again."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

from rag_harness.errors import UnreadableError

SHORT = 200
"""Characters. Of less nothing can be said by counting."""
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f\ufffe\uffff]")
# UTF-8 that was read as Latin-1 or Windows-1252, and what stands for bytes that no charset could read.
_MOJIBAKE = re.compile("[\u00c2\u00c3][\u0080-\u00bf\u0152-\u0178\u2013-\u2122]|\u00e2\u20ac|\u00ef\u00bf\u00bd|\ufffd")
_LETTER = re.compile(r"[^\W_]")
_MARKS = ("Mn", "Mc")
"""Categories of characters: vowel signs of Devanagari, Thai, Tamil, and accents that stand by themselves."""
_RUN = re.compile(r"[!-~]{200,}")

MOST_CONTROL, MOST_MOJIBAKE, LEAST_LETTERS, MOST_RUNS, MOST_REPEATED = 0.02, 0.02, 0.4, 0.5, 0.8
"""Shares of the characters that are not blank; the last of the lines, of which there must be ``MANY_LINES``."""
MANY_LINES = 50


def checked(text: str, judged: str | None = None) -> str:
    """Return ``text``; ``judged`` is what of it is not our own making, where that is not all.

    Raises:
        UnreadableError: it is garbage; says by which of the shares.
    """
    fault = garbage(text if judged is None else judged)
    if fault:
        raise UnreadableError(f"{fault}. Remove it, or save it anew as UTF-8 text")
    return text


def garbage(text: str) -> str:
    """Say why ``text`` is garbage, empty where it is not."""
    solid = sum(map(len, text.split()))
    if "\0" in text:
        return "holds NUL characters: a binary file"
    if solid < SHORT:
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
    """Count letters and digits; vowel signs and accents too where there are not enough without them."""
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
