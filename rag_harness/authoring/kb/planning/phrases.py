"""Fills the gaps of sentences: a text in braces is drawn, or is a name.

``{thing}``            a name that the topic gives
``{a|b|c}``            one of these, which may be empty or have gaps of its own
``{14..60:7}``         a number from 14 in steps of 7; as many decimals as start or step
``{date:2025..2026}``  a day of these years
"""

from __future__ import annotations

import re
from calendar import month_name
from collections.abc import Mapping
from random import Random

_GAP = re.compile(r"\{([^{}]*)\}")
_RANGE = re.compile(r"(\d+(?:\.\d+)?)\.\.(\d+(?:\.\d+)?)(?::(\d+(?:\.\d+)?))?")
_DATE = re.compile(r"date:(\d{4})\.\.(\d{4})")
_ONE = re.compile(
    r"(?<![\d.,])(1 (?:working |private )?"
    r"(?:cleaning|customer|day|hour|kilometre|litre|minute|month|network|person|piece|place|point|programme|profile"
    r"|recipient|second|step|time|unit|use|week|year))s\b"
)
_LAST_DAY = 28
"""Every month has this day, so that every date is valid."""


def filled(text: str, names: Mapping[str, str], chance: Random) -> str:
    """Return ``text`` with its gaps filled. A number of 1 is followed by a singular.

    Raises:
        KeyError: a gap has an unknown name.
    """
    while "{" in text:
        text = _GAP.sub(lambda gap: _drawn(gap[1], names, chance), text)
    return _ONE.sub(r"\1", text)


def _drawn(gap: str, names: Mapping[str, str], chance: Random) -> str:
    if gap in names:
        return names[gap]
    if "|" in gap:
        return chance.choice(gap.split("|"))
    if found := _DATE.fullmatch(gap):
        return _day(int(found[1]), int(found[2]), chance)
    if found := _RANGE.fullmatch(gap):
        return _number(found[1], found[2], found[3] or "1", chance)
    raise KeyError(gap)


def _day(first: int, last: int, chance: Random) -> str:
    return f"{chance.randint(1, _LAST_DAY)} {month_name[chance.randint(1, 12)]} {chance.randint(first, last)}"


def _number(start: str, end: str, step: str, chance: Random) -> str:
    decimals = max(len(each.partition(".")[2]) for each in (start, step))
    scale = 10**decimals
    first, last, by = (round(float(each) * scale) for each in (start, end, step))
    value: float = chance.randrange(first, last + 1, by) / scale
    return f"{value:,.{decimals}f}"
