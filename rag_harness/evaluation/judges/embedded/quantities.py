"""Quantities of a text: amounts, durations, shares, dates and counts, and the sentences that have them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from rag_harness.core.text.figures import LABELS, NUMBER_WORDS, OPENERS, UNITS, Token, tokens, word_set
from rag_harness.core.text.numbers import in_digits, in_words
from rag_harness.core.text.terms import STOPWORDS, stem
from rag_harness.evaluation.judges.embedded.alignment import SplitText, split_text

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
    """Return each time of day, in minutes; two values where am or pm is not stated."""
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
_ITEM_MARKER = re.compile(r"^[^\S\n]*(?:[-*•][^\S\n]*)?\(?(?:\d{1,3}|[a-zA-Z])[.):]\s", re.M)
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
    for hidden in (CITED, _ITEM_MARKER, _CLOCK, ALL_WEEK):
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


# Sentences in the form that the rules need: content words, quantities, negations. Each sentence is read only once.

_AROUND = 12
"""Number of words on either side of a figure that show what it is about."""
_NEGATIONS = re.compile(r"not|no|never|none|nobody|neither|nor|cannot|without|\w+n['’]t", re.I)
_DENIALS = re.compile(
    r"not?|never|none|nobody|nothing|neither|nor|without|cannot|unable|lack(?:s|ing|ed)?|refuse[sd]?|refusal"
    r"|fail(?:s|ed|ing)?|den(?:y|ies|ied|ying)|prohibit(?:s|ed)?|forbid(?:s|den)?|exclud(?:es|ed|ing)|except|only|hardly"
    r"|rarely|unless|ban(?:s|ned)?|avoid(?:s|ed|ing)?|prevent(?:s|ed)?|instead|rather|false|impossible|closed?|free"
    r"|absent|missing|little|few|zero|un\w{4,}|non\w*|in(?:valid|eligible|complete|correct|sufficient|active)|dis\w{4,}"
    r"|\w+less|\w+n['’]t",
    re.I,
)
"""Words that may deny something. Where a source has one, a negation of it does not count as invented."""
_SOFTENS = word_set("only just always all every necessarily yet more less later earlier fewer longer until before even")
"""Words after a "not" that keep the statement: not only."""
_BORDER = re.compile(r"[,;:()|]|\s[–—-]\s")
_TURNS = word_set("but though although while whereas because since")
_CONDITIONS = OPENERS - {"without"}


@dataclass(frozen=True, slots=True)
class Negation:
    """A negation, with the first content stems after it in its clause, and those before it."""

    word: str
    scope: tuple[str, ...]
    subject: tuple[str, ...]


@dataclass(frozen=True)
class Sentence:
    """A sentence; ``above`` is the head of its table, where it is a row."""

    text: str
    above: str = ""

    @cached_property
    def read(self) -> SplitText:
        """The words of the sentence."""
        return split_text(self.text.replace("\n", " "))

    @cached_property
    def stems(self) -> frozenset[str]:
        """The stems of its content words and of its table's head, without numbers."""
        above = sentence_of(self.above).stems if self.above else frozenset()
        return above | frozenset(self.stems_in(0, len(self.read.stems)))

    @cached_property
    def quantities(self) -> tuple[Quantity, ...]:
        """The figures in the sentence."""
        return quantities(self.text)

    @cached_property
    def denials(self) -> frozenset[str]:
        """The words that may deny something."""
        return frozenset(word for word in self.read.words if _DENIALS.fullmatch(word))

    @cached_property
    def negations(self) -> tuple[Negation, ...]:
        """The plain negations, without those in a condition."""
        return tuple(_negations(self))

    def stems_in(self, first: int, last: int) -> Iterator[str]:
        """Yield the stems of the content words from one position to before another."""
        found = self.read
        for place in range(max(0, first), min(last, len(found.stems))):
            if found.content[place] and not found.stems[place][0].isdigit():
                yield found.stems[place]

    def around(self, start: int) -> frozenset[str]:
        """Return the stems of the content words around a character."""
        place = int(self.read.spans[:, 0].searchsorted(start))
        return frozenset(self.stems_in(place - _AROUND, place + _AROUND + 1))


@lru_cache(maxsize=16384)
def sentence_of(text: str, above: str = "") -> Sentence:
    """Return a sentence. Sentences are cached, for sources occur repeatedly."""
    return Sentence(text, above)


class KnownSentences:
    """The sentences of a source and of the question: an answer may repeat both."""

    def __init__(self, source: Sequence[str], question: str, texts: Sequence[str] = ()) -> None:
        self.texts = tuple(texts)
        self.sentences = tuple(_with_heads(source))
        self.question = sentence_of(question)

    @cached_property
    def everything(self) -> tuple[Sentence, ...]:
        """All sentences of source and question."""
        return (*self.sentences, self.question)


def share_among(words: frozenset[str], others: frozenset[str]) -> float:
    """Return the share of ``words`` that is in ``others``; 0 without words."""
    return len(words & others) / len(words) if words else 0.0


def _with_heads(source: Sequence[str]) -> Iterator[Sentence]:
    head = ""
    for text in source:
        is_row = text.startswith("|")
        yield sentence_of(text, head if is_row else "")
        head = (head or text) if is_row else ""


def _negations(sentence: Sentence) -> Iterator[Negation]:
    words = sentence.read.words
    for place, word in enumerate(words):
        following = words[place + 1] if place + 1 < len(words) else ""
        if not _NEGATIONS.fullmatch(word) or following in _SOFTENS or (place and words[place - 1] == "or"):
            continue
        first, end = _clause(sentence, place)
        scope = tuple(sentence.stems_in(place + 1, end))[:3]
        if scope and not _CONDITIONS & set(words[first:place]):
            yield Negation(sentence.read.written[place], scope, tuple(sentence.stems_in(first, place)))


def _clause(sentence: Sentence, place: int) -> tuple[int, int]:
    """Return the first word of a word's clause, and the position after its last."""
    first, end = place, place + 1
    while first and not _turns(sentence, first):
        first -= 1
    while end < len(sentence.read.words) and not _turns(sentence, end):
        end += 1
    return first, end


def _turns(sentence: Sentence, place: int) -> bool:
    """Return whether a clause begins at a word."""
    found = sentence.read
    before = found.text[found.spans[place - 1][1] : found.spans[place][0]]
    return bool(_BORDER.search(before)) or found.words[place] in _TURNS
