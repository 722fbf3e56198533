"""Says what figures of a run show and no gate looks at: answers that break what is expected, answers that are empty."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rag_harness.report.wording import joined_names
from rag_harness.types import GOLDEN

if TYPE_CHECKING:
    from rag_harness.gates.grammar import Gate
    from rag_harness.report.suite_table import SuiteTable


def not_gated_lines(tables: Mapping[str, SuiteTable], gates: Sequence[Gate]) -> Iterator[str]:
    """Yield what is to be known of such answers, of all experiments in a line each.

    Args:
        tables: tables of the suites of the run.
        gates: the gates that are set.
    """
    found = {name: table for name, table in sorted(tables.items()) if name != GOLDEN}
    yield from _empty(found)
    yield from _broken(found, gates)


def _empty(tables: Mapping[str, SuiteTable]) -> Iterator[str]:
    """A service that only finds passages has no answer to be missed: nothing is expected of one."""
    from rag_harness.measures.judged.judged_expectations import EXPECTATIONS

    for name, table in tables.items():
        rows = table.totals.answered
        if rows and not table.totals.answers and EXPECTATIONS in table.columns:
            yield f"{name}: none of {rows:,} answers has a word, so nothing is measured of answers"


def _broken(tables: Mapping[str, SuiteTable], gates: Sequence[Gate]) -> Iterator[str]:
    """Who has gated what one experiment is expected to do knows of it."""
    from rag_harness.measures.expectation_measures import PREFIX
    from rag_harness.measures.judged.judged_expectations import EXPECTATIONS

    if any(gate.measure.startswith((EXPECTATIONS, PREFIX)) for gate in gates):
        return
    values = {name: table.values(EXPECTATIONS, {}) for name, table in tables.items() if table.has(EXPECTATIONS)}
    broken = {name: count for name, found in values.items() if (count := sum(v < 1 for v in found.values()))}
    if broken:
        said = joined_names([f"{count:,} of {len(values[name]):,} of {name}" for name, count in broken.items()])
        example = f"{next(iter(broken))}: {EXPECTATIONS} >= 0.9"
        yield f"answers that break what their questions expect: {said}. No gate looks at it; set one, e.g. {example}"
