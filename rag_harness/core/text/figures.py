"""Tokens and figures of a sentence with dimension, value, bound and role. The search for contradictions uses them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import NamedTuple

from rag_harness.core.text.terms import STOPWORDS, stem


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
        role: the terms of the counted things, or the word before a date or a time.
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


MOST_FIGURES = 12
"""Most figures of a statement, numbers in names included. Later ones are not compared."""

_CURRENCIES = {
    name: sign
    for sign, names in (("€", "€ eur euro euros"), ("$", "usd dollar dollars"), ("£", "£ gbp pound pounds"))
    for name in names.split()
}
_ADJECTIVES = word_set("full whole calendar consecutive more further additional extra paid")
_MODALS = word_set("can may must will should to we you they it i not and or")
_BEFORE_FREE = word_set("is are be for completely always remains")
_NEEDS = word_set("requires require needs need least from")
_REACHED = word_set("since from least of")
_OR_LATER = re.compile(r"or (?:later|newer|higher|above)\b|and (?:up|later|newer|above)\b")


def figures_of(found: Sequence[Token], text: str) -> tuple[tuple[Figure, ...], dict[int, str]]:
    """Return the figures of a sentence, and the names that its other numbers are part of ("zone 1"), by token."""
    figures: list[Figure] = []
    names: dict[int, str] = {}
    at = read = 0
    while at < len(found) and read < MOST_FIGURES:
        stated = _free(found, at)
        if not stated and value(found[at]) is not None:
            stated = _figure(found, at, names)
            read += 1
        if stated:
            figures.append(stated)
        at = max(at, stated.last if stated else at) + 1
    return tuple(_written(stated, found, text) for stated in _joined(figures, found)), names


def _written(stated: Figure, found: Sequence[Token], text: str) -> Figure:
    first, last = found[stated.first], found[stated.last]
    # A cell that is only a number has its unit in the header of its column.
    said = text[first.start : last.end] if first.start < last.end else f"{first.lower} {last.lower}"
    return replace(stated, written=" ".join(said.split()))


def _figure(found: Sequence[Token], at: int, names: dict[int, str]) -> Figure | None:
    """Return the figure that begins with the number at ``at``. A number in a name is noted, and gives None."""
    if stated := dated(found, at):
        return stated
    if name := _label(found, at, names):
        names[at] = name
        return None
    if stated := _ranged(found, at) or _amount(found, at) or year(found, at) or _version(found, at):
        return stated
    if name := _name(found, at):
        names[at] = name
        return None
    return _count(found, at)


def _amount(found: Sequence[Token], at: int) -> Figure | None:
    said = value(found[at]) or 0.0
    if word(found, at - 1) in {"€", "$", "£"}:
        return figure(found, (at - 1, at), word(found, at - 1), said)
    if currency := _CURRENCIES.get(word(found, at + 1)):
        return figure(found, (at, at + 1), currency, said)
    if word(found, at + 1) in {"cent", "cents"}:
        return figure(found, (at, at + 1), "€", said / 100)
    return _measured(found, at, said)


def _measured(found: Sequence[Token], at: int, said: float) -> Figure | None:
    after = at + 1 + (word(found, at + 1) in DASHES)
    if token_words(found, after, after + 2) == ["per", "cent"]:
        return figure(found, (at, after + 1), "percent", said)
    if word(found, after) in {"working", "business"} and word(found, after + 1) in {"day", "days"}:
        return figure(found, (at, after + 1), "working days", said)
    after += word(found, after) in _ADJECTIVES and word(found, after + 1) in UNITS
    unit = UNITS.get(word(found, after))
    return figure(found, (at, after), unit[0], said * unit[1]) if unit else None


def _free(found: Sequence[Token], at: int) -> Figure | None:
    """Return "free of charge" as an amount of 0."""
    here = found[at].lower
    if token_words(found, at, at + 3) == ["free", "of", "charge"]:
        return figure(found, (at, at + 2), "€", 0.0)
    if here == "no" and word(found, at + 1) in {"cost", "charge"} and word(found, at - 1) == "at":
        return figure(found, (at, at + 1), "€", 0.0)
    return figure(found, (at, at), "€", 0.0) if here == "free" and word(found, at - 1) in _BEFORE_FREE else None


def _ranged(found: Sequence[Token], at: int) -> Figure | None:
    """Return "3 to 5 weeks", "10–12 items", "between 2 and 4 bar" as one figure."""
    link = word(found, at + 1)
    links = link in DASHES or link == "to" or (link == "and" and word(found, at - 1) == "between")
    second = value(found[at + 2]) if links and at + 2 < len(found) else None
    if not second or dated(found, at + 2):
        return None
    end = _amount(found, at + 2) or _count(found, at + 2)
    low = (value(found[at]) or 0.0) * end.high / second
    first = at - 1 if word(found, at - 1) in {"€", "$", "£"} else at
    return replace(end, low=low, first=first, bound="") if low < end.high else None


def _version(found: Sequence[Token], at: int) -> Figure | None:
    """Return a version that is required or reached. A version that only names a thing does not count."""
    subject, before = word(found, at - 1), word(found, at - 2)
    if not found[at].is_number or not term(subject) or subject in LABELS:
        return None
    is_label = subject in VERSION_LABELS
    later = bool(_OR_LATER.match(" ".join(token_words(found, at + 1, at + 3))))
    if not later and before not in (_REACHED if is_label else _NEEDS):
        return None
    numbers = [int(part) for part in re.split(r"[.,:]", found[at].lower)[:3]]
    said = float(sum(number * 10_000 ** (2 - place) for place, number in enumerate(numbers)))
    role = frozenset() if is_label else frozenset([term(subject)])
    return Figure("version", said, said, "", role, "", at, at)


def _label(found: Sequence[Token], at: int, names: dict[int, str]) -> str:
    """Return the name made of a label and a number: "zone 1", and the 2 of "zones 1 and 2"."""
    before = at - 1
    while before in names or (before > 0 and word(found, before) in {"and", "or", ",", *DASHES}):
        before -= 1
    label = word(found, before).removesuffix("s")
    is_first = before == at - 1 or before + 1 in names
    return f"{label} {found[at].lower}" if label in LABELS and is_first else ""


def _name(found: Sequence[Token], at: int) -> str:
    """Return the name that a number is part of ("Ferrite 4.2"). A verb or a light word before it makes no name."""
    before = word(found, at - 1)
    if not found[at].is_number or not term(before):
        return ""
    verb = term(before) in light() or before.endswith(("s", "ed", "ing")) or word(found, at - 2) in _MODALS
    return f"{before} {found[at].lower}" if before in VERSION_LABELS or not verb else ""


def _count(found: Sequence[Token], at: int) -> Figure:
    nouns: list[str] = []
    for token in found[at + 1 : at + 5]:
        if token.is_number or not term(token.lower):
            break
        nouns.append(term(token.lower))
    return replace(figure(found, (at, at), "count", value(found[at]) or 0.0), role=frozenset(nouns))


def _joined(figures: Sequence[Figure], found: Sequence[Token]) -> list[Figure]:
    """Join "between 1 % and 8 %" to one figure."""
    joined: list[Figure] = []
    for stated in figures:
        if joined and _linked(joined[-1], stated, found):
            first = joined.pop()
            joined.append(replace(stated, low=first.low, bound="", first=first.first))
        else:
            joined.append(stated)
    return joined


def _linked(first: Figure, second: Figure, found: Sequence[Token]) -> bool:
    between = token_words(found, first.last + 1, second.first)
    links = between in (["-"], ["–"], ["—"], ["to"])
    links = links or (between == ["and"] and word(found, first.first - 1) == "between")
    return (
        links
        and second.dimension not in DATED | {"count"}
        and first.dimension == second.dimension
        and first.low < second.high
    )
