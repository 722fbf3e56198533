"""Guesses which tool has written a file, by its name and the fields of its first record."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from rag_harness.authoring.importing.importing import FIELDS, WHOLE, Part, files_of
from rag_harness.authoring.importing.notes import Notes
from rag_harness.authoring.importing.promptfoo.config_tests import YAML
from rag_harness.authoring.importing.published.unfolding import records_to_import

_TABLE = "csv"
_OF_PROMPTFOO = ("vars", "assert", "tests", "prompts", "providers")
_COLUMNS = (
    "__expected",
    "__metadata:",
    "__config:",
    "__description",
    "__threshold",
    "__prefix",
    "__suffix",
    "__metric",
)


def guessed_source(file: Path, part: Part = WHOLE) -> tuple[str, str]:
    """Return the tool that probably wrote a file, and what tells it.

    Raises:
        DataError: the file cannot be read.
        PrerequisiteError: a package is missing that the file needs.
    """
    if file.suffix.lower() in YAML:
        return "promptfoo", "a config in YAML"
    first = files_of(file, part)[0]
    names = [name for record in islice(records_to_import(first, Notes()), 1) for name in record.values]
    if told := [name for name in names if name in _OF_PROMPTFOO or name.startswith(_COLUMNS)]:
        return "promptfoo", f"its fields {', '.join(told)}"
    for source in FIELDS:
        if told := [name for name in source.typical if name in names]:
            return source.name, f"its fields {', '.join(told)}"
    if file.is_dir():
        return "hf", "a folder with data files"
    return _TABLE, "its columns are of no tool that is known"
