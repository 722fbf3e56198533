"""The report's figures: a file a figure, each a function of a run that returns it, or None where nothing is to show.

Each has a table of what it draws; the numbers are those of the tables.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from rag_harness.page.content import Figure
from rag_harness.page.drawings.confidence import reliability, risk_coverage
from rag_harness.page.drawings.means import grouped, progression
from rag_harness.page.drawings.ranks import ranks
from rag_harness.page.drawings.risk import risk
from rag_harness.page.drawings.slices import slices
from rag_harness.page.drawings.taxonomy import taxonomy
from rag_harness.page.drawings.trade_offs import quality_for_money, quality_for_time
from rag_harness.page.run import Run

FigureOf: TypeAlias = Callable[[Run], "Figure | None"]
FIGURES: tuple[FigureOf, ...] = (
    progression,
    grouped,
    taxonomy,
    quality_for_time,
    quality_for_money,
    risk,
    ranks,
    risk_coverage,
    reliability,
    slices,
)
