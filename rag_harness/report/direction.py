"""Says of a measure whether higher or lower values are better. Some measures have no better side."""

from __future__ import annotations

from typing import Literal, TypeAlias

from rag_harness.errors import PrerequisiteError
from rag_harness.measures import Measure, measure_named

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
