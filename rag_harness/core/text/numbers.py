"""Numbers, dates, times and amounts of a text as values, in digits or in words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from rag_harness.core.text.comparison import comparable
from rag_harness.core.text.figures import NUMBER_WORDS, UNITS
from rag_harness.core.text.languages import ENGLISH
from rag_harness.core.text.terms import CITATION

# Numbers, durations, times of day and money in words, written in digits at the place where the words stand.
#
# The text stays as long as it was, so places in it stay right: what is shorter is filled with blanks on its left.
# English alone; numbers in one word ("seven") are left to those who read numbers, for many are none: "one of them".

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


def _folded(words: str) -> str:
    """Return words in lower case, in the letters that patterns are written in: they match ſ, ı and İ, too."""
    return words.casefold().replace("ı", "i").replace("i̇", "i")


def number_said(words: str) -> int | None:
    """Return the number that ``words`` say: "one hundred and twenty-five"; None where they say none."""
    total = current = 0
    for word in re.split(r"[\s-]+", re.sub(r"^an?\b", "one", _folded(words).strip())):
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
    unit = _folded(found[1])
    return _HALVES.get(unit, f"0.5 {unit}")


def _and_half(found: re.Match[str]) -> str:
    return f"{_shown(_plain(found[1]) + 0.5)}"


def _unit_and_half(found: re.Match[str]) -> str:
    unit = _folded(found[1])
    return _AND_HALVES.get(unit, f"1.5 {unit}s")


def _quarter_hour(found: re.Match[str]) -> str:
    return f"{_QUARTERS[_folded(found[1] or '').strip()]} minutes"


def _part(found: re.Match[str]) -> str:
    return f"{_shown(round(_fraction(found), 4))} {found[3]}"


def _percent(found: re.Match[str]) -> str:
    return f"{_shown(round(100 * _fraction(found), 1))}%"


def _fraction(found: re.Match[str]) -> float:
    return _count(found[1]) / _PARTS[_folded(found[2]).removesuffix("s")]


def _count(number: str) -> float:
    return 1.0 if _folded(number) in ("a", "an") else _plain(number)


def _every(found: re.Match[str]) -> str:
    return f"{_shown(round(100 / _ORDINALS[_folded(found[1])], 1))}%"


def _hours(found: re.Match[str]) -> str:
    """Return hours and quarters of an hour, or hours and minutes, as minutes."""
    quarters = found[2] and _QUARTERS[_folded(found[2])]
    return f"{_shown(60 * _count(found[1]) + (quarters or _plain(found[3])))} minutes"


def _money(found: re.Match[str]) -> str:
    return f"{_shown(_plain(found[1]))}.{_plain(found[3]):02.0f} {found[2]}"


def _span_of_thousands(found: re.Match[str]) -> str:
    scale = _SCALES[_folded(found[4])]
    first, last = _plain(found[1]) * scale, _plain(found[3]) * scale
    return f"{first:.0f}{found[2]}{last:.0f}" if first < last else ""


def _last_day(found: re.Match[str]) -> str:
    last = _LAST_DAYS[_folded(found[1])]
    return f"{found[1]} {last}" if last else ""


def _span(found: re.Match[str]) -> str:
    many, unit = _SPANS[re.sub(r"ies$", "y", _folded(found[2])).removesuffix("s")]
    return f"{_shown(_count(found[1]) * many)} {unit}".rstrip()


def _share(found: re.Match[str]) -> str:
    part, whole = _plain(found[1]), _plain(found[2])
    return f"{_shown(round(100 * part / whole, 1))}%" if 0 < part < whole else ""


def _clock(found: re.Match[str]) -> str:
    hour, minutes, period = found[1], found[2], found[3] or found[4] or "night"
    return f"{_shown(_plain(hour))}{f':{minutes}' if minutes else ''} {_half_day(period)}"


def _half_day(period: str) -> str:
    return "am" if _folded(period) == "morning" else "pm"


def _full_hour(found: re.Match[str]) -> str:
    return f"{_shown(_plain(found[1]))}:00"


def _past(found: re.Match[str]) -> str:
    """Return "half past two in the afternoon" or "ten to six" as a time of day."""
    said, hour = _folded(found[1]), int(_plain(found[3]))
    minutes = 30 if said == "half" else 15 if said.endswith("quarter") else int(_plain(said))
    if not (0 < hour <= 24 and 0 < minutes < 60):
        return ""
    if _folded(found[2]) in ("to", "before"):
        hour, minutes = (hour - 1) or 12, 60 - minutes
    period = found[4] or found[5]
    return f"{hour}:{minutes:02d}{_half_day(period) if period and hour <= 12 else ''}"


def _day(ordinal: str) -> str:
    *tens, last = re.split(r"[- ]", _folded(ordinal))
    return str(sum(_TENS[word] for word in tens) + _ORDINALS[last])


def _sign(found: re.Match[str]) -> str:
    return _SIGNS[_folded(found[1])]


def _decimal(found: re.Match[str]) -> str:
    return f"{_shown(_plain(found[1]))}.{''.join(_shown(_plain(digit)) for digit in found[2].split())}"


_PART_WORDS = "|".join(_PARTS)
_SCALE = "|".join(_SCALES)
# Each form has words, one of which stands in whatever it matches: to look for a word is faster than for a form.
_FORMS: tuple[tuple[str, str, _Made], ...] = (
    ("point",
     rf"\b({_NUMBER}|zero) point ((?:zero|{_ONES})(?: (?:zero|{_ONES}))*)\b", _decimal),
    ("seventeen|eighteen|nineteen|twenty",
     rf"\b(seventeen|eighteen|nineteen|twenty)[- ]((?:{_TEN})(?:[- ](?:{_ONES}))?|{_TEENS})\b(?! (?:percent|per|%))",
     _year),
    (_MONTH,
     rf"\b({_ORDINAL})(?= (?:of )?(?:{_MONTH})\b)", lambda found: _day(found[1])),
    (_MONTH,
     rf"\b({_MONTH}) (?:the )?({_ORDINAL})\b", lambda found: f"{found[1]} {_day(found[2])}"),
    ("half|quarter",
     rf"\b(half|(?:a )?quarter) (past|to) ({_NUMBER})\b(?! ?%){_PERIOD}?", _past),
    ("past",
     rf"\b({_MINUTES})(?: minutes)? (past) ({_NUMBER})\b{_PERIOD}?", _past),
    (" to | before ",
     rf"(?<=\bat )({_MINUTES})(?: minutes)? (to|before) ({_NUMBER})\b{_PERIOD}?", _past),
    ("morning|afternoon|evening|night",
     rf"\b({_MINUTES})(?: minutes)? (to|before) ({_NUMBER})\b{_PERIOD}", _past),
    ("clock",
     rf"\b({_NUMBER}) o['’]clock(){_PERIOD}", _clock),
    ("clock",
     rf"\b({_NUMBER}) o['’]clock\b", _full_hour),
    ("morning|afternoon|evening|night",
     rf"\b({_NUMBER})(?:[:.](\d\d))?{_PERIOD}\b", _clock),
    ("am|pm|a.m|p.m",
     rf"\b({_BELOW_100})(?= ?[ap]\.?m\b)", _compound),
    ("last day of",
     rf"\b(?:the )?last day of ({_MONTH})\b", _last_day),
    ("quarter",
     rf"\b(an|{_NUMBER}) hours? and (a|one|three) quarters?\b()", _hours),
    ("min",
     rf"\b(an|{_NUMBER}) (?:hours?|hrs?|h)(?:,? and)? ()({_NUMBER}) (?:minutes?|mins?)\b", _hours),
    ("and a half",
     rf"\b({_NUMBER}) (hours|years|days|weeks|months|miles) and a half\b",
     lambda found: f"{_shown(_plain(found[1]) + 0.5)} {found[2]}"),
    ("noon",
     r"(?<!after)\bnoon\b", lambda _: "12pm"),
    ("midnight",
     r"\bmidnight\b", lambda _: "12am"),
    (_PART_WORDS,
     rf"\b(an?|{_ONES})[- ]({_PART}) of (?:an? |one )?(percent|per cent|litre|liter|mile|kilo|kilogram"
     r"|million|metre|meter|ounce|inch|kilometre|kilometer|cup|pint|tonne)\b",
     _part),
    ("half a per",
     r"\bhalf a (percent|per cent)\b", _half),
    (_PART_WORDS,
     rf"\b(an?|{_ONES})[- ]({_PART})(?= of (?!an? |one |course\b|(?:{_MONTH})\b)[a-z])", _percent),
    ("every ",
     r"\bevery (third|fourth|fifth|sixth|seventh|eighth|ninth|tenth)\b(?! (?:year|month|week|day|hour|minute|night|time"
     r"|monday|tuesday|wednesday|thursday|friday|saturday|sunday)s?\b)", _every),
    ("half ",
     r"\bhalf (?:an?|the) (year|hour|minute|day|dozen|million|century|decade|kilo|kilogram|kg|litre|liter|mile|metre"
     r"|meter)\b", _half),
    ("half",
     r"\bhalf[- ](year|hour|day)\b", _half),
    ("and a half",
     rf"\b({_NUMBER}) and a half\b", _and_half),
    ("and a half",
     r"\ban? (year|hour|minute|day|week|month|mile|million) and a half\b", _unit_and_half),
    ("of an hour",
     r"\b(three |a |one )?quarters? of an hour\b", _quarter_hour),
    ("fortnight|decade|centur|dozen",
     rf"\b(an?|{_NUMBER})[ -](fortnight|decade|century|centuries|dozen)s?\b", _span),
    ("half of",
     r"\b(?:one )?half of\b(?= (?:the|all|its|our|their|users|people|customers))", lambda _: "50% of"),
    (
        " in ",
        rf"(?<![\d.])\b({_BELOW_100}|\d+) in (?:every )?({_BELOW_100}|\d+)\b(?= (?:[a-z]+s|people)\b)"
        r"(?! (?:seconds|minutes|hours|days|weeks|months|years|business|working"
        r"|stars|points|places|steps|ways|cases|parts))",
        _share),
    (_SCALE,
     rf"\b({_NUMBER})( to |-|–| or )({_NUMBER}) (hundred|thousand|million|billion)\b", _span_of_thousands),
    (_SCALE,
     rf"(?<=\bbetween )({_NUMBER})( and )({_NUMBER}) (hundred|thousand|million|billion)\b", _span_of_thousands),
    (_SCALE,
     rf"\b(?:an?|{_BELOW_100}) (?:hundred|thousand|million|billion)(?:(?: and)? {_BELOW_100}(?: hundred)?(?: thousand)?"
     rf"(?:(?: and)? {_BELOW_100})?)?\b", _compound),
    (_TEN,
     rf"\b(?:(?:{_TEN})-(?:{_ONES})|(?:{_TEN}) (?:{_ONES}))(?! (?:hundred|thousand|million|billion))\b", _compound),
    ("euro|dollar|pound|franc",
     rf"\b({_NUMBER}) ({_CURRENCY})(?: and)? ({_BELOW_100}|\d\d(?= (?:cents|pence)))(?: cents?| pence)?"
     r"(?=\s*(?:[.,;:!?)]|$|per\b|an?\b|each\b|every\b|for\b|extra\b|more\b|in\b|at\b|on\b))", _money),
    ("euro|dollar|pound|franc",
     rf"\b({_NUMBER}) (?:swiss|us|u\.s\.|american|canadian|australian|british) ({_CURRENCY})\b",
     lambda found: f"{_shown(_plain(found[1]))} {found[2]}"),
    ("usd|us$|eur|gbp",
     r"\b(USD|US\$|EUR|GBP) ?(?=\d)", _sign),
)  # fmt: skip


@cache
def _patterns() -> tuple[tuple[Sequence[str], re.Pattern[str], _Made], ...]:
    """Return the forms, compiled on first use: few texts have one, and all take longer than a short suite's start."""
    return tuple((words.split("|"), re.compile(pattern, re.I), made) for words, pattern, made in _FORMS)


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
    plain = _folded(text)
    for words, pattern, made in _patterns():
        if not any(word in plain for word in words):
            continue
        written = pattern.sub(lambda found, made=made: _filled(found[0], made(found)), text)  # type: ignore[misc]
        if written != text:
            text, plain = written, _folded(written)
    return text


