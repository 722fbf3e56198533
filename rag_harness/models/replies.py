"""Parser for JSON in a chat model's reply."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from rag_harness.models.reasoning import parted

_MOST_TRIED = 50
"""Braces of a reply from which an object is read; a formula may have many."""
_DECODER = json.JSONDecoder()


def json_of(text: str) -> Mapping[str, Any] | None:
    """Return the JSON object in a reply, which may have reasoning, prose or a fence around it; None without one.

    Of several the last counts: drafts and examples stand before the answer.
    """
    answer = parted(text).answer
    start, end = answer.find("{"), answer.rfind("}")
    try:
        found = json.loads(answer[start : end + 1]) if 0 <= start < end else None
    except (ValueError, RecursionError):
        # json raises ValueError for a number of 5,000 digits, too.
        found = None
    return found if isinstance(found, dict) else next(reversed([*_objects_in(answer)]), None)


def _objects_in(text: str) -> Iterator[Mapping[str, Any]]:
    """Yield the objects that stand beside each other in a text."""
    at = text.find("{")
    for _ in range(_MOST_TRIED):
        if at < 0:
            return
        try:
            found, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            yield found
        at = text.find("{", end)
