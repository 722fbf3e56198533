"""Finds the quantities of a text: amounts, durations, shares, dates, counts; in digits or in words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rag_harness.judges.embedded.figures import ALL_WEEK, CITED
from rag_harness.words.contradictions.vocabulary import LABELS, NUMBER_WORDS, UNITS, Token, tokens, word_set
from rag_harness.words.number_words import in_digits, in_words
from rag_harness.words.terms import STOPWORDS, stem

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = re.compile(r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)(?:[a-z]{0,6})")
_SCALES = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "dozen": 12.0}
_SIGNS = frozenset("€$£")
_CURRENCIES = dict.fromkeys(("euro", "euros", "eur"), "€") | dict.fromkeys(("dollar", "dollars", "usd"), "$")
_CURRENCIES |= dict.fromkeys(("pound", "pounds", "gbp"), "£") | dict.fromkeys(("franc", "francs", "chf"), "CHF")
CENTS = "¢"
CURRENCIES = frozenset(_CURRENCIES.values())
"""Units of money, by their signs; cents belong to several of them."""
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_BETWEEN = word_set("full whole calendar consecutive more further additional extra paid working business")
_TENS = frozenset(("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"))
_MARKER = re.compile(r"^[^\S\n]*(?:[-*•][^\S\n]*)?\(?(?:\d{1,3}|[a-zA-Z])[.):]\s", re.M)
_ISO = re.compile(r"\b(\d{4})-(\d{2})-(\d{2})\b")
_DAY_FIRST = re.compile(r"\b(\d{1,2})([./])(\d{1,2})\2((?:19|20)\d{2})\b")
_CLOCK = re.compile(r"\b\d{1,2}(?:[:.]\d{2})?\s*(?:[ap]\.?m\b\.?)|\b\d{1,2}:\d{2}\b", re.I)
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_LABELS = LABELS | word_set("passage source document option question day week item number")


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with its unit.

    Attributes:
        number: the number as written, in digits.
        unit: kind of unit: "time", "€", "percent", "weekday", "month", "day of month 5"; empty for a count.
        value: value in the smallest unit of that kind; for a date the day.
        noun: stem of the next word; empty where there is none, and where there is a unit.
        written: text of the quantity, white space folded.
        start: position in the text.
    """

    number: float
    unit: str
    value: float
    noun: str
    written: str
    start: int

    def same(self, other: Quantity) -> bool:
        """Return whether both may be one quantity. A number without a noun fits any unit."""
        if self.unit == other.unit:
            return _equal(self.value, other.value)
        if CENTS in (self.unit, other.unit) and CURRENCIES & {self.unit, other.unit}:
            return _equal(self._cents, other._cents)
        bare = not (self.unit or self.noun) or not (other.unit or other.noun)
        return bare and _equal(self.number, other.number)

    @property
    def _cents(self) -> float:
        return self.value if self.unit == CENTS else 100 * self.value

    def rivals(self, other: Quantity) -> bool:
        """Return whether the two measure the same thing and differ."""
        alike = self.unit == other.unit if self.unit or other.unit else bool(self.noun) and self.noun == other.noun
        return alike and not self.same(other)


def quantities(text: str) -> tuple[Quantity, ...]:
    """Return the quantities of a text in their order, without times of day, citations and numbers of list items."""
    plain = digits = in_digits(text)
    for hidden in (CITED, _MARKER, _CLOCK, ALL_WEEK):
        plain = hidden.sub(lambda found: " " * len(found[0]), plain)
    found = tuple(_quantities(plain))
    return found if digits == text else tuple(replace(one, written=in_words(text, one.written)) for one in found)


def _quantities(text: str) -> Iterator[Quantity]:
    for found in _ISO.finditer(text):
        yield _date(int(found[2]), int(found[3]), found[0], found.start())
        yield Quantity(float(found[1]), "", float(found[1]), "", found[1], found.start())
    rest = _ISO.sub(lambda found: " " * len(found[0]), text)
    for found in _DAY_FIRST.finditer(rest):
        yield from _numbered_date(found)
    rest = _DAY_FIRST.sub(lambda found: " " * len(found[0]), rest)
    words = list(tokens(rest, 0, len(rest)))
    at = 0
    while at < len(words):
        read = _number(words, at)
        if read:
            number, last = read
            made = _made(text, words, at, last, number)
            if made:
                yield made
            at = last
        else:
            yield from _named(rest, words[at])
        at += 1


def _numbered_date(found: re.Match[str]) -> Iterator[Quantity]:
    """Yield day and year of "31/03/2025"; the year alone where day and month may be exchanged."""
    day, month = int(found[1]), int(found[3])
    if found[2] == "/" and day <= 12 < month:
        day, month = month, day
    if 1 <= month <= 12 and (found[2] == "." or day > 12):
        yield _date(month, day, found[0], found.start())
    yield Quantity(float(found[4]), "", float(found[4]), "", found[4], found.start(4))