def _filled(words: str, digits: str) -> str:
    return digits.rjust(len(words)) if 0 < len(digits) <= len(words) else words


def in_words(text: str, digits: str) -> str:
    """Return the words of ``text`` that ``in_digits`` writes as ``digits``; ``digits`` where the text has them."""
    written = in_digits(text)
    found = re.search(r"\s+".join(map(re.escape, digits.split())), written) if written != text else None
    if not found:
        return digits
    start = len(written[: found.start()].rstrip(" "))
    return " ".join(text[start : found.end()].split())


# Numbers, dates, times and amounts of a text as values, however they are written.
#
# ``30``, ``thirty`` and ``30.0`` are one number, ``1,400`` and ``1 400`` another. ``2024-03-01`` is ``1 March 2024``,
# ``5 pm`` is ``17:00``, ``2 years`` are ``24 months``. Where a mark can be read in two ways, as the comma of ``1,400``,
# both readings count.

Reading = tuple[str, float]
"""A dimension and a value in its smallest unit; a number without a unit is of the dimension ``number``."""
_NUMBER_UNIT = "number"
_DIGITS = r"(?:\d{1,3}(?:[\u00a0\u202f ]\d{3}){1,6}(?![\u00a0\u202f ]?\d)|\d+)(?:[.,:'’]\d+)*"
_TOKEN = re.compile(
    rf"(?P<date>\d{{4}}[-/]\d{{1,2}}[-/]\d{{1,2}}(?!\d)|\d{{1,2}}[./]\d{{1,2}}[./]\d{{4}}(?!\d))"
    rf"|(?P<number>{_DIGITS})|(?P<word>[^\W\d_]+(?:['’][^\W\d_]+)?|[%°€$£])|(?P<dash>[-–—~])"
)
_HOURS_AND_MINUTES = re.compile(r"\b(\d{1,2}) ?h ?(\d{2})\b")
_YEAR_OF_CENTURY = re.compile(r"(?<!\w)['’](\d\d)(?!\d)")
_LAST_OF_THIS_CENTURY = 40
_SPELT_TENS = "twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety"
_SPELT_TEENS = "ten|eleven|twelve|(?:thir|four|fif|six|seven|eigh|nine)teen"
_SPELT_BELOW_100 = rf"(?:(?:{_SPELT_TENS})(?:[- ](?:{_ONES}))?|{_ONES}|{_SPELT_TEENS})"
_SPELT = re.compile(rf"\b(?:(?:{_ONES}) hundred(?: and {_SPELT_BELOW_100})?|(?:{_SPELT_TENS})[- ](?:{_ONES}))\b", re.I)
_CJK_CLOCK = re.compile(
    r"(?P<half>上午|下午|晚上|早上|午前|午後)?(?P<hour>\d{1,2}|十[一二]?|[一二三四五六七八九两])[点點時](?!间|間)(?:整)?(?P<thirty>半)?(?!\d)"
)
_PHRASES = {
    "three quarters of an hour": "45 minutes",
    "quarter of an hour": "15 minutes",
    "an hour and a half": "90 minutes",
    "a year and a half": "18 months",
    "half a year": "6 months",
    "half an hour": "30 minutes",
    "half a dozen": "6",
    "a dozen": "12",
    "a fortnight": "2 weeks",
}
_PHRASE = re.compile(rf"\b(?:{'|'.join(_PHRASES)})\b", re.I)
_ENUMERATED = re.compile(r"^[ \t]{0,8}\d{1,2}[.)](?=\s)", re.MULTILINE)
_CHINESE = {sign: value for value, sign in enumerate("零一二三四五六七八九")} | {"两": 2}
_CHINESE_NUMBER = re.compile(
    "[二三四五六七八九两]?十[一二三四五六七八九]?|[二三四五六七八九两](?=[个天日周年月小分元次种名位岁倍%])"
)
_GROUPING, _MARK, _NO_DIGIT = re.compile(r"['’\u00a0\u202f ]"), re.compile(r"[.,]"), re.compile(r"\D")
_YEAR, _DATE_MARK = re.compile(r"(?:1\d|20)\d\d"), re.compile(r"[-/.]")
_TIME, _HOUR = re.compile(r"\d{1,2}:\d{2}"), re.compile(r"\d{1,2}(?::\d{2})?")
_MONTHS = {
    "en": "january february march april may june july august september october november december",
    "de": "januar februar märz april mai juni juli august september oktober november dezember",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "it": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "pt": "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    "nl": "januari februari maart april mei juni juli augustus september oktober november december",
}
_SHORT_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec"
_NUMBERS = {
    "de": "zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
    "fr": "deux trois quatre cinq six sept huit neuf dix onze douze",
    "es": "dos tres cuatro cinco seis siete ocho nueve diez once doce",
    "it": "due tre quattro cinque sei sette otto nove dieci undici dodici",
    "pt": "dois três quatro cinco seis sete oito nove dez onze doze",
    "nl": "twee drie vier vijf zes zeven acht negen tien elf twaalf",
}
"""Two to twelve. One is an article in most of them."""
_FIRST = {"first": 1, "second": 2, "premier": 1}
_ORDINAL_WORDS = "third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"
_TIMES = {
    ("time", 1): "sekunde sekunden seconde secondes segundo segundos secondo secondi seconden 秒",
    ("time", 60): "minuten minutos minuto minuti minuut 分钟 分鐘",
    ("time", 3600): "stunde stunden heure heures hora horas ora ore uur uren 小时 小時",
    ("time", 86400): "tag tage tagen jour jours día días dia dias giorno giorni dag dagen werktage arbeitstage "
    "werktagen arbeitstagen werkdagen 天 日",
    ("time", 604800): "woche wochen semaine semaines semana semanas settimana settimane weken 周 週 星期",
    ("months", 1): "monat monate monaten mois mes meses mese mesi mês maand maanden 个月 個月",
    ("months", 12): "yr yrs jahr jahre jahren an ans année années año años anno anni ano anos jaar jaren 年",
    ("percent", 1): "prozent pourcent",
    ("temperature", 1): "celsius",
    ("length", 25.4): "inch inches",
    ("length", 304.8): "foot feet ft",
    ("length", 1_609_344): "mile miles",
}
_WEEKDAYS = (
    "monday mon montag lundi lunes lunedì maandag 月曜日 月曜 星期一 周一",
    "tuesday tue tues dienstag mardi martes martedì dinsdag 火曜日 火曜 星期二 周二",
    "wednesday wed mittwoch mercredi miércoles mercoledì woensdag 水曜日 水曜 星期三 周三",
    "thursday thu thurs donnerstag jeudi jueves giovedì donderdag 木曜日 木曜 星期四 周四",
    "friday fri freitag vendredi viernes venerdì vrijdag 金曜日 金曜 星期五 周五",
    "saturday sat samstag sonnabend samedi sábado sabato zaterdag 土曜日 土曜 星期六 周六",
    "sunday sun sonntag dimanche domingo domenica zondag 日曜日 日曜 星期日 星期天 周日",
)
_HOURS = {"noon": 12, "midday": 12, "mittags": 12, "midi": 12, "midnight": 0, "mitternacht": 0, "minuit": 0}
_PAST = {("half", "past"): 30, ("quarter", "past"): 15, ("quarter", "to"): -15}
_SCALE_BY_NAME = {
    name: scale
    for scale, names in (
        (1e2, "hundred"),
        (1e3, "thousand k tausend mille mil"),
        (1e4, "万"),
        (1e6, "million millions m millionen mio millones milioni milhões miljoen"),
        (1e8, "亿"),
        (1e9, "billion billions bn milliarden mrd milliards"),
    )
    for name in names.split()
}
_AFTER_MONTH = frozenset(
    ["and", "or", "to", "until", "at", "is", "each", "every", "of", "by", "und", "et", "y", "e", "for"]
)
_BESIDE = frozenset(
    ["business", "working", "work", "full", "calendar", "consecutive", "whole", "more", "additional", "extra", "werk"]
)
_ROUNDED = 0.01
_LINKS = frozenset(["to", "bis", "à", "a", "and", "or", "und", "y", "e", "to-"])


