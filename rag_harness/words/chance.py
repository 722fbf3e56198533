"""What differs by chance between two messages that say the same: addresses in memory, ids of requests, times."""

from __future__ import annotations

import re

_CHANCE = re.compile(
    r"""\b0x[0-9a-f]{4,}
    | \b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b   # a UUID
    | \b\d{4}-\d\d-\d\d[T ]\d\d:\d\d[\d:.,]*Z?
    | (?<![\d.])\d{1,15}(?:\.\d{1,15})?\s?(?:ms|s|seconds?)\b""",
    re.VERBOSE | re.IGNORECASE,
)
_NAME = re.compile(r"(?<![\w-])[\w-]{16,}(?![\w-])")
_HEX = "0123456789abcdefABCDEF"
_LEAST_HEX = 16


def without_chance(message: str) -> str:
    """Return a message with a mark in place of each part that differs by chance."""
    return _CHANCE.sub("<>", _NAME.sub(_without_id, message))


def _without_id(found: re.Match[str]) -> str:
    """Return a name as it is, or a mark where it ends as ids of requests do: req_011CQx4f09…"""
    name = found[0]
    is_id = any(map(str.isdigit, name)) and len(name) - len(name.rstrip(_HEX)) >= _LEAST_HEX
    return "<>" if is_id else name
