"""The key of a blind sheet: the row of each item."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from rag_harness.errors import DataError
from rag_harness.files.atomic import write_atomically
from rag_harness.files.json_text import read_json

ENDING = ".key.json"


def write_key(file: Path, rows: Mapping[str, tuple[str, str]]) -> None:
    """Write the row, experiment and query, of each item."""
    content = {item: {"experiment": experiment, "query_id": query_id} for item, (experiment, query_id) in rows.items()}
    lines = ",\n".join(f" {json.dumps(item)}: {json.dumps(row, ensure_ascii=False)}" for item, row in content.items())
    write_atomically(file, f"{{\n{lines}\n}}\n".encode())


def key_of(item: str, sheet: Path, key: Path | None) -> tuple[str, str]:
    """Return the row of an item.

    Raises:
        DataError: there is no key, or the item is not in it.
    """
    file = key or sheet.with_suffix("").with_suffix(ENDING)
    rows = _read(file)
    if rows is None:
        raise DataError(f"item {item!r} needs the key of its sheet; {file} is none. Name it with --key FILE")
    if item not in rows:
        raise DataError(f"item {item!r} is not in the key {file}")
    return rows[item]


def _read(file: Path) -> dict[str, tuple[str, str]] | None:
    try:
        said = read_json(file.read_text(encoding="utf-8"))
        return {item: (str(row["experiment"]), str(row["query_id"])) for item, row in said.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