@dataclass(frozen=True)
class StatedValue:
    """A number, date, time or amount.

    Attributes:
        exact: its possible values.
        also: readings that are less than it says: the month of a date, the number of an amount.
    """

    exact: frozenset[Reading]
    also: frozenset[Reading] = frozenset()

    def has(self, wanted: StatedValue) -> bool:
        """Whether this states the wanted value, or more. Two amounts of different units are different."""
        if wanted.exact & self.exact or _is_rounded(wanted.exact, self.exact):
            return True
        if wanted.is_like(self) and wanted.also and _is_rounded(wanted.also, self.also):
            return True
        is_both = bool(wanted.also) and bool(self.also) and not _kinds(wanted) & _kinds(self) - {_NUMBER_UNIT}
        if _kinds(wanted) & _kinds(self) - {_NUMBER_UNIT} or is_both:
            return False
        return bool(wanted.exact & self.also or wanted.also & self.exact)

    def is_like(self, other: StatedValue) -> bool:
        """Whether both are of one kind, so that one may replace the other."""
        return bool(_kinds(self) & _kinds(other))

    @property
    def is_measured(self) -> bool:
        """Whether it is more than a number."""
        return _kinds(self) != {_NUMBER_UNIT}


def _is_rounded(wanted: frozenset[Reading], said: frozenset[Reading]) -> bool:
    """Whether a number with decimals is stated with fewer of them."""
    return any(
        kind == other and value % 1 and abs(value - near) <= _ROUNDED * abs(value)
        for kind, value in wanted
        for other, near in said
    )


