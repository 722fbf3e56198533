"""Numbers, durations, times of day and money in words, written in digits at the place where the words stand.

The text stays as long as it was, so places in it stay right: what is shorter is filled with blanks on its left. English
alone; numbers in one word ("seven") are left to those who read numbers, for many are none: "one of them".
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

_TO_NINETEEN = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen
"""
_SMALL = {name: value for value, name in enumerate(_TO_NINETEEN.split())}
_TENS = dict(
    zip("twenty thirty forty fifty sixty seventy eighty ninety".split(), range(20, 100, 10), strict=True)  # noqa: SIM905
)
_SCALES = {"hundred": 100, "thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000}
_ORDINALS = {
    name: value
    for value, name in enumerate(
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth "  # noqa: SIM905
        "fifteenth sixteenth seventeenth eighteenth nineteenth twentieth".split(),
        1,
    )
} | {"thirtieth": 30}
_ONES = "one|two|three|four|five|six|seven|eight|nine"
_TEENS = "ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen"
_TEN = "|".join(_TENS)
_BELOW_100 = rf"(?:(?:{_TEN})(?:[- ](?:{_ONES}))?|{_TEENS}|{_ONES})"
_NUMBER = rf"(?:\d+(?:\.\d+)?|{_BELOW_100})"
_MONTH = "january|february|march|april|may|june|july|august|september|october|november|december"
_ORDINAL = rf"(?:(?:{_TEN})[- ](?:{'|'.join(list(_ORDINALS)[:9])})|{'|'.join(_ORDINALS)})"
_HALVES = {
    "year": "6 months", "hour": "30 minutes", "minute": "30 seconds", "day": "12 hours", "dozen": "6",
    "million": "500,000", "century": "50 years", "decade": "5 years",
}  # fmt: skip
_AND_HALVES = {"year": "18 months", "hour": "90 minutes", "minute": "90 seconds", "day": "36 hours"}
_SPANS = {"fortnight": (14, "days"), "decade": (10, "years"), "century": (100, "years"), "dozen": (12, "")}
_SIGNS = {"usd": "$", "us$": "$", "eur": "€", "gbp": "£"}
_QUARTERS = {"": 15, "a": 15, "one": 15, "three": 45}

_Made = Callable[[re.Match[str]], str]


def number_said(words: str) -> int | None:
    """Return the number that ``words`` say: "one hundred and twenty-five"; None where they say none."""
    total = current = 0
    for word in re.split(r"[\s-]+", words.lower().strip()):
        if word in _SMALL or word in _TENS:
            current += _SMALL.get(word, 0) or _TENS.get(word, 0)
        elif word == "hundred":
            current = max(current, 1) * 100
        elif word in _SCALES:
            total, current = total + max(current, 1) * _SCALES[word], 0
        elif word != "and":
            return None
    return total + current


def _plain(number: str) -> float:
    said = number_said(number)
    return float(number) if said is None else said


def _shown(number: float) -> str:
    return f"{number:g}" if number < 1e6 else f"{number:.0f}"


def _compound(found: re.Match[str]) -> str:
    said = number_said(found[0])
    return "" if said is None else str(said)


def _year(found: re.Match[str]) -> str:
    return f"{number_said(found[1])}{number_said(found[2]):02d}"


def _half(found: re.Match[str]) -> str:
    unit = found[1].lower()
    return _HALVES.get(unit, f"0.5 {unit}")


def _and_half(found: re.Match[str]) -> str:
    return f"{_shown(_plain(found[1]) + 0.5)}"


def _unit_and_half(found: re.Match[str]) -> str:
    unit = found[1].lower()
    return _AND_HALVES.get(unit, f"1.5 {unit}s")


def _quarter_hour(found: re.Match[str]) -> str:
    return f"{_QUARTERS[(found[1] or '').lower().strip()]} minutes"


def _part(found: re.Match[str]) -> str:
    return f"{_shown(round(_fraction(found), 4))} {found[3]}"


def _percent(found: re.Match[str]) -> str:
    return f"{_shown(round(100 * _fraction(found), 1))}%"


def _fraction(found: re.Match[str]) -> float:
    count = 1.0 if found[1].lower() in ("a", "an") else _plain(found[1])
    return count / (4 if found[2].lower().startswith("quarter") else 3)


def _span(found: re.Match[str]) -> str:
    many, unit = _SPANS[re.sub(r"ies$", "y", found[2].lower()).removesuffix("s")]
    count = 1.0 if found[1].lower() in ("a", "an", "one") else _plain(found[1])
    return f"{_shown(count * many)} {unit}".rstrip()


def _share(found: re.Match[str]) -> str:
    part, whole = _plain(found[1]), _plain(found[2])
    return f"{_shown(round(100 * part / whole, 1))}%" if 0 < part < whole else ""


def _clock(found: re.Match[str]) -> str:
    return f"{_shown(_plain(found[1]))} {'am' if found[2].lower() == 'morning' else 'pm'}"


def _full_hour(found: re.Match[str]) -> str:
    return f"{_shown(_plain(found[1]))}:00"


def _past(found: re.Match[str]) -> str:
    hour, minutes = int(_plain(found[3])), 30 if found[1].lower() == "half" else 15
    if found[2].lower() == "to":
        hour, minutes = (hour - 1) or 12, 60 - minutes
    return f"{hour}:{minutes}"


def _day(ordinal: str) -> str:
    *tens, last = re.split(r"[- ]", ordinal.lower())
    return str(sum(_TENS[word] for word in tens) + _ORDINALS[last])


def _sign(found: re.Match[str]) -> str:
    return _SIGNS[found[1].lower()]


_FORMS: tuple[tuple[str, _Made], ...] = (
    (rf"\b(seventeen|eighteen|nineteen|twenty)[- ]((?:{_TEN})(?:[- ](?:{_ONES}))?|{_TEENS})\b(?! (?:percent|per|%))",
     _year),
    (rf"\b({_ORDINAL})(?= (?:of )?(?:{_MONTH})\b)", lambda found: _day(found[1])),
    (rf"\b({_MONTH}) (?:the )?({_ORDINAL})\b", lambda found: f"{found[1]} {_day(found[2])}"),
    (rf"\b(half|(?:a )?quarter) (past|to) ({_NUMBER})\b(?! ?%)", _past),
    (rf"\b({_NUMBER}) o['’]clock\b", _full_hour),
    (rf"\b({_NUMBER}) in the (morning|afternoon|evening)\b", _clock),
    (r"(?<!after)\bnoon\b", lambda _: "12pm"),
    (r"\bmidnight\b", lambda _: "12am"),
    (r"\b(an?|one|two|three)[- ](quarters?|thirds?) of (?:an? |one )?(percent|per cent|litre|liter|mile|kilo|kilogram"
     r"|million|metre|meter)\b",
     _part),
    (r"\bhalf a (percent|per cent)\b", _half),
    (r"\b(an?|one|two|three)[- ](quarters?|thirds?)"
     r"(?= of (?:the|all|its|our|their|travel|users|people|customers|those)\b)", _percent),
    (r"\bhalf (?:an?|the) (year|hour|minute|day|dozen|million|century|decade|kilo|kilogram|kg|litre|liter|mile|metre"
     r"|meter)\b", _half),
    (r"\bhalf[- ](year|hour|day)\b", _half),
    (rf"\b({_NUMBER}) and a half\b", _and_half),
    (r"\ban? (year|hour|minute|day|week|month|mile|million) and a half\b", _unit_and_half),
    (r"\b(three |a |one )?quarters? of an hour\b", _quarter_hour),
    (rf"\b(an?|{_NUMBER})[ -](fortnight|decade|century|centuries|dozen)s?\b", _span),
    (r"\b(?:one )?half of\b(?= (?:the|all|its|our|their|users|people|customers))", lambda _: "50% of"),
    (
        rf"(?<![\d.])\b({_BELOW_100}|\d+) in (?:every )?({_BELOW_100}|\d+)\b(?= (?:[a-z]+s|people)\b)"
        r"(?! (?:seconds|minutes|hours|days|weeks|months|years|business|working"
        r"|stars|points|places|steps|ways|cases|parts))",
        _share),
    (rf"\b{_BELOW_100} (?:hundred|thousand|million|billion)(?:(?: and)? {_BELOW_100}(?: hundred)?(?: thousand)?"
     rf"(?:(?: and)? {_BELOW_100})?)?\b", _compound),
    (rf"\b(?:(?:{_TEN})-(?:{_ONES})|(?:{_TEN}) (?:{_ONES}))(?! (?:hundred|thousand|million|billion))\b", _compound),
    (r"\b(USD|US\$|EUR|GBP) ?(?=\d)", _sign),
)  # fmt: skip
_PATTERNS = tuple((re.compile(pattern, re.I), made) for pattern, made in _FORMS)
_ANY = re.compile(
    rf"\b(?:{_TEN}|{'|'.join(_SCALES)}|{'|'.join(_ORDINALS)}|half|quarters?|thirds?"
    r"|noon|midnight|fortnights?|decades?"
    r"|centur(?:y|ies)|dozens?|usd|us\$|eur|gbp)\b|o['’]clock|\bin the (?:morning|afternoon|evening)\b"
    r"|\bin (?:every )?(?:\d|[tofsen])",
    re.I,
)


@lru_cache(maxsize=8192)
def in_digits(text: str) -> str:
    """Return ``text``, of the same length, with numbers of several words, durations, times and money in digits."""
    if not _ANY.search(text):
        return text
    for pattern, made in _PATTERNS:
        text = pattern.sub(lambda found, made=made: _filled(found[0], made(found)), text)  # type: ignore[misc]
    return text


def _filled(words: str, digits: str) -> str:
    return digits.rjust(len(words)) if 0 < len(digits) <= len(words) else words


def in_words(text: str, digits: str) -> str:
    """Return the words of ``text`` that ``in_digits`` writes as ``digits``; ``digits`` where they stand there."""
    written = in_digits(text)
    found = re.search(r"\s+".join(map(re.escape, digits.split())), written) if written != text else None
    if not found:
        return digits
    start = len(written[: found.start()].rstrip(" "))
    return " ".join(text[start : found.end()].split())
