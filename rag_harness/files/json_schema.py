"""Pieces of JSON Schema that the schemas of our files share: draft 2020-12, as editors read it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

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
