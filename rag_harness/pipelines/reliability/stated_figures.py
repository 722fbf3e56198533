"""The figures that a sentence states, typed: what is counted or measured, how much, and whether it is a bound."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rag_harness.pipelines.reliability.vocabulary import (
    LABELS,
    LIGHT,
    NUMBER_WORDS,
    VERSION_LABELS,
    Token,
    term,
)

_CURRENCIES = {"€": "€", "$": "$", "£": "£", "eur": "€", "euro": "€", "euros": "€", "usd": "$", "dollar": "$",
               "dollars": "$", "gbp": "£", "pound": "£", "pounds": "£"}  # fmt: skip
_MEASURES = {
    "time": (
        (1, "second seconds sec secs"), (60, "minute minutes min mins"), (3600, "hour hours h hrs"),
        (86400, "day days"), (604800, "week weeks"),
    ),
    "nights": ((1, "night nights"),),
    "months": ((1, "month months"), (12, "year years")),
    "mass": ((1, "g gram grams"), (1000, "kg kilo kilos kilogram kilograms"), (1_000_000, "t tonne tonnes")),
    "length": ((1, "mm"), (10, "cm"), (1000, "m metre metres meter meters"), (1_000_000, "km")),
    "volume": ((1, "ml"), (1000, "l litre litres liter liters")),
    "power": ((1, "w watt watts"), (1000, "kw")), "energy": ((1, "wh"), (1000, "kwh")),
    "charge": ((1, "mah"), (1000, "ah")), "voltage": ((1, "v volt volts"),), "pressure": ((1, "bar"),),
    "bytes": ((1, "kb"), (1000, "mb"), (1_000_000, "gb"), (1_000_000_000, "tb")),
    "temperature": ((1, "degree degrees °c °"),), "light": ((1, "lm lumen lumens"),), "noise": ((1, "db"),),
    "percent": ((1, "% percent"),),
}  # fmt: skip
_UNITS = {
    word: (dimension, float(factor))
    for dimension, measures in _MEASURES.items()
    for factor, words in measures
    for word in words.split()
}
_ADJECTIVES = frozenset("full whole calendar consecutive more further additional extra paid".split())
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_LONG_MONTHS = frozenset(
    "january february march april may june july august september october november december sept".split()
) | frozenset(_MONTHS)
_UPPER = frozenset("within most maximum max until till by below under less fewer latest to before".split())
_LOWER = frozenset("least minimum min from over above exceeds more after than since beyond starting".split())
_ABOUT = frozenset("about around roughly approximately nearly almost circa".split())
_DASHES = frozenset("-–—")
_MODALS = frozenset("can may must will should to we you they it i not and or".split())
_FREE = frozenset(("is", "are", "be", "for", "completely", "always", "remains"))


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure in its sentence.

    Attributes:
        dimension: what it measures: "time", "mass", "€", "percent", "date", "clock", "version", "count", …
        low: smallest value meant, in the smallest unit of the dimension; of a date month · 100 + day.
        high: largest value meant; as ``low`` unless it is a range.
        bound: "upper", "lower", "about" or "".
        role: what is counted (terms), or the word before a date or a time.
        per: what it is counted for ("per parcel"), empty without.
        place: the token that it stands at.
        first, last: the tokens that it is made of, for what is no word of the sentence any more.
        written: as it stands, white space folded.
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

    @property
    def exact(self) -> bool:
        return self.low == self.high


def figures_of(found: Sequence[Token], text: str) -> tuple[tuple[Figure, ...], dict[int, str]]:
    """Return the figures of a sentence, and the terms that its other numbers are part of ("zone 1") by token."""
    figures: list[Figure] = []
    names: dict[int, str] = {}
    at = 0
    while at < len(found):
        figure = _free(found, at) or (_figure(found, at, names) if _value(found[at]) is not None else None)
        if figure:
            figures.append(figure)
        at = max(at, figure.last if figure else at) + 1
    return tuple(_written(figure, found, text) for figure in _joined(figures, found)), names


def _written(figure: Figure, found: Sequence[Token], text: str) -> Figure:
    start, end = found[figure.first].start, found[figure.last].end
    # The unit of a bare cell stands in the head of its column.
    said = text[start:end] if start < end else f"{found[figure.first].lower} {found[figure.last].lower}"
    return replace(figure, written=" ".join(said.split()))


def _word(found: Sequence[Token], at: int) -> str:
    return found[at].lower if 0 <= at < len(found) else ""


def _value(token: Token) -> float | None:
    if token.lower in NUMBER_WORDS:
        return float(NUMBER_WORDS[token.lower])
    if not token.is_number or ":" in token.lower or len(token.lower) > 15:
        return 0.0 if token.is_number and ":" in token.lower else None
    return _parsed(token.lower)


def _parsed(digits: str) -> float:
    if re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", digits):
        return float(digits.replace(",", ""))
    whole, *rest = re.split(r"[.,]", digits)
    return float(f"{whole}.{rest[0]}" if rest else whole)


def _figure(found: Sequence[Token], at: int, names: dict[int, str]) -> Figure | None:
    """Return the figure that the number at ``at`` begins; None for a number that is a name."""
    return (
        _clock(found, at)
        or _date(found, at)
        or _labelled(found, at, names)
        or _ranged(found, at)
        or _money(found, at)
        or _measured(found, at)
        or _year(found, at)
        or _version(found, at)
        or _named(found, at, names)
        or _count(found, at)
    )


def _made(found: Sequence[Token], at: int, span: tuple[int, int], dimension: str, value: float) -> Figure:
    bound = _bound(found, *span)
    return Figure(dimension, value, value, bound, frozenset(), _per(found, span[1]), *span)


def _bound(found: Sequence[Token], first: int, last: int) -> str:
    before = [_word(found, place) for place in range(max(0, first - 3), first)]
    after = " ".join(_word(found, place) for place in range(last + 1, last + 4))
    if re.match(r"(?:\w+ )?or (?:more|later|newer|higher|above|over)|and (?:up|above|over)|\+", after):
        return "lower"
    if re.match(r"(?:\w+ )?or (?:less|fewer|under|below)|at (?:the )?(?:most|latest)|maximum", after):
        return "upper"
    for place, word in reversed(list(enumerate(before))):
        if word in {"no", "not"} and {"more", "later", "longer", "over"} & set(before[place:]):
            return "upper"
    for word in reversed(before):
        if word in _ABOUT:
            return "about"
        if word in {"less", "fewer", "younger"} or (word in _UPPER and word not in {"to"}) or word == "up":
            return "lower" if {"no", "not"} & set(before) and word in {"less", "fewer"} else "upper"
        if word in _LOWER and word != "than":
            return "upper" if {"no", "not"} & set(before) else "lower"
    return ""


def _per(found: Sequence[Token], last: int) -> str:
    after = last + 1 + (_word(found, last + 1) == "for" and _word(found, last + 2) in {"each", "every"})
    each = _word(found, after) in {"per", "each", "every", "a", "an"}
    return term(_word(found, after + 1)) or _word(found, after + 1) if each else ""


def _clock(found: Sequence[Token], at: int) -> Figure | None:
    token, half = found[at].lower, _word(found, at + 1)
    is_half = half in {"am", "pm"} or (half in {"a", "p"} and _word(found, at + 2) == "m")
    if not re.fullmatch(r"\d{1,2}:\d{2}", token) and not (is_half and re.fullmatch(r"\d{1,2}", token)):
        return None
    hour, minute = (int(part) for part in (token + ":0").split(":")[:2])
    if is_half:
        hour = hour % 12 + (12 if half[0] == "p" else 0)
    last = at + (len(half) == 2) + 2 * (len(half) == 1) if is_half else at
    return _dated(found, (at, last), "clock", hour * 60 + minute)


def _dated(found: Sequence[Token], span: tuple[int, int], dimension: str, value: float, year: int = 0) -> Figure:
    before = [_word(found, place) for place in range(max(0, span[0] - 2), span[0])]
    role = next((word for word in reversed(before) if word in _UPPER | _LOWER | {"on", "at", "and", *_DASHES}), "")
    role = {"starting": "from", "since": "from", "till": "until", "to": "until", "-": "until", "–": "until",
            "—": "until", "and": "until", "by": "until", "before": "until", "after": "from", "at": "", "on": "",
            "latest": "until"}.get(role, role)  # fmt: skip
    return Figure(dimension, value, value, "", frozenset([role]) if role else frozenset(), "", *span, year=year)


def _month(word: str, following: str) -> int:
    if word not in _LONG_MONTHS or (word == "may" and following and following[0].isalpha() and following not in
                                    {"until", "to", "and", "or", "each", "every", "at", "is"}):  # fmt: skip
        return 0
    return _MONTHS.index(word[:3]) + 1


def _date(found: Sequence[Token], at: int) -> Figure | None:
    day = _value(found[at]) or 0
    if not found[at].is_number or not 1 <= day <= 31 or day % 1:
        return None
    after = at + 1 + (_word(found, at + 1) in {"st", "nd", "rd", "th"})
    after += _word(found, after) == "of" and _word(found, after + 1) in _LONG_MONTHS
    if month := _month(_word(found, after), _word(found, after + 1)):
        year = _word(found, after + 1)
        has_year = bool(re.fullmatch(r"(?:19|20)\d\d", year))
        span = (at, after + has_year)
        return _dated(found, span, "date", month * 100 + day, int(year) if has_year else 0)
    if month := _month(_word(found, at - 1), found[at].lower):
        return _dated(found, (at - 1, at), "date", month * 100 + day) if _word(found, at - 1) != "may" else None
    ordinal = after == at + 2 and "month" in [_word(found, place) for place in range(after, after + 4)]
    return _dated(found, (at, at + 1), "day of the month", day) if ordinal else None


def _year(found: Sequence[Token], at: int) -> Figure | None:
    return _dated(found, (at, at), "year", int(found[at].lower)) if re.fullmatch(r"(?:19|20)\d\d", found[at].lower) else None


def _money(found: Sequence[Token], at: int) -> Figure | None:
    value = _value(found[at]) or 0.0
    if _word(found, at - 1) in {"€", "$", "£"}:
        return _made(found, at, (at - 1, at), _word(found, at - 1), value)
    if currency := _CURRENCIES.get(_word(found, at + 1)):
        return _made(found, at, (at, at + 1), currency, value)
    return _made(found, at, (at, at + 1), "€", value / 100) if _word(found, at + 1) in {"cent", "cents"} else None


def _free(found: Sequence[Token], at: int) -> Figure | None:
    """Return "free of charge" as an amount of 0."""
    here, after = found[at].lower, (_word(found, at + 1), _word(found, at + 2))
    if here == "free" and after == ("of", "charge"):
        return _made(found, at, (at, at + 2), "€", 0.0)
    if here == "no" and after[0] in {"cost", "charge"} and _word(found, at - 1) == "at":
        return _made(found, at, (at, at + 1), "€", 0.0)
    return _made(found, at, (at, at), "€", 0.0) if here == "free" and _word(found, at - 1) in _FREE else None


def _measured(found: Sequence[Token], at: int) -> Figure | None:
    after = at + 1 + (_word(found, at + 1) in _DASHES)
    working = _word(found, after) in {"working", "business"} and _word(found, after + 1) in {"day", "days"}
    if working:
        return _made(found, at, (at, after + 1), "working days", _value(found[at]) or 0.0)
    after += _word(found, after) in _ADJECTIVES and _word(found, after + 1) in _UNITS
    if _word(found, after) == "per" and _word(found, after + 1) == "cent":
        return _made(found, at, (at, after + 1), "percent", _value(found[at]) or 0.0)
    unit = _UNITS.get(_word(found, after))
    if not unit:
        return None
    return _made(found, at, (at, after), unit[0], (_value(found[at]) or 0.0) * unit[1])


def _version(found: Sequence[Token], at: int) -> Figure | None:
    """Return the version of something that is needed or reached; one that only names a thing is no figure."""
    subject = _word(found, at - 1)
    digits = found[at].lower
    asked = subject in VERSION_LABELS or _word(found, at - 2) in {"requires", "require", "needs", "need", "least", "from"}
    later = re.match(r"or (?:later|newer|higher|above)|and (?:up|later|newer|above)|\+", " ".join(
        _word(found, place) for place in range(at + 1, at + 3)))  # fmt: skip
    if not found[at].is_number or not (subject in VERSION_LABELS or (term(subject) and subject not in LABELS and (later or asked))):
        return None
    since = subject in VERSION_LABELS and _word(found, at - 2) in {"since", "from", "least", "of"}
    if not (later or since or (asked and subject not in VERSION_LABELS)):
        return None
    numbers = [int(part) for part in re.split(r"[.,]", digits)[:3] if part.isdigit()]
    value = float(sum(number * 10_000 ** (2 - place) for place, number in enumerate(numbers)))
    role = frozenset() if subject in VERSION_LABELS else frozenset([term(subject)])
    return Figure("version", value, value, "", role, "", at, at)


def _labelled(found: Sequence[Token], at: int, names: dict[int, str]) -> Figure | None:
    """Note the number as part of a name if a label stands before it: "zone 1", and the 2 of "zones 1 and 2"."""
    before = at - 1
    while before > 0 and (before in names or _word(found, before) in {"and", "or", ",", *_DASHES}):
        before -= 1
    word = _word(found, before).removesuffix("s")
    if word not in LABELS or (before < at - 1 and before + 1 not in names):
        return None
    return _name(found, at, f"{word} {found[at].lower}", names)


def _named(found: Sequence[Token], at: int, names: dict[int, str]) -> Figure | None:
    """Note the number as part of a name ("Ferrite 4.2") where neither a verb nor a pronoun stands before it."""
    word = _word(found, at - 1)
    light = not term(word) or term(word) in LIGHT or word.endswith(("s", "ed", "ing"))
    if not found[at].is_number or (word not in VERSION_LABELS and (light or _word(found, at - 2) in _MODALS)):
        return None
    return _name(found, at, f"{word} {found[at].lower}", names)


def _name(found: Sequence[Token], at: int, name: str, names: dict[int, str]) -> Figure:
    names[at] = name
    return Figure("name", 0, 0, "", frozenset(), "", at, at)


def _count(found: Sequence[Token], at: int) -> Figure:
    nouns: list[str] = []
    for place in range(at + 1, min(at + 5, len(found))):
        word = term(found[place].lower)
        if not word or found[place].is_number:
            break
        nouns.append(word)
    figure = _made(found, at, (at, at), "count", _value(found[at]) or 0.0)
    return replace(figure, role=frozenset(nouns[:4]))


def _ranged(found: Sequence[Token], at: int) -> Figure | None:
    """Return "3 to 5 weeks", "10–12 items", "between 2 and 4 bar" as one figure."""
    link = _word(found, at + 1)
    links = link in _DASHES or link == "to" or (link == "and" and _word(found, at - 1) == "between")
    second = _value(found[at + 2]) if links and at + 2 < len(found) else None
    if not second or ":" in found[at].lower + found[at + 2].lower or _date(found, at + 2):
        return None
    high = _money(found, at + 2) or _measured(found, at + 2) or _count(found, at + 2)
    low = (_value(found[at]) or 0.0) * high.high / second
    if low >= high.high:
        return None
    first = at - 1 if _word(found, at - 1) in _CURRENCIES else at
    return replace(high, low=low, first=first, bound="")


def _joined(figures: Sequence[Figure], found: Sequence[Token]) -> list[Figure]:
    """Join "1 % to 8 %"; a number that is a name goes."""
    joined: list[Figure] = []
    for figure in figures:
        if joined and _linked(joined[-1], figure, found):
            first = joined.pop()
            figure = replace(figure, low=first.low, bound="", first=first.first)
        joined.append(figure)
    return [figure for figure in joined if figure.dimension != "name"]


def _linked(first: Figure, second: Figure, found: Sequence[Token]) -> bool:
    between = [found[place].lower for place in range(first.last + 1, second.first)]
    links = between in (["-"], ["–"], ["—"], ["to"]) or (
        between == ["and"] and _word(found, first.first - 1) == "between"
    )
    measured = second.dimension not in {"date", "clock", "year", "count", "name"}
    return links and measured and first.dimension == second.dimension and first.low < second.high
