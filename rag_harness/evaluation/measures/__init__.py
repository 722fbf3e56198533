"""Measures: functions from a row and its case to a score. One protocol and one registry, open to users.

A measure of your own is a class in a file and a line in your ``pyproject.toml``::

    [project.entry-points."rag_harness.measures"]
    brevity = "my_package.brevity:Brevity"

The registered object is called with the cutoff in the measure's name (``recall@5``: 5, else None) and returns the
measure.

Engine, judges, tables, page and frontends call it. A measure never asks a model: judged ones ask a ``Judge``. Begin
reading with ``measure.py`` and ``ranking.py``.
"""

from __future__ import annotations

from rag_harness.evaluation.measures.measure import (
    Better,
    Measure,
    Need,
    RankingMeasure,
    RowMeasure,
    Score,
    Unit,
    scored,
)
from rag_harness.evaluation.measures.names import (
    columns_of,
    default_measures,
    is_judged,
    known_measures,
    measure_named,
    parts_of,
)

__all__ = [
    "Better",
    "Measure",
    "Need",
    "RankingMeasure",
    "RowMeasure",
    "Score",
    "Unit",
    "columns_of",
    "default_measures",
    "is_judged",
    "known_measures",
    "measure_named",
    "parts_of",
    "scored",
]