def _kinds(value: StatedValue) -> set[str]:
    return {dimension for dimension, _ in value.exact}


def readings(number: str) -> list[float]:
    """Return the possible values of a number: "1,400" is 1400, and 1.4 where a comma is the decimal point."""
    plain = _GROUPING.sub("", number.replace("−", "-"))
    marks = _MARK.findall(plain)
    if not marks:
        return [float(plain)]
    whole, _, last = plain.rpartition(marks[-1])
    digits = _MARK.sub("", whole)
    found = [float(f"{digits}.{last}")] if len({*marks}) == 2 or len(marks) == 1 else []
    return [*found, float(digits + last)] if len({*marks}) == 1 and len(last) == 3 else found


@lru_cache(maxsize=4096)
def stated_values(text: str, language: str = ENGLISH) -> tuple[StatedValue, ...]:
    """Return the numbers, dates, times and amounts of a text, without those of citations and of numbered lines."""
    plain = _ENUMERATED.sub(" ", comparable(CITATION.sub(" ", text)))
    plain = _YEAR_OF_CENTURY.sub(_from_short_year, _HOURS_AND_MINUTES.sub(r"\1:\2", plain))
    plain = _CJK_CLOCK.sub(_from_cjk_clock, plain)
    plain = _PHRASE.sub(lambda found: _PHRASES[found[0].casefold()], plain)
    plain = _SPELT.sub(_from_spelt, plain) if language == ENGLISH else plain
    return tuple(_Values(_CHINESE_NUMBER.sub(lambda found: f" {_from_chinese(found[0])} ", plain), language).found())


