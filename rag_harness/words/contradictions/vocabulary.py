"""Tokens, terms and word lists for the search for contradictions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import NamedTuple

from rag_harness.words.terms import STOPWORDS, stem


def word_set(words: str) -> frozenset[str]:
    """Return the set of words in a line."""
    return frozenset(words.split())


_TOKEN = re.compile(
    r"[A-Za-z]+-?[0-9]\w*(?:[.-]\w+)*|[0-9]+(?:[.,:][0-9]+)*|[^\W\d_]+(?:['’][^\W\d_]+)*|[€$£%°+,;:()]|(?<=[\s\d])[-–—](?=[\s\d€$£])"
)
_TO_TWENTY = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen twenty
"""
NUMBER_WORDS = {name: value for value, name in enumerate(_TO_TWENTY.split()) if value > 1} | {
    "thirty": 30,
    "forty": 40,
    "fifty": 50,
    "sixty": 60,
    "seventy": 70,
    "eighty": 80,
    "ninety": 90,
}
_SAME = {
    "weight": "weigh", "staff": "employee", "buy": "purchase", "purchased": "purchase", "booked": "booking",
    "costs": "cost", "price": "cost", "fee": "cost", "charge": "cost", "surcharge": "cost", "supplement": "cost",
    "validity": "valid", "arrival": "arrive", "departure": "depart", "posted": "ship", "shipping": "ship",
    "permitted": "allowed", "guarantee": "warranty", "guaranteed": "warranty", "guarantees": "warranty",
    "brought": "bring", "taken": "take", "took": "take", "gave": "give", "held": "hold", "lent": "lend",
    "left": "leave", "customers": "customer", "clients": "customer", "client": "customer", "cancellation": "cancel",
}  # fmt: skip
_LIGHT = """
    able accept actual add agree allow already always answer applies apply around ask available away back basis
    become begin beginning below best better bring call can card carry case change check choose come complete contact
    cost count cover current currently date day different directly easy end enter entire exact extra find first follow
    following free full further general get given good grant hand handle happen have help here hold hour include
    included including instead keep kind last late later lead leave less limit list look maximum mean minimum minute
    month much name necessary new next normal normally note number obtain offer open order own page part pay period
    person place please point possible provide put rate reach ready receive regular reimburse require rest rule run
    second see send set show simple since soon stand standard start state stay step still stop support sure table thing
    time today total transfer twice two usual usually valid value want way week well word work year young
"""
OPENERS = word_set("if when unless while once except excluding during without whenever besides although")
"""Words that begin a condition. The condition ends with its clause."""
LABELS = word_set(
    "zone step level form page chapter table type model platform gate room line section class phase tier part article "
    "no nr group generation row terminal track stage grade size appendix annex figure unit module lesson week"
)
VERSION_LABELS = word_set("version release firmware edition v revision")
_SILENT = word_set("cannot never longer least latest even both neither any most not forbidden prohibited")
_BREAKS = frozenset(",;:()")


_MEASURES = {
    "time": (
        (1, "second seconds sec secs"), (60, "minute minutes min mins"), (3600, "hour hours h hrs"),
        (86400, "day days"), (604800, "week weeks"),
    ),
    "nights": ((1, "night nights"),),
    "months": ((1, "month months"), (12, "year years")),
    "mass": ((1, "g gram grams"), (1000, "kg kilo kilos kilogram kilograms"), (1_000_000, "t tonne tonnes")),
    "length": (
        (1, "mm millimetre millimetres millimeter millimeters"),
        (10, "cm centimetre centimetres centimeter centimeters"),
        (1000, "m metre metres meter meters"), (1_000_000, "km kilometre kilometres kilometer kilometers"),
    ),
    "volume": ((1, "ml"), (1000, "l litre litres liter liters")),
    "power": ((1, "w watt watts"), (1000, "kw")), "energy": ((1, "wh"), (1000, "kwh")),
    "charge": ((1, "mah"), (1000, "ah")), "voltage": ((1, "v volt volts"),), "pressure": ((1, "bar"),),
    "bytes": ((1, "kb"), (1000, "mb"), (1_000_000, "gb"), (1_000_000_000, "tb")),
    "temperature": ((1, "degree degrees °"),), "light": ((1, "lm lumen lumens"),), "noise": ((1, "db"),),
    "percent": ((1, "% percent"),),
}  # fmt: skip
UNITS = {
    word: (dimension, float(factor))
    for dimension, measures in _MEASURES.items()
    for factor, words in measures
    for word in words.split()
}
"""The dimension of each unit, and its size in the smallest unit of that dimension. Months have no length in days."""


class Token(NamedTuple):
    """A word, a number or a mark, in lower case, with its place in the text."""

    lower: str
    start: int
    end: int

    @property
    def is_number(self) -> bool:
        return "0" <= self.lower[0] <= "9"

    @property
    def breaks(self) -> bool:
        """Whether a clause ends here."""
        return self.lower in _BREAKS


def tokens(text: str, start: int, end: int) -> Iterator[Token]:
    """Return the tokens of ``text[start:end]``, placed in ``text``."""
    for found in _TOKEN.finditer(text, start, end):
        yield Token(found[0].lower().replace("’", "'"), found.start(), found.end())


@lru_cache(maxsize=16384)
def term(word: str) -> str:
    """Return the form in which a lower-case word is compared; empty for a function word, a number, a mark."""
    word = word.removesuffix("'s")
    if (
        not word
        or not word[0].isalpha()
        or word in STOPWORDS
        or word in OPENERS
        or word in NUMBER_WORDS
        or word in _SILENT
    ):
        return ""
    if word in _SAME:
        return stem(_SAME[word])
    return stem(_SAME.get(stem(word), word))


@cache
def light() -> frozenset[str]:
    """Return the light terms: they say little about the subject of a sentence."""
    return frozenset(filter(None, map(term, _LIGHT.split())))


_CASES = """
    standard express overnight economy bulky large small
    member guest basic plus premium business private student trial starter pro enterprise
    weekday weekend saturday sunday monday tuesday wednesday thursday friday
    summer winter spring autumn
    adult child senior infant
    online store counter phone
    domestic abroad international
    morning evening afternoon night
    new used
    ground upper
    import export upload download
    first second third
    single double
    minimum maximum
    hot cold
    indoor outdoor
    front rear
    left right
"""


@cache
def contrasts() -> tuple[frozenset[str], ...]:
    """Return groups of words that mark different cases. Figures of different cases do not contradict each other."""
    return tuple(frozenset(map(term, group.split())) for group in _CASES.strip().splitlines())
