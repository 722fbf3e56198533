"""Texts that a config keeps in files beside it: ``file://parts/a.txt``. No code is run, nothing else is read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeGuard

from rag_harness.authoring.importing.notes import Notes
from rag_harness.dataset.records.source_text import text_of
from rag_harness.dataset.records.yaml_values import read_yaml
from rag_harness.errors import DataError
from rag_harness.files.json_text import read_json
from rag_harness.files.referenced_files import FILE, referenced_files

_TEXTS = (".txt", ".md")
_VALUES = (".json", ".yaml", ".yml")
_SHOWN = 60
_MOST = 4 << 20
"""The most bytes of such a file."""


class UnreadFileError(ValueError):
    """A file cannot be read as a text; the message says why, for behind a colon."""


def is_file(value: Any) -> TypeGuard[str]:
    """Return whether a value names a file in place of a text."""
    return isinstance(value, str) and value.startswith(FILE)


def text_beside(name: str, folder: Path) -> str:
    """Return the text of a file as a variable has it: what YAML holds is written as JSON, as promptfoo does.

    Args:
        name: the file, with or without ``file://``.
        folder: that of the config.

    Raises:
        UnreadFileError: it is missing, of another kind, malformed, or not below the folder.
    """
    value = value_beside(name, folder)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def value_beside(name: str, folder: Path) -> Any:
    """Return what a file holds: a text, or the value that JSON or YAML stands for.

    Raises:
        UnreadFileError: as ``text_beside``.
    """
    shown = name.removeprefix(FILE)
    if "*" in shown:
        raise UnreadFileError(f"{shown} names several files: name each")
    ending = Path(shown).suffix.lower()
    if ending not in (*_TEXTS, *_VALUES):
        raise UnreadFileError(f"{shown} is none of {', '.join((*_TEXTS, *_VALUES))}")
    try:
        (file,) = referenced_files(folder, shown)
        text = text_of(file, _MOST)
        if ending in _TEXTS:
            return text.strip()
        return read_json(text) if ending == ".json" else read_yaml(text, shown).value
    except (DataError, OSError) as error:
        raise UnreadFileError(str(error).rstrip(".")) from None
    except ValueError as error:
        raise UnreadFileError(f"{shown}: {error}") from None


def with_variables(test: Mapping[str, Any], folder: Path, where: str, notes: Notes) -> Mapping[str, Any]:
    """Return a test whose variables stand in it, and not in files that it names. What cannot be read is noted."""
    stated = test.get("vars")
    named = [stated] if isinstance(stated, str) else stated if isinstance(stated, list) else None
    if named is None:
        return test
    variables: dict[str, Any] = {}
    for each in named:
        try:
            value = value_beside(each, folder) if isinstance(each, str) else each
            if not isinstance(value, dict):
                raise UnreadFileError(f"{str(each)[:_SHOWN]} holds no object of variables")
            variables |= value
        except UnreadFileError as error:
            notes.lose(f"variables in a file: {error}", where)
    return {**test, "vars": variables}