@cache
def value_words(language: str = ENGLISH) -> frozenset[str]:
    """Return the words that are values: months, days of the week, scales and numbers."""
    return frozenset([*_months(), *_weekdays(), *_SCALE_BY_NAME, *_HOURS, *number_words(language)]) - {
        "may",
        "march",
        "to",
    }


def unit_words() -> frozenset[str]:
    """Return the words of units, which belong to the number before them."""
    return frozenset(_units())


def share_stated(wanted: Iterable[StatedValue], said: Iterable[StatedValue]) -> float:
    """Return the share of the wanted values that are stated; 1 where none is wanted."""
    asked, there = list(wanted), list(said)
    return sum(any(each.has(one) for each in there) for one in asked) / len(asked) if asked else 1.0


def _from_short_year(found: re.Match[str]) -> str:
    """Return the year of "'87": of the last century, unless it is long before us in it."""
    return f"{19 if int(found[1]) > _LAST_OF_THIS_CENTURY else 20}{found[1]}"


def _from_cjk_clock(found: re.Match[str]) -> str:
    """Return "下午五点半" as 17:30."""
    hour = int(found["hour"]) if found["hour"].isdigit() else _from_chinese(found["hour"])
    hour = hour % 12 + 12 if found["half"] in {"下午", "晚上", "午後"} else hour
    return f" {hour}:{30 if found['thirty'] else 0:02} "


