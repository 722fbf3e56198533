"""Kinds that look for a number or a date in an answer, however it is written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from functools import lru_cache
from typing import ClassVar

from rag_harness.expectations.kind import AnswerSeen, ExpectationKind, Finding
from rag_harness.expectations.kinds.demand_checks import most_problem, number_problem
from rag_harness.types import Expectation
from rag_harness.words.stated_values import readings

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
    """A number of this value stands in the answer: 1400 is found in "1,400" and "1 400.0".

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
        for start, number, values in _numbers(answer.words):
            span = start, start + len(number)
            if unit and unit not in _beside(answer.words, *span):
                continue
            seen.append(number)
            if any(abs(each - demand.wanted) <= near + 1e-9 * max(1.0, abs(demand.wanted)) for each in values):
                return Finding(True, f"it says {number}", *span)
        behind = f" with {unit} beside them" if unit else ""
        return Finding(
            False, f"its numbers{behind} are {', '.join(seen[:8])}" if seen else f"it has no numbers{behind}"
        )


@lru_cache(maxsize=8192)
def _numbers(text: str) -> tuple[tuple[int, str, tuple[float, ...]], ...]:
    """Return where each number of a text begins, its text and what it may mean.

    Attribution looks through the same chunks for each expectation that an answer breaks.
    """
    return tuple((match.start(), match[0], tuple(readings(match[0]))) for match in _NUMBER.finditer(text))


def _beside(text: str, start: int, end: int) -> list[str]:
    behind, before = _WORD_BEHIND.match(text, end), text[max(0, start - 40) : start].rstrip()
    word = before[-1:] if before.endswith(tuple(_SIGNS)) else before[len(before.rstrip(_letters(before))) :]
    return [each.lower() for each in (behind[1] if behind else "", word) if each]


def _letters(text: str) -> str:
    """Return the letters of a text, to be taken off its end."""
    return "".join(set(filter(str.isalpha, text))) or " "


class Date(ExpectationKind):
    """This date (2024-03-01) stands in the answer: also as "1 March 2024", "March 1, 2024" or "01.03.2024"."""

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
