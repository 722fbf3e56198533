"""Wording for people: numbers, amounts and names, and the better side of a measure."""

from __future__ import annotations

from collections.abc import Sequence
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
