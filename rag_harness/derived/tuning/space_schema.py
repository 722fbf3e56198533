"""The JSON Schema of a space of parameters: a file for ``rag-harness tune``."""

from __future__ import annotations

from rag_harness.derived.tuning.space_file import MOST_OBJECTIVES, RANGES, TODAY
from rag_harness.files.json_schema import Schema, closed, document, list_schema, one_of, text_schema
from rag_harness.settings.configurations import known_parameters, parameter_schema
from rag_harness.settings.endpoint_checks import EXPERIMENT_NAME, RESERVED_NAMES

_OF_SERVICE = r"^body\."
_SCALAR = {"type": ["string", "number", "boolean"]}
_ANY = "an experiment"
"""Stands for the name of an experiment: which one it is decides nothing here."""
_ABOUT = {
    "margin": "differences up to this do not matter",
    "held_out": "share of the questions that the race never sees",
    "confidence": "with which all that the race says holds at once",
}


def space_schema() -> Schema:
    """Return the schema of the file.

    It is about form. Whether a measure exists, a constraint can be read, or conditions go round in a circle, only the
    reader says.
    """
    alone, varied = _parameters(""), _parameters(_ANY)
    properties: dict[str, Schema] = {
        "objective": one_of(
            text_schema(),
            list_schema(text_schema(), minItems=1, maxItems=MOST_OBJECTIVES),
            about="what is raced on: a measure",
        ),
        "constraints": list_schema(text_schema(), 'what must hold: "cost_usd <= 0.002", "p95(total_ms) <= 3000"'),
        "experiment": text_schema("the experiment or service that is varied; without it the package's own pipeline"),
        **{name: _number(low, high, _ABOUT[name]) for name, (low, high) in RANGES.items()},
        "seed": {"type": "integer", "description": "of the order of questions, and of their division"},
        "parameters": {"type": "object", "description": "parameters with the values to try"},
        "start": {"type": "array", "items": {"type": "object"}, "description": "configurations that race, too"},
    }
    is_varied = {"required": ["experiment"], "properties": {"experiment": {"minLength": 1}}}
    return document(
        "Space",
        "A space of parameters of rag-harness: rag-harness tune FILE.toml",
        {
            **closed(properties, ["objective"]),
            "anyOf": [
                {"required": ["parameters"], "properties": {"parameters": {"minProperties": 1}}},
                {"required": ["start"], "properties": {"start": {"minItems": 1}}},
            ],
            "if": is_varied,
            "then": {"properties": varied},
            "else": {"properties": alone},
            "$defs": _definitions(),
        },
    )


def _definitions() -> dict[str, Schema]:
    known = dict.fromkeys([*known_parameters(""), *known_parameters(_ANY)])
    values = {name: parameter_schema(name) for name in known}
    return {**values, **{f"tried.{name}": _tried({"$ref": f"#/$defs/{name}"}) for name in known}}


def _number(low: float, high: float, about: str) -> Schema:
    return {"type": "number", "minimum": low, "maximum": high, "description": about}


def _parameters(experiment: str) -> dict[str, Schema]:
    """Return the schemas of ``parameters`` and ``start``."""
    known = known_parameters(experiment)
    tried: dict[str, Schema] = {name: {"$ref": f"#/$defs/tried.{name}"} for name in known}
    values: dict[str, Schema] = {name: {"$ref": f"#/$defs/{name}"} for name in known}
    # What stands below ``body`` has names that a service has given it.
    body: dict[str, Schema] = {"body": {"type": "object"}} if experiment else {}
    of_service = {"patternProperties": {_OF_SERVICE: _tried(_SCALAR)}} if experiment else {}
    one_of_service = {"patternProperties": {_OF_SERVICE: _SCALAR}} if experiment else {}
    name = {**text_schema(pattern=f"^{EXPERIMENT_NAME}$"), "not": {"enum": [*RESERVED_NAMES, TODAY]}}
    return {
        "parameters": {**closed({**tried, **body}), **of_service},
        "start": list_schema({**closed({"name": name, **values, **body}), **one_of_service}),
    }


def _tried(value: Schema) -> Schema:
    """Return the schema of the values of a parameter: one, a list, or a table with values and a condition."""
    several = list_schema(value, minItems=1)
    condition = {"type": "object", "description": "values of others under which it counts"}
    return one_of(value, several, closed({"values": one_of(value, several), "if": condition}, ["values"]))
