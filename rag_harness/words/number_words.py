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
_MINUTES = r"(?:twenty[- ]five|five|ten|twenty|\d{1,2})"
_MONTH = "january|february|march|april|may|june|july|august|september|october|november|december"
_ORDINAL = rf"(?:(?:{_TEN})[- ](?:{'|'.join(list(_ORDINALS)[:9])})|{'|'.join(_ORDINALS)})"
_HALVES = {
    "year": "6 months", "hour": "30 mins", "minute": "30 seconds", "day": "12 hours", "dozen": "6",
    "million": "500,000", "century": "50 years", "decade": "5 years",
}  # fmt: skip
_AND_HALVES = {"year": "18 months", "hour": "90 minutes", "minute": "90 seconds", "day": "36 hours"}
_SPANS = {"fortnight": (14, "days"), "decade": (10, "years"), "century": (100, "years"), "dozen": (12, "")}
_SIGNS = {"usd": "$", "us$": "$", "eur": "€", "gbp": "£"}
_QUARTERS = {"": 15, "a": 15, "one": 15, "three": 45}
_PARTS = {"half": 2, "quarter": 4} | {name: _ORDINALS[name] for name in list(_ORDINALS)[2:10]}
_PART = "quarters?|thirds?|fourths?|fifths?|sixths?|sevenths?|eighths?|ninths?|tenths?"
_CURRENCY = "euros?|dollars?|pounds?|francs?"
_PERIOD = r"(?: in the (morning|afternoon|evening)| at (night))"
_LAST_DAYS = dict(zip(_MONTH.split("|"), (31, 0, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31), strict=True))
"""The last day of each month; February's depends on the year."""

_Made = Callable[[re.Match[str]], str]


def number_said(words: str) -> int | None:
    """Return the number that ``words`` say: "one hundred and twenty-five"; None where they say none."""
    total = current = 0
    for word in re.split(r"[\s-]+", re.sub(r"^an?\b", "one", words.lower().strip())):
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
    return _count(found[1]) / _PARTS[found[2].lower().removesuffix("s")]


def _count(number: str) -> float:
    return 1.0 if number.lower() in ("a", "an") else _plain(number)


def _every(found: re.Match[str]) -> str:
    return f"{_shown(round(100 / _ORDINALS[found[1].lower()], 1))}%"


def _hours(found: re.Match[str]) -> str:
    """Return hours and quarters of an hour, or hours and minutes, as minutes."""
    quarters = found[2] and _QUARTERS[found[2].lower()]
    return f"{_shown(60 * _count(found[1]) + (quarters or _plain(found[3])))} minutes"


def _money(found: re.Match[str]) -> str:
    return f"{_shown(_plain(found[1]))}.{_plain(found[3]):02.0f} {found[2]}"


def _span_of_thousands(found: re.Match[str]) -> str:
    scale = _SCALES[found[4].lower()]
    first, last = _plain(found[1]) * scale, _plain(found[3]) * scale
    return f"{first:.0f}{found[2]}{last:.0f}" if first < last else ""


def _last_day(found: re.Match[str]) -> str:
    last = _LAST_DAYS[found[1].lower()]
    return f"{found[1]} {last}" if last else ""


def _span(found: re.Match[str]) -> str:
    many, unit = _SPANS[re.sub(r"ies$", "y", found[2].lower()).removesuffix("s")]
    return f"{_shown(_count(found[1]) * many)} {unit}".rstrip()


def _share(found: re.Match[str]) -> str:
    part, whole = _plain(found[1]), _plain(found[2])
    return f"{_shown(round(100 * part / whole, 1))}%" if 0 < part < whole else ""


def _clock(found: re.Match[str]) -> str:
    hour, minutes, period = found[1], found[2], found[3] or found[4] or "night"
    return f"{_shown(_plain(hour))}{f':{minutes}' if minutes else ''} {_half_day(period)}"


def _half_day(period: str) -> str:
    return "am" if period.lower() == "morning" else "pm"


def _full_hour(found: re.Match[str]) -> str:
    return f"{_shown(_plain(found[1]))}:00"


def _past(found: re.Match[str]) -> str:
    """Return "half past two in the afternoon" or "ten to six" as a time of day."""
    said, hour = found[1].lower(), int(_plain(found[3]))
    minutes = 30 if said == "half" else 15 if said.endswith("quarter") else int(_plain(said))
    if not (0 < hour <= 24 and 0 < minutes < 60):
        return ""
    if found[2].lower() in ("to", "before"):
        hour, minutes = (hour - 1) or 12, 60 - minutes
    period = found[4] or found[5]
    return f"{hour}:{minutes:02d}{_half_day(period) if period and hour <= 12 else ''}"


def _day(ordinal: str) -> str:
    *tens, last = re.split(r"[- ]", ordinal.lower())
    return str(sum(_TENS[word] for word in tens) + _ORDINALS[last])


def _sign(found: re.Match[str]) -> str:
    return _SIGNS[found[1].lower()]


def _decimal(found: re.Match[str]) -> str:
    return f"{_shown(_plain(found[1]))}.{''.join(_shown(_plain(digit)) for digit in found[2].split())}"


