"""What differs by chance between two messages that say the same: addresses in memory, ids of requests, times."""

from __future__ import annotations

import re

_CHANCE = re.compile(
    r"""0x[0-9a-f]{4,}
    | \b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b   # a UUID
    | \b(?=[a-z_-]*\d)[0-9a-z_-]*[0-9a-f]{16,}\b        # an id of a request
    | \b\d{4}-\d\d-\d\d[T ]\d\d:\d\d[\d:.,]*Z?
    | \b\d+(?:\.\d+)?\s?(?:ms|s|seconds?)\b""",
    re.VERBOSE | re.IGNORECASE,
)


def without_chance(message: str) -> str:
    """Return a message with a mark in place of each part that differs by chance."""
    return _CHANCE.sub("<>", message)
