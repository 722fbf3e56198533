"""The numbers of an evaluation: mean, interval and n of each measure, as every table of the harness has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rag_harness.gates.units import bounds, value_said
from rag_harness.measures import measure_named
from rag_harness.measures.parts import columns_of
from rag_harness.report.suite_table import SuiteTable

_ALWAYS = ("recall@5", "mrr@10", "evidence_recall", "token_f1", "citation_recall", "abstention_rate", "expectations")
"""What is shown where it has a value. Every measure of the run is a column of the frame."""
_LAST = "error_rate"


@dataclass(frozen=True, slots=True)
class MeasureFigure:
    """A measure over the questions.

    Attributes:
        mean: over the n questions with a value; None where none has one. A failed trial counts the worst.
        low, high: 95 % interval of the mean, by the method of the gates; None where the questions allow none.
        n: questions with a value.
        unmeasured: questions without a value that could have had one: a judge failed, say.
        unit: of the values.
        of: questions that allow the measure, where some answers gave nothing to measure; 0 elsewhere.
        alike: on how many pages or in how many conversations the n questions are; empty where each stands alone.
        why_not: why no question has a value, most of them; empty where some has.
    """

    mean: float | None
    low: float | None
    high: float | None
    n: int
    unmeasured: int
    unit: str
    why_not: str = ""
    of: int = 0
    alike: str = ""

    @property
    def cells(self) -> tuple[str, str, str]:
        """Mean, interval and n as text."""
        if self.mean is None:
            return "-", self.why_not, "0"
        has_both = self.low is not None and self.high is not None
        between = bounds(self.low, self.high, self.unit) if has_both else "-"  # type: ignore[arg-type]
        lacking = f" ({self.unmeasured} unmeasured)" if self.unmeasured else ""
        number = f"{self.n} of {self.of}" if self.of else f"{self.n}"
        return value_said(self.mean, self.unit), between, f"{number}{self.alike}{lacking}"


def figures_by_measure(table: SuiteTable, named: Sequence[str]) -> Mapping[str, MeasureFigure]:
    """Return the figures that are shown: of the measures that were named, and of those usual ones with a value."""
    asked = [measure_named(name).name for name in named]
    judged = [name for name in columns_of(asked) if name in table.columns]
    usual = [name for name in _ALWAYS if table.has(name)]
    return {name: _figure(table, name) for name in dict.fromkeys([*asked, *judged, *usual, _LAST])}


def _figure(table: SuiteTable, name: str) -> MeasureFigure:
    values = list(table.values(name, {}).values())
    unit, unmeasured = table.columns[name].measure.unit, table.unmeasured(name, {})
    if not values:
        why = table.absent(name, {}).most_common(1)
        return MeasureFigure(None, None, None, 0, unmeasured, unit, why[0][0] if why else "")
    low, high = table.interval(name) or (None, None)
    left_out = table.left_out(name, {}).total()
    of = len(values) + unmeasured + left_out if left_out else 0
    alike = table.describe_clusters(table.values(name, {}))
    return MeasureFigure(table.aggregate([name])[name], low, high, len(values), unmeasured, unit, of=of, alike=alike)
