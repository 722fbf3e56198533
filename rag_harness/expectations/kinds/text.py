"""Kinds that look for texts in an answer. Case, runs of blanks and citation marks do not count, nor marks of emphasis.

A number is found whole: "5 days" does not stand in "45 days".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Any, ClassVar

from rag_harness.expectations.kind import AnswerSeen, ExpectationKind, Finding
from rag_harness.expectations.kinds.demand_checks import text_problem, texts_problem
from rag_harness.types import Expectation
from rag_harness.words.comparison import compared_words, without_emphasis

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
    # "5 days" does not stand in "45 days", nor "4.90" in "14.90" or "4.905".
    before = r"(?<!\d)(?<!\d[.,])" if wanted.split(maxsplit=1)[0][0].isdigit() else ""
    behind = r"(?!\d)(?![.,]\d)" if wanted.rsplit(maxsplit=1)[-1][-1].isdigit() else ""
    return re.compile(before + r"\s+".join(words) + behind, 0 if case else re.IGNORECASE)


def found_text(answer: AnswerSeen, wanted: str, options: Mapping[str, Any]) -> Finding:
    """Return whether a text stands in an answer, and where; else what stands there instead."""
    match = _pattern(wanted, bool(options.get("case"))).search(answer.plain.text)
    if match:
        start, end = answer.plain.span(*match.span())
        return Finding(True, f"it says “{answer.words[start:end]}”", start, end)
    return Finding(False, instead(answer, wanted))


def instead(answer: AnswerSeen, wanted: str) -> str:
    """Say what stands in an answer in place of a text: the nearest words, or its beginning."""
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
    """The text stands in the answer."""

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        return found_text(answer, demand.wanted, demand.options)


class ContainsAny(_SomeTexts):
    """At least one of the texts stands in the answer."""

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        found = [found_text(answer, each, demand.options) for each in demand.wanted]
        return next((each for each in found if each.does), found[0])


class ContainsAll(_SomeTexts):
    """Each of the texts stands in the answer."""

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        for each in demand.wanted:
            found = found_text(answer, each, demand.options)
            if not found.does:
                return Finding(False, f"“{each}” is missing: {found.said}")
        return Finding(True, "all of them stand there")


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