def _from_spelt(found: re.Match[str]) -> str:
    """Return "two hundred and forty-one" as 241, which is 2 * 100 + 40 + 1."""
    total = 0.0
    for word in re.findall(r"[a-z]+", found[0].casefold()):
        total = total * 100 if word == "hundred" else total + number_words().get(word, 0.0)
    return f"{total:g}"


def _from_chinese(text: str) -> int:
    tens, ten, ones = text.partition("十")
    return (_CHINESE.get(tens, 1) * 10 if ten else _CHINESE[tens]) + _CHINESE.get(ones, 0)


class _Values:
    """The values of a text, token by token."""

    def __init__(self, text: str, language: str) -> None:
        self._tokens = [(str(found.lastgroup), found[0].casefold()) for found in _TOKEN.finditer(text)]
        self._words = number_words(language)

    def found(self) -> Iterator[StatedValue]:
        at = 0
        while at < len(self._tokens):
            came = self._named(at) or self._date(at) or self._amount(at)
            if came is None:
                at += 1
                continue
            values, at = came
            yield from values

    def _word(self, at: int) -> str:
        return self._tokens[at][1] if 0 <= at < len(self._tokens) else ""

    def _numbers(self, at: int) -> list[float]:
        kind, text = self._tokens[at] if 0 <= at < len(self._tokens) else ("", "")
        if kind == "number" and ":" not in text and len(text) <= 24:
            return readings(text) or [float(_NO_DIGIT.sub("", text))]
        return [self._words[text]] if text in self._words else []

    def _named(self, at: int) -> tuple[list[StatedValue], int] | None:
        """Return a day of the week, noon, or "half past nine" in the morning or evening."""
        word = self._word(at)
        if day := _weekdays().get(word, 0):
            return [StatedValue(frozenset([("weekday", float(day))]))], at + 1
        if word in _HOURS and self._tokens[at - 1 : at] != [("dash", "-")]:
            return [StatedValue(frozenset([("clock", _HOURS[word] * 60.0)]))], at + 1
        minutes, hours = _PAST.get((word, self._word(at + 1))), self._numbers(at + 2)
        if minutes is None or not hours:
            return None
        clocks = ((hour % 12 + half) * 60 + minutes for hour in hours for half in (0, 12))
        return [StatedValue(frozenset(("clock", float(clock)) for clock in clocks))], at + 3

    def _date(self, at: int) -> tuple[list[StatedValue], int] | None:
        kind, text = self._tokens[at]
        if kind == "date":
            return _numeric_date(text), at + 1
        month = _months().get(text, 0)
        if month and not _is_verb(text, self._word(at + 1)):
            return self._after_month(month, at)
        day = float(_FIRST.get(text, 0)) or next(iter(self._numbers(at)), 0.0)
        if not (1 <= day <= 31 and day.is_integer()):
            return None
        after = at + 1
        while self._word(after) in {"st", "nd", "rd", "th", "of", "de", "er"}:
            after += 1
        month = _months().get(self._word(after), 0)
        if not month or _is_verb(self._word(after), self._word(after + 1)):
            return None
        return self._with_year([_dated(month, day)], after + 1 + (self._word(after + 1) in {"de", "of"}))

    def _after_month(self, month: int, at: int) -> tuple[list[StatedValue], int] | None:
        """Return "March 3", "March 3rd, 2024" or "March 2024"; a month by itself is a value, too."""
        day = next(iter(self._numbers(at + 1)), 0.0) if self._word(at + 1)[:1].isdigit() else 0.0
        if 1 <= day <= 31:
            after = at + 2 + (self._word(at + 2) in {"st", "nd", "rd", "th"})
            return self._with_year([_dated(month, day)], after)
        return self._with_year([StatedValue(frozenset([("month", month)]))], at + 1)

    def _with_year(self, values: list[StatedValue], at: int) -> tuple[list[StatedValue], int]:
        year = self._word(at)
        if _YEAR.fullmatch(year):
            return [*values, StatedValue(frozenset([(_NUMBER_UNIT, float(year))]))], at + 1
        return values, at

    def _amount(self, at: int) -> tuple[list[StatedValue], int] | None:
        if (clock := self._clock(at)) is not None:
            return clock
        numbers = self._numbers(at)
        if not numbers:
            return None
        after, scale = at + 1, _SCALE_BY_NAME.get(self._word(at + 1), 1.0)
        if scale != 1 and not (self._word(at + 1) == "m" and self._word(at - 1) not in _CURRENCY_SIGNS):
            numbers, after = [number * scale for number in numbers], after + 1
        unit, behind = self._unit(after)
        plain = frozenset((_NUMBER_UNIT, number) for number in numbers)
        if not unit:
            return [StatedValue(plain)], after
        dimension, factor = unit
        return [StatedValue(frozenset((dimension, number * factor) for number in numbers), plain)], behind

    def _unit(self, at: int) -> tuple[tuple[str, float] | None, int]:
        """Return the unit of the number before ``at``, and the place behind it; of a range, the unit of its end."""
        at = self._behind_adjectives(at)
        if self._word(at) in _LINKS and self._numbers(at + 1):
            at += 1
        if self._numbers(at):
            return self._unit_at(self._behind_adjectives(at + 1)), at
        unit = self._unit_at(at)
        return unit, at + 1 if unit else at

    def _behind_adjectives(self, at: int) -> int:
        while self._tokens[at : at + 1] and (self._tokens[at][0] == "dash" or self._word(at) in _BESIDE):
            at += 1
        return at

    def _unit_at(self, at: int) -> tuple[str, float] | None:
        word, joined = self._word(at), _units_joined()
        name = next((word[:size] for size in (2, 1) if word[:size] in joined), word)
        return _units().get(name)

    def _clock(self, at: int) -> tuple[list[StatedValue], int] | None:
        """Return "17:30", "5 pm", "5 p.m." or "17.30 Uhr" as minutes of the day."""
        text, behind = self._word(at).replace(".", ":"), self._word(at + 1)
        is_spelt = behind in {"a", "p"} and self._word(at + 2) == "m"
        half = behind if behind in {"am", "pm"} else f"{behind}m" if is_spelt else ""
        is_named = bool(half) or behind in {"uhr", "o'clock"}
        if not (_HOUR if is_named else _TIME).fullmatch(text) or (not is_named and ":" not in self._word(at)):
            return None
        hour, minute = (int(part) for part in f"{text}:0".split(":")[:2])
        hour = hour % 12 + 12 * (half == "pm") if half else hour
        also = [] if minute else [(_NUMBER_UNIT, float(each)) for each in (hour, (hour - 1) % 12 + 1)]
        value = StatedValue(frozenset([("clock", hour * 60.0 + minute)]), frozenset(also))
        return [value], at + 1 + is_named + is_spelt


