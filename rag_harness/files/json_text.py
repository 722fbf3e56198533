"""Parser for JSON from outside. Any input gives a value or a ValueError, never another error."""

from __future__ import annotations

import json
from typing import Any

DEEPEST_JSON = 100
"""Most levels of nesting. Recursive functions walk through the values later, so the depth needs a limit."""


def read_json(text: str | bytes, deepest: int = DEEPEST_JSON) -> Any:
    """Return what ``text`` says.

    Raises:
        json.JSONDecodeError: the text is no JSON, or is nested too deeply; says which.
        ValueError: the text is no UTF-8.
    """
    try:
        found = json.loads(text)
    except RecursionError:
        raise _too_deep(deepest) from None
    if _openings(text) > deepest and is_deep(found, deepest):
        raise _too_deep(deepest)
    return found


def _too_deep(deepest: int) -> json.JSONDecodeError:
    return json.JSONDecodeError(f"nested deeper than {deepest} levels", "", 0)


def _openings(text: str | bytes) -> int:
    if isinstance(text, str):
        return text.count("[") + text.count("{")
    return text.count(b"[") + text.count(b"{")


def is_deep(value: Any, deepest: int = DEEPEST_JSON) -> bool:
    """Return whether lists and objects are nested deeper than ``deepest`` levels. The function is not recursive."""
    depth, level = 0, [value]
    while level and depth <= deepest:
        depth += 1
        inner = [list(each.values()) if isinstance(each, dict) else each for each in level if _holds(each)]
        level = [item for each in inner for item in each]
    return depth > deepest


def _holds(value: Any) -> bool:
    return isinstance(value, (dict, list))
