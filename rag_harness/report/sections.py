"""Users' own sections of the terminal report: the entry points ``rag_harness.sections``.

A section is a function of the tables, ``{suite: SuiteTable}``, that returns lines. They are printed under its name,
below the harness's own lines. It reads the files of a run, as everything in this room does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from rag_harness.registry import registered, resolve

if TYPE_CHECKING:
    from rag_harness.report.suite_table import SuiteTable

SECTIONS_GROUP = "sections"


def own_sections(tables: Mapping[str, SuiteTable]) -> Iterator[tuple[str, list[str]]]:
    """Yield title and lines of each registered section that has lines. A section that fails says why."""
    for name in sorted(registered(SECTIONS_GROUP)):
        try:
            lines = [str(line) for line in resolve(SECTIONS_GROUP, name)(tables)]
        except Exception as error:  # users' code may raise anything, and the run was paid for
            lines = [f"it failed: {type(error).__name__}: {error}"]
        if lines:
            yield name, lines
