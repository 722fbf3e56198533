"""``expect`` in a table of TOML: what answers owe, a table each."""

from __future__ import annotations

import json
from typing import Any

from rag_harness.errors import SettingsError


def expect_texts(where: str, value: Any) -> tuple[str, ...]:
    """Return each table as JSON.

    Raises:
        SettingsError: the value is no list of tables.
    """
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise SettingsError(f"{where}: expect is {value!r}: expected a list of tables, [{{max_words = 120}}].")
    return tuple(json.dumps(each, default=str) for each in value)
