"""Finds numbers and times of a text, in comparable forms."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rag_harness.words.number_words import in_digits, in_words

_TO_TWENTY = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty"
)
_NAMED = {name: str(value) for value, name in enumerate(_TO_TWENTY.split())} | {
    "thirty": "30",
    "forty": "40",
    "fifty": "50",
    "sixty": "60",
    "seventy": "70",
    "eighty": "80",
    "ninety": "90",
}
_TIME = re.compile(r"\b(\d{1,2})(?:[:.](\d{2}))?\s*(a\.?m\b\.?|p\.?m\b\.?)|\b(\d{1,2}):(\d{2})\b", re.I)
_NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")
_WORDS = re.compile(r"[a-z]+", re.I)
_MARKER = re.compile(r"^[^\S\n]*\(?\d{1,3}[.):]\s", re.M)
CITED = re.compile(
    r"\b(?:passages?|sources?|documents?)\s*(?:#\s*)?(\d{1,3})\b|\[(?:source\s*)?(\d{1,3})\b[^\]]{0,400}\]", re.I
)
"""A passage by its number, from 1."""

ALL_WEEK = re.compile(r"\b(?:seven|six|five|[567]) days (?:a|per|of the) week\b|\b24/7\b", re.I)
_HALF_DAY = 12 * 60


def times(text: str) -> list[frozenset[int]]:
    """Return each time of day, in minutes; two values where am or pm is not said."""
    return [_minutes(found) for found in _TIME.finditer(in_digits(text))]


def clocks(text: str) -> list[tuple[str, frozenset[int]]]:
    """Return each time of day as it is written, with its minutes."""
    found = _TIME.finditer(in_digits(text))
    return [(in_words(text, " ".join(one[0].split())), _minutes(one)) for one in found]


def numbers(text: str) -> list[str]:
    """Return each number, in digits even where it was a word, without times, list numbers and citations."""
    rest = _TIME.sub(" ", CITED.sub(" ", ALL_WEEK.sub(" ", _MARKER.sub(" ", in_digits(text)))))
    named = (_NAMED[word.lower()] for word in _WORDS.findall(rest) if word.lower() in _NAMED and word.lower() != "one")
    return [*(_plain(found) for found in _NUMBER.findall(rest)), *named]


def known_numbers(text: str) -> frozenset[str]:
    """Return every number of a source, also those in times and dates."""
    return frozenset(
        [*numbers(text), *map(_plain, _NUMBER.findall(in_digits(text))), *_part_numbers(text), *_ones(text)]
    )


def _part_numbers(text: str) -> Iterator[str]:
    yield from (_plain(part) for part in re.findall(r"\d+", text))


def _ones(text: str) -> Iterator[str]:
    yield from ("1" for word in _WORDS.findall(text) if word.lower() == "one")


def _plain(number: str) -> str:
    whole, _, part = number.replace(",", "").partition(".")
    part = part.rstrip("0")
    return (whole.lstrip("0") or "0") + (f".{part}" if part else "")


def _minutes(found: re.Match[str]) -> frozenset[int]:
    hour, minute, half, bare_hour, bare_minute = found.groups()
    if half:
        return frozenset([int(hour) % 12 * 60 + int(minute or 0) + (_HALF_DAY if half[0] in "pP" else 0)])
    at = int(bare_hour) % 24 * 60 + int(bare_minute)
    return frozenset([at] if int(bare_hour) > 12 or int(bare_hour) == 0 else [at % _HALF_DAY, at % _HALF_DAY + 720])
