"""JSON from outside, parsed within limits, and pieces of JSON Schema that the schemas of our files share."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

# Parser for JSON from outside. Any input gives a value or a ValueError, never another error.

DEEPEST_JSON = 100
"""Most levels of nesting. Recursive functions walk through the values later, so the depth needs a limit."""


def read_json(text: str | bytes, deepest: int = DEEPEST_JSON) -> Any:
    """Return the value that a JSON text encodes.

    Raises:
        json.JSONDecodeError: the text is not valid JSON, or is nested too deeply. The message tells which.
        ValueError: the text is not UTF-8.
    """
    try:
        found = json.loads(text)
    except RecursionError:
        raise _too_deep(deepest) from None
    if _openings(text) > deepest and is_deep(found, deepest):
        raise _too_deep(deepest)
    return found


def after_blanks(text: str, place: int) -> int:
    """Return the place of the next character that is not a blank of JSON; the length of the text at its end."""
    while place < len(text) and text[place] in " \t\r\n":
        place += 1
    return place


def number_as_text(value: Any) -> Any:
    """Return a number as text, and any other value as it is."""
    return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value


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


Schema = dict[str, Any]
DRAFT = "https://json-schema.org/draft/2020-12/schema"
_WHITE = r"\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
"""White space of Unicode, as pydantic strips it; ``\\s`` means another set in each engine of patterns."""


def document(title: str, about: str, schema: Schema) -> Schema:
    """Return a schema as a document: with its draft, its title and what it is about."""
    return {"$schema": DRAFT, "title": title, "description": about, **schema}


def text_schema(about: str = "", **more: Any) -> Schema:
    """Return the schema of a text."""
    return _about({"type": "string", **more}, about)


def filled_text(about: str = "", **more: Any) -> Schema:
    """Return the schema of a text that is more than white space."""
    return text_schema(about, pattern=f"[^{_WHITE}]", **more)


def list_schema(items: Schema, about: str = "", **more: Any) -> Schema:
    """Return the schema of a list."""
    return _about({"type": "array", "items": items, **more}, about)


def closed(properties: Mapping[str, Schema], required: Collection[str] = (), **more: Any) -> Schema:
    """Return the schema of an object that has no other keys than these."""
    needed = {"required": [*required]} if required else {}
    return {"type": "object", "properties": dict(properties), **needed, "additionalProperties": False, **more}


def one_of(*schemas: Schema, about: str = "") -> Schema:
    """Return the schema of what fits one of these, or several."""
    return _about({"anyOf": [*schemas]}, about)


def _about(schema: Schema, about: str) -> Schema:
    return {**schema, "description": about} if about else schema
