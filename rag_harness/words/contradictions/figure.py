"""A figure of a sentence: its dimension, value, bound and role."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rag_harness.words.contradictions.vocabulary import NUMBER_WORDS, Token, term, word_set

DASHES = frozenset("-–—")
DATED = frozenset(("date", "clock", "day of the month", "year"))
"""Dimensions whose role is the word before the figure: open from, open until."""
UPPER = word_set("within most maximum max until till by below under latest before up less fewer younger")
LOWER = word_set("least minimum min from over above exceeds more after since beyond starting")
_ABOUT = word_set("about around roughly approximately nearly almost circa")
_FEWER = frozenset(("less", "fewer"))
_NOT = frozenset(("no", "not"))
_OR_MORE = re.compile(r"(?:\w+ )?or (?:more|later|newer|higher|above|over)\b|and (?:up|above|over)\b|\+")
_OR_LESS = re.compile(r"(?:\w+ )?or (?:less|fewer|under|below)\b|at (?:the )?(?:most|latest)\b|maximum\b")


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure in its sentence.

    Attributes:
        dimension: what it measures: "time", "mass", "€", "percent", "date", "clock", "version", "count", …
        low, high: the values, in the smallest unit of the dimension; equal unless it is a range. A date is
            month · 100 + day, a time of day is in minutes.
        bound: "upper", "lower", "about" or "".
        role: the terms of what is counted, or the word before a date or a time.
        per: the unit it is stated for ("per parcel"), or empty.
        first, last: its first and last token.
        written: its text, white space folded.
        year: of a date; 0 where none is stated.
    """

    dimension: str
    low: float
    high: float
    bound: str
    role: frozenset[str]
    per: str
    first: int
    last: int
    written: str = ""
    year: int = 0


def figure(found: Sequence[Token], span: tuple[int, int], dimension: str, value: float) -> Figure:
    """Return the figure of the tokens of ``span``. Its bound and its ``per`` come from the words around it."""
    return Figure(dimension, value, value, _bound(found, *span), frozenset(), _per(found, span[1]), *span)


def word(found: Sequence[Token], place: int) -> str:
    """Return a token in lower case, or "" outside the sentence."""
    return found[place].lower if 0 <= place < len(found) else ""


def token_words(found: Sequence[Token], first: int, last: int) -> list[str]:
    """Return the tokens from ``first`` to before ``last`` in lower case, with "" outside the sentence."""
    return [word(found, place) for place in range(first, last)]


def value(token: Token) -> float | None:
    """Return the number of a token, in digits or as a word. None for other words, and for far too many digits."""
    if token.lower in NUMBER_WORDS:
        return float(NUMBER_WORDS[token.lower])
    if not token.is_number or len(token.lower) > 15:
        return None
    if token.lower.isdigit():
        return float(token.lower)
    if re.fullmatch(r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?", token.lower):
        return float(token.lower.replace(",", ""))
    whole, *rest = re.split(r"[.,:]", token.lower)
    return float(f"{whole}.{rest[0]}" if rest else whole)


def _bound(found: Sequence[Token], first: int, last: int) -> str:
    after = " ".join(token_words(found, last + 1, last + 4))
    if _OR_MORE.match(after):
        return "lower"
    if _OR_LESS.match(after):
        return "upper"
    before = token_words(found, max(0, first - 3), first)
    turned = bool(_NOT & set(before))
    for said in reversed(before):
        if said in _ABOUT:
            return "about"
        if said in UPPER:
            return "lower" if turned and said in _FEWER else "upper"
        if said in LOWER:
            return "upper" if turned else "lower"
    return ""


def _per(found: Sequence[Token], last: int) -> str:
    after = last + 1 + (word(found, last + 1) == "for" and word(found, last + 2) in {"each", "every"})
    if word(found, after) not in {"per", "each", "every", "a", "an"}:
        return ""
    return term(word(found, after + 1)) or word(found, after + 1)
