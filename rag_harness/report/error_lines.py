"""The errors of a run for people: a line for each that differs by more than chance, with its number of trials."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from rag_harness.report.suite_table import SuiteTable
from rag_harness.report.totals import MOST_ERRORS
from rag_harness.words.chance import without_chance


def error_lines(tables: Iterable[SuiteTable]) -> tuple[list[str], int]:
    """Return a line for each of the first errors that differ by more than chance, and how many trials ended in others.

    One trial is named. Of several with the same error the number is said, and the first, where it is known.
    """
    found = [table.totals for table in tables]
    each = [(why, n) for totals in found for why, n in totals.alike_errors.items()]
    counts: Counter[str] = Counter()
    for why, n in each:
        counts[without_chance(why)] += n
    first = {without_chance(why): trial for totals in reversed(found) for trial, why in reversed(totals.first_errors)}
    shown = {without_chance(why): why for why, _ in reversed(each)}
    kinds = list(counts)[:MOST_ERRORS]
    lines = [_line(counts[kind], first.get(kind, ""), shown[kind]) for kind in kinds]
    return lines, sum(totals.errors for totals in found) - sum(counts[kind] for kind in kinds)


def _line(n: int, trial: str, why: str) -> str:
    if n == 1:
        return f"error {trial}: {why}" if trial else f"error: {why}"
    return f"{n:,} × the same error{f', first {trial}' if trial else ''}: {why}"
