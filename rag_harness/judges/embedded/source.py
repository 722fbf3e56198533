"""Reads a passage for the judge: plain text as it is, JSON as one sentence for each leaf, with its fields."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_HOURS = re.compile(r"(\d{1,2}):(\d{1,2})-(\d{1,2}):(\d{1,2})")
_SPOKEN = {"yes": True, "true": True, "free": True, "paid": True, "no": False, "false": False, "none": False}
_MAX_DEPTH = 20


@dataclass(frozen=True, slots=True)
class JsonLeaf:
    """A leaf of a JSON passage with yes, no or null: ``path`` in words, the value True, False or None."""

    path: tuple[tuple[str, ...], ...]
    value: bool | None


@dataclass(frozen=True, slots=True)
class ReadPassage:
    """A passage in readable sentences, and the yes-or-no fields where it was JSON."""

    text: str
    fields: tuple[JsonLeaf, ...] = ()
    structured: bool = False


Path = tuple[tuple[str, ...], ...]


def passage_of(text: str) -> ReadPassage:
    """Return ``text`` in readable form. A JSON object or list becomes lines of the form "path words: value"."""
    found = _parsed(text)
    if found is None:
        return ReadPassage(text)
    leaves = list(_leaves(found, ()))
    fields = tuple(JsonLeaf(path, _truth(value)) for path, value in leaves if path and _is_field(value))
    return ReadPassage("\n".join(_line(path, value) for path, value in leaves), fields, structured=True)


def _parsed(text: str) -> Any:
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict | list) else None


def _leaves(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if len(path) > _MAX_DEPTH:
        yield path, json.dumps(value)
    elif isinstance(value, dict):
        for name, below in value.items():
            yield from _leaves(below, (*path, _words(name)))
    elif isinstance(value, list):
        for below in value:
            yield from _leaves(below, path)
    else:
        yield path, value


def _words(name: str) -> tuple[str, ...]:
    """Return the words of a key: ``OutdoorSeating`` and ``outdoor_seating`` are outdoor, seating."""
    return tuple(word.lower() for word in _CAMEL.findall(name)) or (name,)


def _line(path: Path, value: Any) -> str:
    return f"{' '.join(word for part in path for word in part)}: {_said(value)}"


def _said(value: Any) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    hours = _HOURS.fullmatch(str(value))
    if hours:
        return f"{_clock(hours[1], hours[2])} to {_clock(hours[3], hours[4])}"
    return str(value)


def _clock(hour: str, minute: str) -> str:
    """Return a time in words, as answers have it: 17 and 0 are ``5:00 pm``."""
    twelve = int(hour) % 12 or 12
    return f"{twelve}:{int(minute):02d} {'am' if int(hour) % 24 < 12 else 'pm'}"


def _is_field(value: Any) -> bool:
    return value is None or isinstance(value, bool) or (isinstance(value, str) and value.lower() in _SPOKEN)


def _truth(value: Any) -> bool | None:
    return _SPOKEN[value.lower()] if isinstance(value, str) else value
