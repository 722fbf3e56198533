"""The JSON Schema of a list of expectations. Each kind checks itself what it wants; the schema says which there are."""

from __future__ import annotations

from typing import Any

from rag_harness.expectations.kind import ExpectationKind
from rag_harness.expectations.reading import MOST_EXPECTED, kind_of, known_kinds
from rag_harness.files.json_schema import Schema, closed, list_schema, one_of

_TYPES: dict[type, str] = {str: "string", bool: "boolean", int: "integer", float: "number"}
_BESIDE: dict[str, Schema] = {
    "weight": {"type": "number", "exclusiveMinimum": 0, "description": "how much it counts; 1 where it is missing"},
    "must": {"type": "boolean", "description": "without it the whole answer counts as nothing"},
}


def expectations_schema() -> Schema:
    """Return the schema of a list of expectations, with the kinds that are installed."""
    demands = [_demand(name, kind_of(name), {}) for name in known_kinds()]
    beside = [_demand(name, kind_of(name), _BESIDE) for name in known_kinds()]
    negated = closed({"not": one_of(*demands, about="what an answer must not do"), **_BESIDE}, ["not"])
    return list_schema(one_of(*beside, negated), "what the answer has to keep to", maxItems=MOST_EXPECTED)


def _demand(name: str, kind: ExpectationKind, beside: dict[str, Schema]) -> Schema:
    said = (type(kind).__doc__ or "").strip().partition("\n")[0]
    options = {option: _typed(types) for option, types in kind.options.items()}
    return closed({name: {"description": said} if said else {}, **options, **beside}, [name])


def _typed(types: type | tuple[type, ...]) -> Schema:
    names: list[Any] = [_TYPES[each] for each in (types if isinstance(types, tuple) else (types,)) if each in _TYPES]
    return {"type": names[0] if len(names) == 1 else names} if names else {}
