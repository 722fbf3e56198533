"""Sections of the terminal report that other people add: ``rag_harness.sections``.

Registered is a function of the tables, ``{suite: SuiteTable}``, that returns lines; under its name they are printed
below the harness's own. It reads what the run has left in its files, as everything in this room does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rag_harness.registry import registered, resolve
from rag_harness.report.suite_table import SuiteTable

GROUP = "sections"


def own_sections(tables: Mapping[str, SuiteTable]) -> Iterator[tuple[str, list[str]]]:
    """Yield title and lines of each registered section that has something to say; one that fails says why."""
    for name in sorted(registered(GROUP)):
        try:
            lines = [str(line) for line in resolve(GROUP, name)(tables)]
        except Exception as error:  # somebody else's code, after a run that was paid for
            lines = [f"it failed: {type(error).__name__}: {error}"]
        if lines:
            yield name, lines
