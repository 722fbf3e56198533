"""The errors of a run for people: one line for each that differs, with the number of trials that ended in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from rag_harness.report.suite_table import SuiteTable
from rag_harness.report.totals import MOST_ERRORS


def error_lines(tables: Iterable[SuiteTable]) -> tuple[list[str], int]:
    """Return a line for each of the first errors that differ, and how many trials ended in others.

    One trial is named. Of several with the same error the number is said, and the first, where it is known.
    """
    found = [table.totals for table in tables]
    counts: Counter[str] = Counter()
    for totals in found:
        counts.update(totals.alike_errors)
    first = {why: trial for totals in reversed(found) for trial, why in reversed(totals.first_errors)}
    shown = [why for totals in found for why in totals.alike_errors]
    shown = list(dict.fromkeys(shown))[:MOST_ERRORS]
    lines = [_line(counts[why], first.get(why, ""), why) for why in shown]
    return lines, sum(totals.errors for totals in found) - sum(counts[why] for why in shown)


def _line(n: int, trial: str, why: str) -> str:
    if n == 1:
        return f"error {trial}: {why}" if trial else f"error: {why}"
    return f"{n:,} × the same error{f', first {trial}' if trial else ''}: {why}"