_FORMS: tuple[tuple[str, _Made], ...] = (
    (rf"\b({_NUMBER}|zero) point ((?:zero|{_ONES})(?: (?:zero|{_ONES}))*)\b", _decimal),
    (rf"\b(seventeen|eighteen|nineteen|twenty)[- ]((?:{_TEN})(?:[- ](?:{_ONES}))?|{_TEENS})\b(?! (?:percent|per|%))",
     _year),
    (rf"\b({_ORDINAL})(?= (?:of )?(?:{_MONTH})\b)", lambda found: _day(found[1])),
    (rf"\b({_MONTH}) (?:the )?({_ORDINAL})\b", lambda found: f"{found[1]} {_day(found[2])}"),
    (rf"\b(half|(?:a )?quarter) (past|to) ({_NUMBER})\b(?! ?%){_PERIOD}?", _past),
    (rf"\b({_MINUTES})(?: minutes)? (past) ({_NUMBER})\b{_PERIOD}?", _past),
    (rf"(?<=\bat )({_MINUTES})(?: minutes)? (to|before) ({_NUMBER})\b{_PERIOD}?", _past),
    (rf"\b({_MINUTES})(?: minutes)? (to|before) ({_NUMBER})\b{_PERIOD}", _past),
    (rf"\b({_NUMBER}) o['’]clock(){_PERIOD}", _clock),
    (rf"\b({_NUMBER}) o['’]clock\b", _full_hour),
    (rf"\b({_NUMBER})(?:[:.](\d\d))?{_PERIOD}\b", _clock),
    (rf"\b({_BELOW_100})(?= ?[ap]\.?m\b)", _compound),
    (rf"\b(?:the )?last day of ({_MONTH})\b", _last_day),
    (rf"\b(an|{_NUMBER}) hours? and (a|one|three) quarters?\b()", _hours),
    (rf"\b(an|{_NUMBER}) (?:hours?|hrs?|h)(?:,? and)? ()({_NUMBER}) (?:minutes?|mins?)\b", _hours),
    (rf"\b({_NUMBER}) (hours|years|days|weeks|months|miles) and a half\b",
     lambda found: f"{_shown(_plain(found[1]) + 0.5)} {found[2]}"),
    (r"(?<!after)\bnoon\b", lambda _: "12pm"),
    (r"\bmidnight\b", lambda _: "12am"),
    (rf"\b(an?|{_ONES})[- ]({_PART}) of (?:an? |one )?(percent|per cent|litre|liter|mile|kilo|kilogram"
     r"|million|metre|meter|ounce|inch|kilometre|kilometer|cup|pint|tonne)\b",
     _part),
    (r"\bhalf a (percent|per cent)\b", _half),
    (rf"\b(an?|{_ONES})[- ]({_PART})(?= of (?!an? |one |course\b|(?:{_MONTH})\b)[a-z])", _percent),
    (r"\bevery (third|fourth|fifth|sixth|seventh|eighth|ninth|tenth)\b(?! (?:year|month|week|day|hour|minute|night|time"
     r"|monday|tuesday|wednesday|thursday|friday|saturday|sunday)s?\b)", _every),
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
    (rf"\b({_NUMBER})( to |-|–| or )({_NUMBER}) (hundred|thousand|million|billion)\b", _span_of_thousands),
    (rf"(?<=\bbetween )({_NUMBER})( and )({_NUMBER}) (hundred|thousand|million|billion)\b", _span_of_thousands),
    (rf"\b(?:an?|{_BELOW_100}) (?:hundred|thousand|million|billion)(?:(?: and)? {_BELOW_100}(?: hundred)?(?: thousand)?"
     rf"(?:(?: and)? {_BELOW_100})?)?\b", _compound),
    (rf"\b(?:(?:{_TEN})-(?:{_ONES})|(?:{_TEN}) (?:{_ONES}))(?! (?:hundred|thousand|million|billion))\b", _compound),
    (rf"\b({_NUMBER}) ({_CURRENCY})(?: and)? ({_BELOW_100}|\d\d(?= (?:cents|pence)))(?: cents?| pence)?"
     r"(?=\s*(?:[.,;:!?)]|$|per\b|an?\b|each\b|every\b|for\b|extra\b|more\b|in\b|at\b|on\b))", _money),
    (rf"\b({_NUMBER}) (?:swiss|us|u\.s\.|american|canadian|australian|british) ({_CURRENCY})\b",
     lambda found: f"{_shown(_plain(found[1]))} {found[2]}"),
    (r"\b(USD|US\$|EUR|GBP) ?(?=\d)", _sign),
)  # fmt: skip
_PATTERNS = tuple((re.compile(pattern, re.I), made) for pattern, made in _FORMS)
_ANY = re.compile(
    rf"\b(?:{_TEN}|{'|'.join(_SCALES)}|{'|'.join(_ORDINALS)}|half|{_PART}|past|point|quarters?|noon|midnight|fortnights?|decades?"
    rf"|centur(?:y|ies)|dozens?|usd|us\$|eur|gbp|hours?|hrs?|{_CURRENCY}|last day)\b|o['’]clock"
    r"|\b(?:in the (?:morning|afternoon|evening)|at night)\b|\b(?:to|before) (?:\d|[tofsen])|[a-z] ?[ap]\.?m\b"
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
