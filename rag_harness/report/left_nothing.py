"""What is said first of a folder whose last run left no results: when, why, which command, and of what the rest is."""

from __future__ import annotations

from pathlib import Path

from rag_harness.errors import DataError
from rag_harness.report.provenance import time_said
from rag_harness.results.begun_run import BegunRun, read_begun
from rag_harness.results.manifest import read_manifest

_UNKNOWN = "it was killed, or is still under way."
_LONGEST = 400


def left_nothing_lines(begun: BegunRun, before: str) -> list[str]:
    """Return why the last run left no results, and what it was.

    Args:
        begun: the last run.
        before: date of the run whose results are there.
    """
    why = " ".join(begun.why.split())[:_LONGEST] or _UNKNOWN
    end = "" if why.endswith((".", "!", "?")) else "."
    which = f" The last run was begun {time_said(begun.date)} by: {begun.command}" if begun.date else ""
    return [
        f"The last run left no results: {why}{end}",
        f"What follows is of the run before it, of {time_said(before)}.{which}",
    ]


def said_of_last_run(output: Path) -> list[str]:
    """Return the same of an output folder; empty where its last run left results, or where it has no run."""
    begun = read_begun(output)
    if begun is None:
        return []
    try:
        return left_nothing_lines(begun, read_manifest(output).date)
    except DataError:
        return []
