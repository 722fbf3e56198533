"""Schemas in words: the type of a value, and the fields of an object. A schema that is named stays a name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_DEEPEST = 5
_MOST_VALUES = 50


def mapping(value: Any) -> Mapping[str, Any]:
    """Return ``value`` if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: Any) -> list[Any]:
    """Return ``value`` if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def said(value: Any) -> str:
    """Return a scalar as text; empty for anything else, which could be without end."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, str | int | float) else ""


def name_of(schema: Mapping[str, Any]) -> str:
    """Return the last part of what a ``$ref`` names; empty where there is none."""
    return said(schema.get("$ref")).rpartition("/")[2]


def type_of(schema: Any, depth: int = 0) -> str:
    """Return the type in words, for example ``array of Pet``."""
    about = mapping(schema)
    if not about or depth > _DEEPEST:
        return ""
    if name := name_of(about):
        return name
    for key, between in (("oneOf", " or "), ("anyOf", " or "), ("allOf", " and ")):
        parts = [type_of(each, depth + 1) for each in items(about.get(key))[:_MOST_VALUES]]
        if any(parts):
            return between.join(filter(None, dict.fromkeys(parts)))
    return _plain(about, depth)


def _plain(about: Mapping[str, Any], depth: int) -> str:
    kinds = [said(each) for each in items(about.get("type"))] or [said(about.get("type"))]
    kind = " or ".join(filter(None, kinds)) or ("object" if "properties" in about else "")
    if kind == "array":
        kind = f"array of {type_of(about.get('items'), depth + 1) or 'values'}"
    values = ", ".join(filter(None, map(said, items(about.get("enum"))[:_MOST_VALUES])))
    limits = [f"{key} {said(about[key])}" for key in ("minimum", "maximum", "minLength", "maxLength") if key in about]
    default = [f"default {said(about['default'])}"] if said(about.get("default")) else []
    more = [*filter(None, [said(about.get("format"))]), *([f"one of {values}"] if values else []), *limits, *default]
    return ", ".join(filter(None, [kind, *more]))


def field_rows(schema: Mapping[str, Any]) -> Iterator[list[str]]:
    """Yield name, type, "yes" if required, and description of each field; those of inner objects are ``owner.name``."""
    return _rows(schema, "", 0)


def _rows(schema: Mapping[str, Any], above: str, depth: int) -> Iterator[list[str]]:
    if depth > _DEEPEST or name_of(schema):
        return
    for part in items(schema.get("allOf")):
        yield from _rows(mapping(part), above, depth + 1)
    required = {each for each in items(schema.get("required")) if isinstance(each, str)}
    for name, found in mapping(schema.get("properties")).items():
        about = mapping(found)
        full = f"{above}{said(name)}"
        yield [full, type_of(about), "yes" if name in required else "no", said(about.get("description"))]
        yield from _rows(about, f"{full}.", depth + 1)
        inside = mapping(about.get("items"))
        if not name_of(about):
            yield from _rows(inside, f"{full}[].", depth + 1)