def _named(text: str, word: Token) -> Iterator[Quantity]:
    """Yield a day of the week, or a month: "may" counts only with a capital."""
    written = text[word.start : word.end]
    day = word.lower.removesuffix("s")
    if day in _WEEKDAYS:
        yield Quantity(_WEEKDAYS.index(day), "weekday", _WEEKDAYS.index(day), "", written, word.start)
    elif written[:1].isupper() and (month := _month(word.lower)):
        yield Quantity(month, "month", month, "", written, word.start)


def _number(words: Sequence[Token], at: int) -> tuple[float, int] | None:
    """Return the number that begins at a token, and its last token."""
    said = words[at].lower
    if said in ("a", "an"):
        unit = UNITS.get(_lower(words, at + 1))
        return (1.0, at) if unit and unit[0] in ("time", "months") and _lower(words, at + 1) != "second" else None
    value = _digits(words[at]) if words[at].is_number else _word(said)
    if value is None:
        return None
    if said in _TENS and 0 < (_word(_lower(words, at + 1)) or 0) < 10:
        value, at = value + (_word(_lower(words, at + 1)) or 0), at + 1
    while _lower(words, at + 1) in _SCALES:
        value, at = value * _SCALES[_lower(words, at + 1)], at + 1
    return value, at


def _word(said: str) -> float | None:
    return 1.0 if said == "one" else float(NUMBER_WORDS[said]) if said in NUMBER_WORDS else None


def _digits(token: Token) -> float | None:
    plain = _THOUSANDS.sub("", token.lower)
    try:
        return float(plain) if len(plain) <= 15 else None
    except ValueError:
        return None


def _made(text: str, words: Sequence[Token], first: int, last: int, number: float) -> Quantity | None:
    """Return the quantity of a number; None where it is a name ("zone 1"), or says no more than "a"."""
    before, after = _lower(words, first - 1), _lower(words, last + 1)
    start = words[first].start
    if dated := _dated(words, first, last, number):
        month, end = dated
        return _date(month, int(number), text[words[min(first, end)].start : words[max(last, end)].end], start)
    if before in _SIGNS or (before in _CURRENCIES and len(before) == 3):
        sign = _CURRENCIES.get(before, before)
        return Quantity(number, sign, number, "", text[words[first - 1].start : words[last].end], start)
    place = last + 1 + (after in ("-", "–"))
    place += _lower(words, place) in _BETWEEN
    unit = _unit(words, place)
    if unit:
        name, factor, end = unit
        return Quantity(number, name, number * factor, "", _folded(text[start : words[end].end]), start)
    if before.removesuffix("s") in _LABELS or (number == 1 and not words[first].is_number):
        return None
    beside = after[:1].isalpha() and words[last + 1].start <= words[last].end + 1
    noun = stem(after) if beside and after not in STOPWORDS else ""
    end = last + bool(noun)
    return Quantity(number, "", number, noun, _folded(text[start : words[end].end]), start)


def _unit(words: Sequence[Token], place: int) -> tuple[str, float, int] | None:
    said = _lower(words, place)
    if said in _CURRENCIES or said in _SIGNS:
        if place + 1 < len(words) and words[place + 1].is_number and (said in _SIGNS or len(said) == 3):
            return None
        return _CURRENCIES.get(said, said), 1.0, place
    if said in ("cent", "cents", "pence", "pennies"):
        return CENTS, 1.0, place
    if said == "per" and _lower(words, place + 1) == "cent":
        return "percent", 1.0, place + 1
    if said in UNITS:
        return (*UNITS[said], place)
    return None


def _dated(words: Sequence[Token], first: int, last: int, number: float) -> tuple[int, int] | None:
    """Return the month of the date whose day a number is, and the token of the month."""
    if not words[first].is_number or not 1 <= number <= 31 or number % 1:
        return None
    after = last + 1 + (_lower(words, last + 1) in ("st", "nd", "rd", "th"))
    after += _lower(words, after) == "of"
    for place in (after, first - 1, first - 2 if _lower(words, first - 1) == "the" else first - 1):
        if month := _month(_lower(words, place)):
            return month, place
    return None


def _month(said: str) -> int:
    return _MONTHS.index(said[:3]) + 1 if _MONTH.fullmatch(said) and said in _MONTH_NAMES else 0


_MONTH_NAMES = word_set(
    "january february march april may june july august september october november december jan feb mar apr jun jul aug "
    "sep sept oct nov dec"
)


def _date(month: int, day: int, written: str, start: int) -> Quantity:
    return Quantity(float(day), f"day of month {month}", float(day), "", _folded(written), start)


def _lower(words: Sequence[Token], place: int) -> str:
    return words[place].lower if 0 <= place < len(words) else ""


def _folded(text: str) -> str:
    return " ".join(text.split())


def _equal(one: float, other: float) -> bool:
    return abs(one - other) <= 1e-6 * max(abs(one), abs(other), 1.0)
