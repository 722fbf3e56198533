"""Tokens, stems and terms of a text, citation marks, and words of the same or the opposite sense."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from rag_harness.core.text.comparison import comparable, divided, is_marked, marks
from rag_harness.core.text.languages import ENGLISH, LANGUAGES, rules_of

# Citation marks of an answer, such as ``[Source 1]``, and the mark "I don't know".

DECLINES = re.compile(r"\bI (?:don['’]?t|do not) know\b", re.IGNORECASE)
"""The words with which the prompts ask a model to decline."""
CITATION = re.compile(r"\[\s*sources?\b([^\]]{0,400})\]", re.IGNORECASE)
"""``[Source 1]``, ``[Sources 1, 3]``, ``[Source 1: a]``; the group is the text after the word.

The group has a limit. Without it, each unclosed mark would be read to the end of the text."""
_MARK = re.compile(r"\[(?P<said>\s*sources?\b[^\[\]]*)(?P<end>\]?)", re.IGNORECASE)


def says_unknown(text: str) -> bool:
    """Return whether a text has the words with which prompts ask a model to decline, in any language with rules."""
    return DECLINES.search(text) is not None or any(rules.declines.search(text) for rules in LANGUAGES.values())


def without_marks(text: str) -> str:
    """Return ``text`` of unknown origin with round brackets in place of citation marks, also of unclosed ones.

    Unchanged, its marks would look like sources of the prompt, and like citations in an answer that quotes them.
    """
    return _MARK.sub(lambda mark: f"({mark['said']}{')' if mark['end'] else ''}", text)


_NUMBER = re.compile(r"\s*(?:source\s*)?(\d{1,6})\b", re.IGNORECASE)


def cited_sources(text: str) -> Sequence[int]:
    """Return the numbers of cited sources, once each: ``[Source 1]``, ``[Sources 1, 3]``, ``[Source 1: a]``."""
    pieces = (piece for cited in CITATION.findall(text) for piece in re.split(r"[,;&]|\band\b", cited))
    numbers = (match for match in map(_NUMBER.match, pieces) if match)
    return list(dict.fromkeys(int(match[1]) for match in numbers))


# Tokens, stems and terms of a text, and the kind of token that answers a question.
#
# Each function takes the language of its text. English is the default, and what a language without rules gets.

_TOKEN = re.compile(r"[A-Za-z]+-?\d[\w-]*|\d+(?:[.,:]\d+)*|[^\W\d_]+(?:['’][^\W\d_]+)?")
_FIGURE = re.compile(r"\d+(?:[.,:]\d+)*")

_FUNCTION_WORDS = """
    a about after all also am an and any are as at be been before being but by can could did do does doing don't
    during each else every few for from get gets give given go goes got had has have having he her here his how i i'm
    if in into is isn't it it's its just know let long make many may me might more most much must my need needs no not
    of off often on once one only or other our out over own per please possible same say shall she should so some soon
    still such take takes tell than that the their them then there these they this those to too under until up upon us
    use using very want was we were what what's when where whether which while who whom whose why will with within
    without would yes you your yours
