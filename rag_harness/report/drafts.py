"""Counts the unreviewed questions behind the figures, and prints the number beside them, with or without gates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rag_harness.report.suite_table import SuiteTable
from rag_harness.types import REVIEWED


def draft_lines(tables: Mapping[str, SuiteTable]) -> Iterator[str]:
    """Yield a line a suite with drafts among its selected cases."""
    for name, table in sorted(tables.items()):
        drafts, selected = table.selected_of({REVIEWED: "no"}), table.selected_of({})
        if drafts:
            questions = f"question{'s' * (selected != 1)} {'is' if drafts == 1 else 'are'}"
            yield f"{name}: {drafts} of {selected} {questions} unreviewed"
