"""Lists of objects in flat attributes, as OpenInference writes them: ``retrieval.documents.0.document.id``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rag_harness.files.json_text import read_json

REDACTED = "__REDACTED__"
"""What OpenInference puts where content is hidden."""


def flat_list(attributes: Mapping[str, Any], prefix: str) -> list[dict[str, Any]]:
    """Return the items below ``prefix``, in the order of their numbers, each with its keys below the number.

    ``flat_list({"a.10.x": 1, "a.2.y.z": 2}, "a")`` is ``[{"y.z": 2}, {"x": 1}]``. Numbers may have gaps.
    """
    found: dict[int, dict[str, Any]] = {}
    begin = f"{prefix}."
    for name, value in attributes.items():
        if name.startswith(begin):
            number, _, key = name[len(begin) :].partition(".")
            if number.isdecimal() and number.isascii() and len(number) < 10:
                found.setdefault(int(number), {})[key] = value
    return [found[number] for number in sorted(found)]


def structured(value: Any) -> Any:
    """Return what a JSON text says; any other value, and a text that is no JSON, as it is."""
    if not isinstance(value, str) or value[:1] not in ("{", "["):
        return value
    try:
        return read_json(value)
    except ValueError:
        return value


def is_hidden(value: Any) -> bool:
    """Return whether content was taken out on purpose."""
    return isinstance(value, str) and value == REDACTED
