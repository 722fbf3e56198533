"""Guesses which tool has written a file, by its name and the fields of its first record."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from rag_harness.authoring.importing.importing import FIELDS
from rag_harness.dataset.records.reading import records_in

_TABLE = "csv"


def guessed_source(file: Path) -> tuple[str, str]:
    """Return the tool that probably wrote a file, and what tells it.

    Raises:
        DataError: the file cannot be read.
        PrerequisiteError: a package is missing that the file needs.
    """
    names = [name for record in islice(records_in(file), 1) for name in record.values]
    for source in FIELDS:
        if told := [name for name in source.typical if name in names]:
            return source.name, f"its fields {', '.join(told)}"
    return _TABLE, "its columns are of no tool that is known"
