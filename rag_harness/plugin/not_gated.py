"""Says what figures of a run show and no gate looks at: answers that break what is expected, answers that are empty."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rag_harness.types import GOLDEN

if TYPE_CHECKING:
    from rag_harness.gates.grammar import Gate
    from rag_harness.report.suite_table import SuiteTable


def not_gated_lines(tables: Mapping[str, SuiteTable], gates: Sequence[Gate]) -> Iterator[str]:
    """Yield a line for each experiment that has such answers.

    Args:
        tables: tables of the suites of the run.
        gates: the gates that are set.
    """
    for name, table in sorted(tables.items()):
        if name != GOLDEN:
            yield from _empty(name, table)
            yield from _broken(name, table, gates)


def _empty(name: str, table: SuiteTable) -> Iterator[str]:
    """A service that only finds passages has no answer to be missed: nothing is expected of one."""
    from rag_harness.measures.judged.judged_expectations import EXPECTATIONS

    rows = table.totals.rows - table.totals.errors
    if rows and not table.totals.answers and EXPECTATIONS in table.columns:
        yield f"{name}: none of {rows:,} answers has a word, so nothing is measured of answers"


def _broken(name: str, table: SuiteTable, gates: Sequence[Gate]) -> Iterator[str]:
    from rag_harness.measures.expectation_measures import PREFIX
    from rag_harness.measures.judged.judged_expectations import EXPECTATIONS

    is_gated = any(gate.suite == name and gate.measure.startswith((EXPECTATIONS, PREFIX)) for gate in gates)
    if is_gated or not table.has(EXPECTATIONS):
        return
    values = table.values(EXPECTATIONS, {}).values()
    broken = sum(value < 1 for value in values)
    if broken:
        yield (
            f"{name}: {broken:,} of {len(values):,} answers break what their questions expect, and no gate looks at "
            f"it; one would be: {name}: {EXPECTATIONS} >= 0.9"
        )
