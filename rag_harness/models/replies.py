"""Parser for JSON in a chat model's reply."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_THOUGHT = "</think>"


def json_of(text: str) -> Mapping[str, Any] | None:
    """Return the JSON object in a reply, which may have prose or a fence around it. None without a complete one.

    The reasoning before it may contain drafts in braces.
    """
    found = _object_in(text)
    return found if found is not None or _THOUGHT not in text else _object_in(text.rpartition(_THOUGHT)[2])


def _object_in(text: str) -> Mapping[str, Any] | None:
    start, end = text.find("{"), text.rfind("}")
    try:
        found = json.loads(text[start : end + 1]) if 0 <= start < end else None
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