_CURRENCY_SIGNS = frozenset("€$£")


def _dated(month: int, day: float) -> StatedValue:
    return StatedValue(frozenset([("date", month * 100 + day)]), frozenset([("month", float(month))]))


def _numeric_date(text: str) -> list[StatedValue]:
    """Return a date in digits. In 3/5/2024 either may be the month."""
    parts = [int(part) for part in _DATE_MARK.split(text)]
    year, orders = (parts[0], [(parts[1], parts[2])]) if parts[0] > 31 else (parts[2], [(parts[1], parts[0])])
    orders += [(parts[0], parts[1])] if "/" in text and parts[0] <= 12 else []
    days = [(month, day) for month, day in orders if 1 <= month <= 12 and 1 <= day <= 31]
    exact = frozenset(("date", float(month * 100 + day)) for month, day in days)
    months = frozenset(("month", float(month)) for month, _ in days)
    return [
        *([StatedValue(exact, months)] if exact else []),
        StatedValue(frozenset([(_NUMBER_UNIT, float(year))])),
    ]


def _is_verb(word: str, behind: str) -> bool:
    """Whether "may" or "march" names no month: a word of the sentence follows."""
    return word in {"may", "march", "mar", "mars"} and behind[:1].isalpha() and behind not in _AFTER_MONTH