"""
STOPWORDS = frozenset(_FUNCTION_WORDS.split())
_STEPS = (
    (("sses", "ss"), ("ies", "y"), ("ss", "ss"), ("us", "us"), ("is", "is"), ("s", "")),
    (("ations", ""), ("ation", ""), ("ments", ""), ("ment", ""), ("ings", ""), ("ing", ""), ("ed", ""), ("ly", "")),
)
_IRREGULAR = {"paid": "pay", "sent": "send", "bought": "buy", "sold": "sell", "kept": "keep", "broken": "break"}

NUMBER_WORDS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"
)  # fmt: skip
_SMALL_NUMBER = re.compile(rf"\b({'|'.join(NUMBER_WORDS)})\b", re.I)
_NUMBER_WORD = r"(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve|fourteen|twenty|thirty|sixty|ninety)"
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_QUANTITY = rf"(?:\d|\b{_NUMBER_WORD}\b)"
_DURATION = rf"{_QUANTITY}[^.;]{{0,20}}\b(?:minute|hour|day|night|week|month|year)s?\b|\b(?:same day|lifetime)\b"
_MONEY = r"[€$£]\s?\d|\d\s?(?:eur|usd|gbp|euros?|dollars?|pounds?|cents?|%|percent)|\b(?:free|no charge)\b"
_WEEKDAY = r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_DATE = rf"\b\d{{1,2}} {_MONTH}\b|\b{_MONTH} \d|\b\d{{4}}\b|\b\d{{1,2}}:\d{{2}}\b|{_WEEKDAY}"
_KINDS = tuple(
    (name, re.compile(asked, re.I), re.compile(answered, re.I))
    for name, asked, answered in (
        ("a duration", r"\bhow (?:long|soon|fast|quickly)\b", _DURATION),
        (
            "an amount of money",
            r"\b(?:cost|price|fee|charge|pay)s?\b.{0,400}\bhow much\b|\bhow much\b.{0,400}\b(?:cost|pay)",
            _MONEY,
        ),
        ("an amount of money", r"\bwhat\b.{0,40}\b(?:cost|price|fee|charge)s?\b|\bhow expensive\b", _MONEY),
        ("a number", r"\bhow (?:much|many|often|old|far|big|large|heavy|tall|deep|wide|high)\b", _QUANTITY),
        ("a date or time", r"\bwhen\b|\b(?:what|which) (?:date|day|time|year)\b", f"{_DATE}|{_DURATION}"),
    )
)
# Words that only name the kind of answer: a page that answers with "€29" need not contain "cost".
KIND_WORDS = {
    "an amount of money": frozenset(("cost", "price", "prices", "fee", "charge", "pay", "costs", "fees", "charges")),
    "a date or time": frozenset(("date", "day", "time", "year")),
}


def kind_words(kind: str, language: str = ENGLISH) -> frozenset[str]:
    """Return the words of a question that only name the kind of its answer."""
    rules = rules_of(language)
    return frozenset(rules.kind_words.split() if rules and kind else ()) or KIND_WORDS.get(kind, frozenset())


@lru_cache(maxsize=16384)
def stem(word: str) -> str:
    """Strip English endings from a lower-case word: a much shorter form of Porter (1980). Codes and numbers stay."""
    word = _IRREGULAR.get(word, word)
    if len(word) <= 3 or not word.isalpha():
        return word
    for rules in _STEPS:
        word = _strip(word, rules)
    if len(word) > 4 and word[-1] in "ey":
        word = word[:-1]
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word


def _strip(word: str, rules: tuple[tuple[str, str], ...]) -> str:
    for ending, replacement in rules:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)] + replacement
    return word


def tokens(text: str) -> list[str]:
    """Return words, numbers and product codes as written; pairs of characters in scripts without blanks."""
    return divided(_marked_token().findall(text)) if is_marked(text) else _TOKEN.findall(text)


@lru_cache(maxsize=16384)
def term(token: str, language: str = ENGLISH) -> str:
    """Return the form in which a token is compared; empty for a stopword."""
    if rules_of(language):
        return _term_in(token, language)
    word = token.lower().replace("’", "'").removesuffix("'s")
    if word in STOPWORDS or (len(word) == 1 and word.isalpha()):
        return ""
    return word.replace(",", "") if word[0].isdigit() else stem(word)


def _term_in(token: str, language: str) -> str:
    """Return the term of a token by the rules of its language. A number keeps its marks: "4,90" is no "490"."""
    rules = rules_of(language)
    word = rules.plain(token.replace("’", "'")) if rules else ""
    if not rules or not word or (len(word) == 1 and word.isalpha()):
        return ""
    return rules.stem(word) if word.isalpha() else word


@cache
def _marked_token() -> re.Pattern[str]:
    return re.compile(_TOKEN.pattern.replace(r"[^\W\d_]+", rf"(?:[^\W\d_][{marks()}]*)+"))


@lru_cache(maxsize=8192)
def terms(text: str, language: str = ENGLISH) -> frozenset[str]:
    """Return the comparable content terms of ``text``."""
    return frozenset(found for token in tokens(comparable(text)) if (found := term(token, language)))


def figures(text: str) -> frozenset[str]:
    """Return the numbers of ``text`` without thousands separators."""
    return frozenset(found.replace(",", "") for found in _FIGURE.findall(comparable(text)))


@lru_cache(maxsize=2048)
def written_numbers(text: str) -> frozenset[str]:
    """Return the numbers of a text, small ones in words too, without those of its citations."""
    in_digits = _SMALL_NUMBER.sub(lambda found: str(NUMBER_WORDS.index(found[1].lower())), CITATION.sub(" ", text))
    return frozenset(map(_trimmed, figures(in_digits)))


def _trimmed(number: str) -> str:
    """Return 9.90 as 9.9, and 30.0 as 30."""
    whole, point, rest = number.partition(".")
    return f"{whole}.{rest.rstrip('0')}".rstrip(".") if point and rest.isdigit() else number


def answer_kind(question: str, language: str = ENGLISH) -> tuple[str, re.Pattern[str] | None]:
    """Return the kind of answer that a question wants ("a duration", …) and its pattern; ``("", None)`` if any."""
    rules = rules_of(language)
    for name, asked, answered in rules.kinds if rules else _KINDS:
        if asked.search(question):
            return name, answered
    return "", None


_SENSES = """
    allow permit accept approve admit welcome possible legal let suitable | forbid prohibit ban deny refuse reject \
    decline impossible illegal disallow unsuitable
    include cover contain comprise insure reimburse refund provide | exclude except exempt omit separately
    free gratis complimentary | pay cost charge fee price chargeable
    need require compulsory mandatory obligatory must necessary | optional voluntary recommend unnecessary
    available | unavailable
    open | close shut
    liable | exempt
    before beforehand prior ahead | after afterwards afterward
    start begin commence | end finish stop
    fast quick | slow
    faster quicker | slower
    cheap | expensive dear
    cheaper | dearer
    wet damp moist moisten | dry
    oral spoken verbal | write written writing
    harmless safe | dangerous harmful unsafe damage hazardous
    indoor indoors inside | outdoor outdoors outside
    increase rise raise grow climb | decrease reduce fall drop decline lower shrink
    high higher highest | low lower lowest
    more | less fewer
    most maximum | least minimum
    above over | below under beneath
    ~ arrive arrival | depart departure
    ~ enter entry entrance | exit
    ~ buy purchase | sell
    enable activate | disable deactivate
    ~ on | off
    ~ public | private
    ~ manual manually | automatic automatically
    empty | full
    early earlier earliest | late later latest
    ~ first | last
    ~ old older | new newer
    ~ hot warm | cold cool
    ~ left | right
    ~ north northern | south southern
    ~ east eastern | west western
    win | lose
    always | never
    ~ all every everybody everyone | none nobody
    ~ import | export
    ~ upload | download
    lock | unlock
    connect | disconnect
    ~ temporary | permanent
    ~ internal | external
    ~ adult | child
    ~ domestic | international abroad
    ~ weekday | weekend
    ~ longer | shorter
    ~ long | short
    bigger larger | smaller
    big large | small
    heavier | lighter
    heavy | light
    stronger | weaker
    strong | weak
    valid | invalid expire
    active | inactive
    visible | hidden
    pass | fail
    add | remove
    ~ upper | lower
    ~ front | rear back
    ~ top | bottom
    ~ horizontal | vertical
    ~ odd | even
    remember keep | delete discard
