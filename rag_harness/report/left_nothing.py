"""What is said first of a folder whose last run left no results: when, why, which command, and of what the rest is.

Such a run may have moved rows of the run before it and have written some of its own.
"""

from __future__ import annotations

from pathlib import Path

from rag_harness.errors import DataError
from rag_harness.report.provenance import time_said
from rag_harness.results.begun_run import BegunRun, read_begun
from rag_harness.results.manifest import read_manifest

_UNKNOWN = "it was killed, or is still under way."
_LONGEST = 400
REST = "what is left of the run before it"
"""What such a folder shows; rows of the last run stand among it."""


def left_nothing_lines(begun: BegunRun, before: str) -> list[str]:
    """Return why the last run left no results, and what it was.

    Args:
        begun: the last run.
        before: date of the run whose results are there.
    """
    which = f" The last run was begun {time_said(begun.date)} by: {begun.command}" if begun.date else ""
    return [
        f"The last run left no results: {_why(begun)}",
        f"What follows is {REST}, of {time_said(before)}, and of this one.{which}",
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


def check_whole(output: Path) -> None:
    """Check that the rows of a folder are of one run, so that they can be compared with those of another.

    Raises:
        DataError: its last run left no results; says why, when, and what to do.
    """
    begun = read_begun(output)
    if begun is not None:
        when = f", begun {time_said(begun.date)}," if begun.date else ""
        raise DataError(
            f"{output} cannot be compared: its last run{when} left no results: {_why(begun)} Its rows are {REST}, and "
            f"of this one. Run pytest with --rag-output={output} again, or compare what --rag-save wrote of a run."
        )


def _why(begun: BegunRun) -> str:
    why = " ".join(begun.why.split())[:_LONGEST] or _UNKNOWN
    return why if why.endswith((".", "!", "?")) else f"{why}."