@cache
def _months() -> Mapping[str, int]:
    named = [*_MONTHS.values(), _SHORT_MONTHS]
    found = {name: number for names in named for number, name in enumerate(names.split(), 1)}
    return found | {"sept": 9, "okt": 10, "dez": 12, "mär": 3}


@cache
def _weekdays() -> Mapping[str, int]:
    named = {name: number for number, names in enumerate(_WEEKDAYS, 1) for name in names.split()}
    return named | {f"{name}s": number for name, number in named.items() if name.isascii() and len(name) > 5}


@cache
def _units() -> Mapping[str, tuple[str, float]]:
    return UNITS | {name: (unit, float(factor)) for (unit, factor), names in _TIMES.items() for name in names.split()}


@cache
def _units_joined() -> frozenset[str]:
    """Return the units that directly precede the next word: 天, 个月."""
    return frozenset(name for name in _units() if len(name) <= 2 and "\u4e00" <= name[0] <= "\u9fff")


@cache
def number_words(language: str = ENGLISH) -> Mapping[str, float]:
    """Return the values of the words for numbers of a language."""
    if language in _NUMBERS:
        return {name: float(value) for value, name in enumerate(_NUMBERS[language].split(), 2)}
    english = {name: float(value) for name, value in NUMBER_WORDS.items()} | {"zero": 0.0, "one": 1.0, "hundred": 100.0}
    return english | {name: float(value) for value, name in enumerate(_ORDINAL_WORDS.split(), 3)}