"""
_PREFIXES = ("un", "non", "in", "im", "dis", "il", "ir")
_BASE_BY_IRREGULAR = {
    "began": "begin", "begun": "begin", "forbidden": "forbid", "fell": "fall", "fallen": "fall", "rose": "rise",
    "grew": "grow", "won": "win", "lost": "lose", "bought": "buy", "sold": "sell", "kept": "keep", "paid": "pay",
    "denied": "deny", "denies": "deny", "banned": "ban", "stopped": "stop", "dropped": "drop", "children": "child",
    "shutting": "shut", "needed": "need",
}  # fmt: skip


_CONTRASTS = "~"
"""Mark of pairs that tell two things apart: what is stated of adults is not denied of children."""


class Sense(NamedTuple):
    """The meaning of a word: a pair of opposites, and one of the two."""

    pair: int
    side: bool


def opposite(one: str, other: str, contrasts: bool = True) -> bool:
    """Return whether two lower-case words are opposites; with ``contrasts``, also those that tell two things apart."""
    ours, theirs = senses(one), senses(other)
    if not contrasts:
        ours = frozenset(said for said in ours if said.pair not in _contrasts())
    return any(Sense(pair, not side) in theirs for pair, side in ours) or _negated(one, other) or _negated(other, one)


def same_sense(one: str, other: str) -> bool:
    """Return whether two lower-case words state the same of a thing."""
    return bool(senses(one) & senses(other))


@cache
def senses(word: str) -> frozenset[Sense]:
    """Return the meanings of a lower-case word; empty for most words."""
    word = _BASE_BY_IRREGULAR.get(word, word)
    return _senses().get(word) or _senses().get(stem(word), frozenset())


@cache
def _contrasts() -> frozenset[int]:
    lines = filter(None, map(str.strip, _SENSES.splitlines()))
    return frozenset(pair for pair, line in enumerate(lines) if line.startswith(_CONTRASTS))


@cache
def _senses() -> dict[str, frozenset[Sense]]:
    found: dict[str, set[Sense]] = {}
    for pair, line in enumerate(filter(None, map(str.strip, _SENSES.splitlines()))):
        for side, words in enumerate(line.lstrip(_CONTRASTS).split("|")):
            for word in words.split():
                for form in {word, stem(word)}:
                    found.setdefault(form, set()).add(Sense(pair, bool(side)))
    return {word: frozenset(said) for word, said in found.items()}


def _negated(one: str, other: str) -> bool:
    """Return whether ``one`` is ``other`` with a negating syllable before it: unavailable, non-refundable."""
    if len(other) < 5:
        return False
    return any(one.startswith(prefix) and stem(one[len(prefix) :].lstrip("-")) == stem(other) for prefix in _PREFIXES)
