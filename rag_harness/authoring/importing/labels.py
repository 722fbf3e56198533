"""The labels of an imported question: what else its record says, as far as it is short."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rag_harness.authoring.importing.notes import Notes
from rag_harness.results.storable import storable

_LONGEST = 2_000
"""The most characters of a label as JSON: vectors and pages are none."""


def labels_of(values: Mapping[str, Any], where: str, notes: Notes) -> dict[str, Any]:
    """Return the values as plain JSON, without empty ones. Those that are too long are noted."""
    found = {}
    for name, value in values.items():
        plain = storable(value)
        if not name or plain in (None, "", [], {}):
            continue
        if len(json.dumps(plain)) > _LONGEST:
            notes.lose(f"{name}: longer than {_LONGEST:,} characters, so it is no label", where)
        else:
            found[str(name)] = plain
    return found
