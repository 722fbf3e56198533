"""The JSON Schema of the description of a service: a file for ``--rag-endpoint``."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from rag_harness.files.json_schema import Schema, closed, document, list_schema, text_schema
from rag_harness.settings.endpoint_checks import EXPERIMENT_NAME, RESERVED_NAMES
from rag_harness.settings.endpoint_session import SESSION_FLAGS, SESSION_TEXTS
from rag_harness.settings.endpoint_spec import AnswerPaths, EndpointSpec, HistoryLimits, StreamReading, VersionReading
from rag_harness.settings.endpoints import ENDPOINT_KINDS, OF_TRACES, TEXTS, TRACES, WHOLE

_NUMBER = {"type": "number", "minimum": 0}
_WHOLE_NUMBER = {"type": "integer", "minimum": 0}
_ANYTHING: Schema = {}
"""A template is a table, JSON as text, or any value."""


def endpoint_schema() -> Schema:
    """Return the schema of the file.

    It is about form. Whether an address can be asked, a header holds a secret, or an expectation is one, only the
    reader says.
    """
    tables: dict[str, Schema] = {
        "read": _texts(AnswerPaths),
        "stream": _texts(StreamReading),
        "version": _texts(VersionReading),
        "history": closed({each.name: _WHOLE_NUMBER for each in fields(HistoryLimits)}),
        "session": _session(),
        "headers": {"type": "object", "additionalProperties": text_schema()},
        "expect": list_schema({"type": "object"}),
        "body": _ANYTHING,
        "arguments": _ANYTHING,
    }
    names = [each.name for each in fields(EndpointSpec) if each.name != "where"]
    properties = {name: tables[name] if name in tables else _plain(name) for name in [*names, "arguments"]}
    about = _attributes(EndpointSpec) | {"arguments": "template of the tool's arguments where kind is mcp"}
    described = {name: {**each, "description": about[name]} for name, each in properties.items()}
    return document(
        "Service",
        "A service as an experiment of rag-harness: pytest --rag-endpoint FILE.toml",
        closed(
            described,
            ["url"],
            allOf=[
                _if_kind("openai", {"required": ["model"]}),
                _if_kind("mcp", {"required": ["tool"], "properties": {"body": False}}),
                {"anyOf": [_is_kind("mcp"), {"properties": {"arguments": False}}]},
            ],
            dependentRequired={name: ["traces"] for name in OF_TRACES},
        ),
    )


def _plain(name: str) -> Schema:
    if name == "name":
        return {**text_schema(pattern=f"^{EXPERIMENT_NAME}$"), "not": {"enum": [*RESERVED_NAMES]}}
    if name == "kind":
        return {"enum": [*ENDPOINT_KINDS]}
    if name == "traces":
        return {"enum": [*TRACES]}
    if name == "url":
        return text_schema(minLength=1)
    if name in TEXTS:
        return text_schema()
    return _WHOLE_NUMBER if name in WHOLE else _NUMBER


def _texts(of: type[Any]) -> Schema:
    return closed({each.name: text_schema() for each in fields(of)})


def _session() -> Schema:
    opened = closed(
        {"url": text_schema(minLength=1), "method": text_schema(), "body": {"type": ["object", "array"]}}, ["url"]
    )
    named = {name: text_schema() for name in SESSION_TEXTS}
    flags: dict[str, Schema] = {name: {"type": "boolean"} for name in SESSION_FLAGS}
    return closed({**named, **flags, "open": opened}, anyOf=[{"required": ["path"]}, {"required": ["id"]}])


def _is_kind(kind: str) -> Schema:
    return {"required": ["kind"], "properties": {"kind": {"const": kind}}}


def _if_kind(kind: str, then: Schema) -> Schema:
    return {"if": _is_kind(kind), "then": then}


def _attributes(of: type[Any]) -> dict[str, str]:
    """Return what a docstring says of each attribute, by name."""
    found: dict[str, str] = {}
    for line in (of.__doc__ or "").partition("Attributes:\n")[2].splitlines():
        name, colon, said = line.strip().partition(": ")
        if colon:
            found[name] = said.replace("``", "")
    return found
