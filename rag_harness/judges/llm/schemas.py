"""The form of a reply: as a JSON schema for servers that support them, and in words for others."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

Schema = Mapping[str, Any]
TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "integer"}
BOOLEAN: Schema = {"type": "boolean"}


def object_schema(keys: Mapping[str, Schema]) -> Schema:
    """Return the schema of an object that has exactly these keys."""
    return {"type": "object", "properties": dict(keys), "required": list(keys), "additionalProperties": False}


def list_schema(of: Schema, most: int, least: int = 0) -> Schema:
    """Return the schema of a list of ``least`` to ``most`` items. Without an end, a small model repeats itself."""
    return {"type": "array", "items": of, "minItems": least, "maxItems": most}


def response_format(reply: Mapping[str, Schema]) -> Mapping[str, Any]:
    """Return OpenAI's structured-output request."""
    return {"type": "json_schema", "json_schema": {"name": "verdict", "strict": True, "schema": object_schema(reply)}}


def shape(schema: Schema) -> str:
    """Describe a schema in words, for servers without support for schemas."""
    if "enum" in schema:
        return " or ".join(map(json.dumps, schema["enum"]))
    if schema["type"] == "object":
        return "{" + ", ".join(f'"{name}": {shape(each)}' for name, each in schema["properties"].items()) + "}"
    if schema["type"] == "array":
        return f"[{shape(schema['items'])}, …]"
    return {"string": '"…"', "integer": "1", "boolean": "true or false"}[schema["type"]]
