"""Dates, days of a month, years and times of day among the tokens of a sentence."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rag_harness.words.contradictions.figure import DASHES, LOWER, UPPER, Figure, token_words, value, word
from rag_harness.words.contradictions.vocabulary import Token, word_set

_SHORT = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTHS = word_set(
    "january february march april may june july august september october november december sept"
) | frozenset(_SHORT)
_AFTER_MAY = word_set("until to and or each every at is")
_ROLES = dict.fromkeys(("to", "till", "by", "before", "latest", "and", *DASHES), "until") | dict.fromkeys(
    ("starting", "since", "after"), "from"
)
_LEADING = UPPER | LOWER | DASHES | {"on", "at", "and", "to"}


def dated(found: Sequence[Token], at: int) -> Figure | None:
    """Return the date or the time of day that begins with the number at ``at``."""
    return _clock(found, at) or _date(found, at)


def year(found: Sequence[Token], at: int) -> Figure | None:
    """Return the number at ``at`` as a year, if it can be nothing else."""
    return _made(found, (at, at), "year", int(found[at].lower)) if _is_year(found[at].lower) else None


def _clock(found: Sequence[Token], at: int) -> Figure | None:
    half = word(found, at + 1)
    spelt = half in {"a", "p"} and word(found, at + 2) == "m"
    pattern = r"[0-9]{1,2}(?::[0-9]{2})?" if half in {"am", "pm"} or spelt else r"[0-9]{1,2}:[0-9]{2}"
    if not re.fullmatch(pattern, found[at].lower):
        return None
    hour, minute = (int(part) for part in f"{found[at].lower}:0".split(":")[:2])
    if half in {"am", "pm"} or spelt:
        hour = hour % 12 + 12 * (half[0] == "p")
    last = at + 2 if spelt else at + (half in {"am", "pm"})
    return _made(found, (at, last), "clock", hour * 60 + minute)


def _date(found: Sequence[Token], at: int) -> Figure | None:
    day = value(found[at]) or 0
    if not found[at].is_number or not 1 <= day <= 31 or day % 1:
        return None
    after = at + 1 + (word(found, at + 1) in {"st", "nd", "rd", "th"})
    ordinal = after > at + 1
    after += word(found, after) == "of" and word(found, after + 1) in _MONTHS
    if month := _month(word(found, after), word(found, after + 1)):
        is_dated = _is_year(word(found, after + 1))
        said = int(word(found, after + 1)) if is_dated else 0
        return _made(found, (at, after + is_dated), "date", month * 100 + day, said)
    if word(found, at - 1) != "may" and (month := _month(word(found, at - 1), "")):
        return _made(found, (at - 1, at), "date", month * 100 + day)
    return _made(found, (at, at + 1), "day of the month", day) if ordinal and _of_month(found, after) else None


def _of_month(found: Sequence[Token], after: int) -> bool:
    return "month" in token_words(found, after, after + 4)


def _month(name: str, following: str) -> int:
    """Return the month that is named. "6 may travel" names none."""
    travels = name == "may" and following[:1].isalpha() and following not in _AFTER_MAY
    return 0 if name not in _MONTHS or travels else _SHORT.index(name[:3]) + 1


def _is_year(digits: str) -> bool:
    return bool(re.fullmatch(r"(?:19|20)[0-9]{2}", digits))


def _made(found: Sequence[Token], span: tuple[int, int], dimension: str, said: float, of: int = 0) -> Figure:
    before = token_words(found, max(0, span[0] - 2), span[0])
    leading = next((one for one in reversed(before) if one in _LEADING), "")
    role = "" if leading in {"at", "on"} else _ROLES.get(leading, leading)
    return Figure(dimension, said, said, "", frozenset([role] if role else []), "", *span, year=of)
