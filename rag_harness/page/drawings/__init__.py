"""The figures of the report, one in each file: a function of a run returns the figure, or None where there is no data.

Each figure has a table of its data. The numbers are those of the report's other tables.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from rag_harness.page.content import Figure
from rag_harness.page.drawings.measures_by_turn import turns
from rag_harness.page.drawings.ranks import ranks
from rag_harness.page.drawings.risk import risk
from rag_harness.page.drawings.slices import slices
from rag_harness.page.drawings.stated_confidence import reliability, risk_coverage
from rag_harness.page.drawings.taxonomy import taxonomy
from rag_harness.page.drawings.trade_offs import quality_for_money, quality_for_time
from rag_harness.page.run import Run

FigureOf: TypeAlias = Callable[[Run], "Figure | None"]
FIGURES: tuple[FigureOf, ...] = (
    taxonomy,
    quality_for_time,
    quality_for_money,
    risk,
    ranks,
    risk_coverage,
    reliability,
    turns,
    slices,
)
