"""Kinds that look for texts, patterns, numbers or dates in an answer."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Any, ClassVar

from pydantic_core import SchemaError, SchemaValidator, core_schema

from rag_harness.core.text.comparison import compared_words, without_emphasis
from rag_harness.core.text.numbers import readings
from rag_harness.core.types import Expectation
from rag_harness.records.expectations import (
    AnswerSeen,
    ExpectationKind,
    Finding,
    most_problem,
    number_problem,
    text_problem,
    texts_problem,
)

# Kinds that look for texts in an answer. Case, runs of blanks and citation marks do not count, nor marks of emphasis.
#
# A number is found whole: "5 days" is not in "45 days".

_ENDING = re.compile(r"(?<=\w)(?:\\[.?]|[,;:!])+\Z")
"""Punctuation at the end of a word, escaped."""
_BLANK = re.compile(r" ([.,;:!?])(?!\w)")
_SHOWN = 160
"""The most characters of an answer that a message shows."""
_COMPARED = 2_000
"""The most characters in which the nearest words are looked for."""


@lru_cache(maxsize=4096)
def _pattern(wanted: str, case: bool) -> re.Pattern[str]:
    wanted = without_emphasis(wanted)
    # A mark between two words leaves a blank before the full stop. No part of the pattern can match in two ways.
    words = [_ENDING.sub(lambda mark: r"\s*" + mark[0], re.escape(word)) for word in wanted.split()]
    # "5 days" is not in "45 days", nor "4.90" in "14.90" or "4.905".
    before = r"(?<!\d)(?<!\d[.,])" if wanted.split(maxsplit=1)[0][0].isdigit() else ""
    behind = r"(?!\d)(?![.,]\d)" if wanted.rsplit(maxsplit=1)[-1][-1].isdigit() else ""
    return re.compile(before + r"\s+".join(words) + behind, 0 if case else re.IGNORECASE)


def found_text(answer: AnswerSeen, wanted: str, options: Mapping[str, Any]) -> Finding:
    """Return whether an answer contains a text, and where; else the words that it has instead."""
    match = _pattern(wanted, bool(options.get("case"))).search(answer.plain.text)
    if match:
        start, end = answer.plain.span(*match.span())
        return Finding(True, f"it says “{answer.words[start:end]}”", start, end)
    return Finding(False, instead(answer, wanted))


def instead(answer: AnswerSeen, wanted: str) -> str:
    """Return the words that an answer has instead of a text: the nearest words, or its beginning."""
    if not answer.explained:
        return ""
    words = answer.words[:_COMPARED]
    if not words.strip():
        return "the answer is empty"
    matcher = SequenceMatcher(None, words.lower(), wanted.lower(), autojunk=False)
    block = matcher.find_longest_match()
    if block.size >= max(3, len(wanted) // 4):
        start = max(0, block.a - block.b)
        near = _whole_words(words, start, start + len(wanted))
        return f"the nearest is “{in_one_line(near)}”"
    return f"it says “{in_one_line(words)}”"


def _whole_words(text: str, start: int, end: int) -> str:
    while start > 0 and not text[start - 1].isspace():
        start -= 1
    while end < len(text) and not text[end].isspace():
        end += 1
    return text[start:end]


def in_one_line(text: str) -> str:
    """Return a part of an answer for a message: in one line, cut, and without the blanks that citation marks leave."""
    text = _BLANK.sub(r"\1", " ".join(text.split()))
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _equal(answer: AnswerSeen, wanted: str, options: Mapping[str, Any]) -> Finding:
    is_it = _pattern(wanted, bool(options.get("case"))).fullmatch(answer.plain.text.strip())
    return Finding(bool(is_it), f"it says “{in_one_line(answer.words)}”", 0, len(answer.text))


class _OneText(ExpectationKind):
    of_words = True
    options: ClassVar[Mapping[str, type | tuple[type, ...]]] = {"case": bool}

    def problem(self, demand: Expectation) -> str:
        return text_problem(demand.wanted)


class _SomeTexts(_OneText):
    def problem(self, demand: Expectation) -> str:
        return texts_problem(demand.wanted)


class Contains(_OneText):
    """The text is in the answer."""

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        return found_text(answer, demand.wanted, demand.options)


class ContainsAny(_SomeTexts):
    """At least one of the texts is in the answer."""

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        found = [found_text(answer, each, demand.options) for each in demand.wanted]
        return next((each for each in found if each.does), found[0])


class ContainsAll(_SomeTexts):
    """Each of the texts is in the answer."""

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        for each in demand.wanted:
            found = found_text(answer, each, demand.options)
            if not found.does:
                return Finding(False, f"“{each}” is missing: {found.said}")
        return Finding(True, "all of them are there")


class Equals(_OneText):
    """The answer is the text."""

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        return _equal(answer, demand.wanted, demand.options)


class OneOf(_SomeTexts):
    """The answer is one of the texts."""

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        found = [_equal(answer, each, demand.options) for each in demand.wanted]
        return next((each for each in found if each.does), found[0])


class StartsWith(_OneText):
    """The answer begins with the text."""

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        said = answer.plain.text
        match = _pattern(demand.wanted, bool(demand.options.get("case"))).match(said, len(said) - len(said.lstrip()))
        beginning = in_one_line(answer.words[: len(demand.wanted) + 40])
        place = answer.plain.span(*match.span()) if match else (-1, -1)
        return Finding(bool(match), f"it begins with “{beginning}”", *place)


class EndsWith(_OneText):
    """The answer ends with the text."""

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        said = answer.plain.text.rstrip()
        pattern = _pattern(demand.wanted, bool(demand.options.get("case")))
        ends = list(pattern.finditer(said, max(0, len(said) - 4 * len(demand.wanted))))
        last = answer.plain.span(*ends[-1].span()) if ends and ends[-1].end() == len(said) else None
        ending = in_one_line(answer.words.rstrip()[-len(demand.wanted) - 40 :])
        return Finding(last is not None, f"it ends with “{ending}”", *(last or (-1, -1)))


class RougeL(_OneText):
    """The longest common subsequence of words with the text, as F1 of both, is at least ``at_least`` (ROUGE-L)."""

    options: ClassVar[Mapping[str, type | tuple[type, ...]]] = {"at_least": (int, float)}

    def problem(self, demand: Expectation) -> str:
        at_least = demand.options.get("at_least")
        if at_least is None or not 0 < at_least <= 1:
            return f"at_least is {at_least}. Write a number above 0 and up to 1"
        return text_problem(demand.wanted)

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        said, right = _split(answer.words), _split(demand.wanted)
        if not said or not right:
            return Finding(False, "the answer has no words")
        common = _longest_common(said, right)
        f1 = 2 * common / (len(said) + len(right))
        return Finding(f1 >= demand.options["at_least"], f"it is {f1:.2f}")


def _split(text: str) -> list[str]:
    return compared_words(text)


def _longest_common(said: list[str], right: list[str]) -> int:
    """Return the length of the longest common subsequence, by bits (Hyyrö 2004): a step a word."""
    places: dict[str, int] = {}
    for bit, word in enumerate(right):
        places[word] = places.get(word, 0) | 1 << bit
    ones = (1 << len(right)) - 1
    row = ones
    for word in said:
        here = row & places.get(word, 0)
        row = ((row + here) | (row - here)) & ones
    return len(right) - row.bit_count()


# A regular expression, by an engine whose time is linear in the text: that of pydantic, Rust's ``regex``.
#
# Python's own engine can take hours for an answer of some hundred characters, and cannot be stopped.


@lru_cache(maxsize=1024)
def _validator(pattern: str, case: bool) -> SchemaValidator:
    flags = "" if case else "(?i)"
    return SchemaValidator(core_schema.str_schema(pattern=flags + pattern, regex_engine="rust-regex"))


def _is_in(made: SchemaValidator, text: str) -> bool:
    return bool(made.isinstance_python(text))


def matches(pattern: str, text: str, case: bool) -> bool:
    """Return whether a pattern matches somewhere in a text."""
    return _is_in(_validator(pattern, case), text)


def pattern_problem(pattern: str, case: bool = True) -> str:
    """Return why a pattern cannot be used; empty where it can."""
    try:
        _validator(pattern, case)
    except SchemaError as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        why = next((line for line in reversed(lines) if line.startswith("error:")), lines[-1])
        return f"{pattern!r:.60} is not a regular expression of a linear engine: {why.removeprefix('error: ')}"
    return ""


class Regex(ExpectationKind):
    """The regular expression matches somewhere in the answer. It knows neither look-around nor back-references."""

    of_words = True
    options: ClassVar[Mapping[str, type | tuple[type, ...]]] = {"case": bool}

    def problem(self, demand: Expectation) -> str:
        return text_problem(demand.wanted) or pattern_problem(demand.wanted, bool(demand.options.get("case")))

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        made, text = _validator(demand.wanted, bool(demand.options.get("case"))), answer.words
        if not _is_in(made, text):
            return Finding(False, instead(answer, demand.wanted))
        start, end = _place(made, text)
        return Finding(True, f"it says “{text[start:end][:160]}”", start, end)


def _place(made: SchemaValidator, text: str) -> tuple[int, int]:
    """Return a place of a match. The engine only tells whether there is one, so ends are found by halving.

    A pattern with an anchor can match the whole text and none of its parts. Then the place is the text.
    """
    end = _least(len(text), lambda length: _is_in(made, text[:length]))
    start = len(text[:end]) - _least(end, lambda length: _is_in(made, text[end - length : end]))
    return (start, end) if start < end and _is_in(made, text[start:end]) else (0, len(text))


def _least(most: int, holds: Any) -> int:
    low, high = 0, most
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


_NUMBER = re.compile(
    r"(?<![\w.,])[-−]?(?:\d{1,3}(?:[\u00a0\u202f ]\d{3})+(?![\u00a0\u202f ]?\d)(?:[.,]\d+)*|\d+(?:[.,'’]\d+)*)(?!\w)"
)
_WORD_BEHIND = re.compile(r"[\s\u00a0]*([^\W\d_]+|[%€$£°])")
_SIGNS = "%€$£"
_MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
           "december")  # fmt: skip
_DATE = re.compile(
    r"(?P<iso>\d{4}-\d{1,2}-\d{1,2})|(?P<day>\d{1,2})(?:st|nd|rd|th|\.)?\s+(?:of\s+)?(?P<month>[^\W\d_]{3,9})\.?,?\s+"
    r"(?P<year>\d{4})|(?P<month2>[^\W\d_]{3,9})\.?\s+(?P<day2>\d{1,2})(?:st|nd|rd|th)?,?\s+(?P<year2>\d{4})"
    r"|(?P<dotted>\d{1,2}\.\d{1,2}\.\d{4})",
    re.IGNORECASE,
)


class Number(ExpectationKind):
    """A number of this value is in the answer: 1400 is found in "1,400" and "1 400.0".

    ``within`` is the greatest distance; ``unit`` a word or sign beside it.
    """

    of_words = True
    options: ClassVar[Mapping[str, type | tuple[type, ...]]] = {"within": (int, float), "unit": str}

    def problem(self, demand: Expectation) -> str:
        return number_problem(demand.wanted) or (
            most_problem(demand.options["within"]) if "within" in demand.options else ""
        )

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        near, unit, seen = float(demand.options.get("within", 0)), str(demand.options.get("unit", "")).lower(), []
        for start, number, values, beside in _numbers(answer.words):
            if unit and unit not in beside:
                continue
            seen.append(number)
            if any(abs(each - demand.wanted) <= near + 1e-9 * max(1.0, abs(demand.wanted)) for each in values):
                return Finding(True, f"it says {number}", start, start + len(number))
        behind = f" with {unit} beside them" if unit else ""
        return Finding(
            False, f"its numbers{behind} are {', '.join(seen[:8])}" if seen else f"it has no numbers{behind}"
        )


@lru_cache(maxsize=8192)
def _numbers(text: str) -> Sequence[tuple[int, str, Sequence[float], Sequence[str]]]:
    """Return where each number of a text begins, its text, its possible values, and the words beside it.

    Attribution looks through the same chunks for each expectation that an answer breaks.
    """
    return [
        (match.start(), match[0], tuple(readings(match[0])), _beside(text, *match.span()))
        for match in _NUMBER.finditer(text)
    ]


def _beside(text: str, start: int, end: int) -> list[str]:
    behind, before = _WORD_BEHIND.match(text, end), text[max(0, start - 40) : start].rstrip()
    word = before[-1:] if before.endswith(tuple(_SIGNS)) else before[len(before.rstrip(_letters(before))) :]
    return [each.lower() for each in (behind[1] if behind else "", word) if each]


def _letters(text: str) -> str:
    """Return the letters of a text, to be taken off its end."""
    return "".join(set(filter(str.isalpha, text))) or " "


class Date(ExpectationKind):
    """This date (2024-03-01) is in the answer: also as "1 March 2024", "March 1, 2024" or "01.03.2024"."""

    of_words = True

    def problem(self, demand: Expectation) -> str:
        try:
            date.fromisoformat(demand.wanted)
        except (TypeError, ValueError):
            return f"a date like 2024-03-01 was expected; found {demand.wanted!r:.40}"
        return ""

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        seen = []
        for match in _DATE.finditer(answer.words):
            found = _date(match)
            if found is None:
                continue
            seen.append(match[0])
            if found.isoformat() == demand.wanted:
                return Finding(True, f"it says {match[0]}", *match.span())
        return Finding(False, f"its dates are {', '.join(seen[:8])}" if seen else "it has no date")


def _date(match: re.Match[str]) -> date | None:
    try:
        if match["iso"]:
            return date(*map(int, match["iso"].split("-")))
        if match["dotted"]:
            return date(*map(int, reversed(match["dotted"].split("."))))
        name = (match["month"] or match["month2"]).lower()
        month = next(n for n, each in enumerate(_MONTHS, 1) if each.startswith(name))
        return date(int(match["year"] or match["year2"]), month, int(match["day"] or match["day2"]))
    except (ValueError, StopIteration):
        return None
