"""Demands of another tool as expectations: those that ours can hold, each looked at as a line of questions would be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rag_harness.authoring.importing.notes import Notes
from rag_harness.expectations import MOST_EXPECTED, expectations_of

Demand = Mapping[str, Any]
"""An expectation as ``queries.jsonl`` has it: ``{"contains": "45 days", "weight": 2}``."""


def kept_demands(demands: Iterable[Demand], where: str, notes: Notes) -> list[Demand]:
    """Return the demands that can be checked, each once. Others, and those that contradict them, are noted."""
    kept: list[Demand] = []
    for each in demands:
        _, problems = expectations_of([each])
        if not problems and each not in kept:
            _, problems = expectations_of([*kept, each])
        if problems:
            notes.lose(f"an expectation: {problems[0].removeprefix('0: ')}", where)
        elif each not in kept and len(kept) < MOST_EXPECTED:
            kept.append(each)
    return kept
