"""Compares opening hours in a sentence with the hours by day of a structured source."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from rag_harness.judges.embedded.figures import times

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

_TIME = r"(?:\d{1,2}(?::\d{1,2})?\s*(?:a\.?m\.?|p\.?m\.?)|\d{1,2}:\d{1,2}|\d{1,2}(?=\s*(?:-|–|to)\s*\d)|noon|midnight)"
_RANGE = re.compile(rf"({_TIME})\s*(?:-|–|—|to|until|till|and|through)\s*({_TIME})", re.I)
_DAY = r"(mon|tue|wed|thu|fri|sat|sun)[a-z]*"
_SPAN = re.compile(rf"\b{_DAY}\s*(?:-|–|—|to|through|until)\s*{_DAY}\b", re.I)
_SINGLE = re.compile(r"\b(mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:days?)?\b", re.I)
_WEEK = r"(?:seven|7) days(?: (?:a|per) week)?"
_GROUPS = (
    (re.compile(r"\bweekdays?\b", re.I), range(5)),
    (re.compile(r"\bweekends?\b", re.I), range(5, 7)),
    (re.compile(rf"\b(?:every ?day|daily|{_WEEK}|all week|each day|throughout the week)\b", re.I), range(7)),
)  # fmt: skip
_LEAF = re.compile(rf"\b({'|'.join(DAYS)}): (.+)", re.I)

Hours = Mapping[int, tuple[frozenset[int], frozenset[int]]]
"""Opening and closing by day, 0 is Monday; in minutes, several values where am or pm is not said."""


def hours_of(sentences: Sequence[str]) -> Hours:
    """Return the hours by day, from sentences such as "hours monday: 11:00 am to 5:00 pm"."""
    found: dict[int, tuple[frozenset[int], frozenset[int]]] = {}
    for sentence in sentences:
        leaf = _LEAF.search(sentence)
        told = _RANGE.search(leaf[2]) if leaf else None
        if leaf and told:
            found[DAYS.index(leaf[1].lower())] = _minutes(told[1], told[2])
    return found


def hours_agreement(sentence: str, hours: Hours) -> tuple[int, int]:
    """Return how many of the days in a sentence have the source's hours, and how many have others."""
    right = wrong = 0
    for days, told in _told(sentence) if hours else ():
        for day in days:
            known = hours.get(day)
            same = known is not None and all(one & other for one, other in zip(told, known, strict=True))
            right, wrong = right + same, wrong + (not same)
    return right, wrong


def _told(sentence: str) -> Iterator[tuple[set[int], tuple[frozenset[int], frozenset[int]]]]:
    """Yield days with their hours. Days stand before or after their hours."""
    ranges = list(_RANGE.finditer(sentence))
    named = sorted(_named(sentence))
    if not ranges or not named:
        return
    before = named[0][0] < ranges[0].start()
    for place, found in enumerate(ranges):
        if before:
            low, high = (ranges[place - 1].end() if place else 0), found.start()
        else:
            low, high = found.end(), (ranges[place + 1].start() if place + 1 < len(ranges) else len(sentence))
        days = {day for at, group in named if low <= at < high for day in group}
        if days:
            yield days, _minutes(found[1], found[2])


def _named(sentence: str) -> Iterator[tuple[int, tuple[int, ...]]]:
    spans = list(_SPAN.finditer(sentence))
    for span in spans:
        first, last = _day(span[1]), _day(span[2])
        yield span.start(), tuple(day % 7 for day in range(first, last + 1 + 7 * (last < first)))
    for pattern, group in _GROUPS:
        yield from ((found.start(), tuple(group)) for found in pattern.finditer(sentence))
    for found in _SINGLE.finditer(sentence):
        if not any(span.start() <= found.start() < span.end() for span in spans):
            yield found.start(), (_day(found[1]),)


def _day(name: str) -> int:
    return next(place for place, day in enumerate(DAYS) if day.startswith(name[:3].lower()))


def _minutes(opens: str, closes: str) -> tuple[frozenset[int], frozenset[int]]:
    return _minute(opens), _minute(closes)


def _minute(said: str) -> frozenset[int]:
    plain = said.strip().lower()
    if plain in ("noon", "midnight"):
        return frozenset([720 if plain == "noon" else 0])
    if plain.isdigit():
        return frozenset([int(plain) % 12 * 60, int(plain) % 12 * 60 + 720])
    found = times(re.sub(r":(\d)(?!\d)", r":0\1", plain))
    return found[0] if found else frozenset()
