"""Wording for people: numbers, amounts and names, and the better side of a measure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from typing import Literal, TypeAlias

from rag_harness.core.errors import PrerequisiteError
from rag_harness.evaluation.measures import Measure, measure_named

_NAMED, _LONGEST = 3, 40


FEWEST_ERRORS, MOST_ERRORS = 3, 0.05
"""With at least so many errors, in more than this share of its trials, an experiment is neither better nor worse."""


def counted(n: int, one: str, many: str = "") -> str:
    """Return a number with its noun."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def many_errors_said(errors: int, rows: int) -> str:
    """Say that too many trials ended with an error to call an experiment better or worse; empty where few did."""
    if errors < FEWEST_ERRORS or errors <= MOST_ERRORS * rows:
        return ""
    return f"{errors:,} of {rows:,} trials ended with an error"


def joined_names(names: Sequence[str]) -> str:
    """Return names joined as in a sentence."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else ""


def listed(names: Sequence[str], most: int = _NAMED) -> str:
    """Return names as text; of many the first."""
    names = [short(name) for name in names]
    return joined_names([*names[:most], f"{len(names) - most} more"] if len(names) > most + 1 else names)


def short(name: str, room: int = _LONGEST) -> str:
    """Return a name in at most so many characters, cut in its middle: variants differ at the end."""
    return name if len(name) <= room else f"{name[: room // 2 - 1]}…{name[-(room - room // 2) :]}"


# Cuts a text that is too long between two clauses, never inside brackets.

CUT = " …"
"""Stands behind a text whose end is left out, and before one whose beginning is."""
_BRACKETED = re.compile(r"\((?:[^()]|\([^()]*\))*\)|\[[^\[\]]*\]|“[^”]*”")
_SPACE = re.compile(r"\s+")
_ABBREVIATED = ("e.g.", "i.e.")
_LEAST_LEFT = 0.5
"""A cut between clauses may leave no less than this share of what a cut between words leaves."""
_LONGEST_LEFT = 1_000
"""Characters of a text that are looked at: more is never left of one."""


def beginning_that_fits(text: str, fits: Callable[[str], bool]) -> str:
    """Return the text, or the longest beginning that fits with ``CUT`` behind it; empty where no beginning fits.

    It ends with a clause. Where a first clause is too long for that, it ends with a word.
    """
    if fits(text):
        return text
    text = text[:_LONGEST_LEFT]
    return _longest([(f"{text[:start].rstrip(',;:')}{CUT}", is_clause) for start, _, is_clause in _gaps(text)], fits)


def end_that_fits(text: str, fits: Callable[[str], bool]) -> str:
    """Return the same of the end of a text, with ``CUT`` before it."""
    if fits(text):
        return text
    text = text[-_LONGEST_LEFT:]
    return _longest([(f"{CUT.strip()} {text[end:]}", is_clause) for _, end, is_clause in [*_gaps(text)][::-1]], fits)


def _longest(cuts: Sequence[tuple[str, bool]], fits: Callable[[str], bool]) -> str:
    """Return the longest of the cuts that fit. The shortest comes first."""
    fitting = [*takewhile(lambda cut: fits(cut[0]), cuts)]
    word = max((text for text, _ in fitting), key=len, default="")
    clause = max((text for text, is_clause in fitting if is_clause), key=len, default="")
    return clause if len(clause) >= _LEAST_LEFT * len(word) else word


def _gaps(text: str) -> Iterator[tuple[int, int, bool]]:
    """Yield begin and end of each blank that is not in brackets, and whether it stands between clauses."""
    bracketed = [found.span() for found in _BRACKETED.finditer(text)]
    for found in _SPACE.finditer(text):
        start, end = found.span()
        if start and not any(first < start < last for first, last in bracketed):
            before = text[:start]
            is_clause = before.endswith((",", ";", ".", "?", "!")) and not before.endswith(_ABBREVIATED)
            yield start, end, is_clause or text[end : end + 1] in {"(", "“"}


def money(dollars: float) -> str:
    """Return an amount for people: to the cent, and with more digits below a dollar."""
    return f"${dollars:.2f}" if dollars >= 1 else f"${dollars:.4f}"


# Says of a measure whether higher or lower values are better. Some measures have no better side.

Side: TypeAlias = Literal["higher", "lower", ""]
NEITHER = ("abstention_rate", "confidence", "carried_faithfulness")
"""Measures where higher is better on some queries and worse on others."""


def better_of(measure: Measure) -> Side:
    """Return whether higher or lower is better on every query; "" where neither is."""
    return "" if measure.name in NEITHER else measure.better


def better_named(name: str) -> Side:
    """Return the same by the measure's name; "" for a measure that is not registered here."""
    try:
        return better_of(measure_named(name))
    except PrerequisiteError:
        return ""


def number_or_dash(value: float | None) -> str:
    """Return a number with three decimals; a dash where there is none."""
    return "-" if value is None else f"{value:.3f}"
