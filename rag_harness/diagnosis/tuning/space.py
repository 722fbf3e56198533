"""The space of a race: parameters and their values, its file and its schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from rag_harness.core.errors import SettingsError, unknown
from rag_harness.core.files import json_digest
from rag_harness.core.json_text import Schema, closed, document, list_schema, one_of, text_schema
from rag_harness.core.settings.configurations import (
    ConfigurationSpec,
    ParameterValue,
    checked_value,
    experiment_in,
    flat,
    known_parameters,
    parameter_schema,
)
from rag_harness.core.settings.endpoints import EXPERIMENT_NAME, RESERVED_NAMES, check_name
from rag_harness.core.settings.profiles import check_table_keys, toml_file
from rag_harness.evaluation.measures import measure_named
from rag_harness.runs.gates.grammar import Gate, Reference, parse_gate


@dataclass(frozen=True)
class Parameter:
    """A parameter, the values to try, and the values of others under which it counts; under others it has none."""

    name: str
    values: tuple[ParameterValue, ...]
    only_if: Mapping[str, tuple[ParameterValue, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Space:
    """A space of configurations.

    Attributes:
        parameters: what is varied.
        objective: names of measures: the first is raced on, the others are shown beside it.
        constraints: what each configuration must keep to, as conditions without an experiment.
        start: named configurations that race, too, whatever the parameters say.
        experiment: the experiment or service that is varied; empty for the package's own pipeline.
        margin: differences up to this do not matter: configurations that are shown to be that close are equal.
        held_out: share of the questions that the race never sees.
        confidence: with which all that the race says holds at once.
        seed: of the order of questions, and of their division.
        where: the file.
        digest: of what is said in it.
    """

    parameters: tuple[Parameter, ...]
    objective: tuple[str, ...]
    constraints: tuple[Gate, ...] = ()
    start: tuple[ConfigurationSpec, ...] = ()
    experiment: str = ""
    margin: float = 0.0
    held_out: float = 0.5
    confidence: float = 0.95
    seed: int = 0
    where: str = ""
    digest: str = ""

    @property
    def measures(self) -> list[str]:
        """What each row is measured by: objective and constraints, each once."""
        return list(dict.fromkeys([*self.objective, *(each.measure for each in self.constraints)]))

    def combinations(self) -> Iterator[dict[str, ParameterValue]]:
        """Yield the values of each combination, each once. A parameter whose condition does not hold has none."""
        yield from _combined(conditions_first(self.parameters), {})


def constraint_text(constraint: Gate) -> str:
    """Return a constraint as a space says it: ``p95(total_ms) <= 3000``."""
    return f"{constraint.what} {constraint.op} {constraint.right:g}"


def conditions_first(parameters: Sequence[Parameter]) -> list[Parameter]:
    """Return parameters in an order in which each follows those of its condition.

    Raises:
        ValueError: conditions form a cycle; the message names its parameters.
    """
    ordered: list[Parameter] = []
    waiting = list(parameters)
    while waiting:
        known = named(ordered)
        ready = [each for each in waiting if all(other in known for other in each.only_if)]
        if not ready:
            raise ValueError(", ".join(named(waiting)))
        ordered += ready
        waiting = [each for each in waiting if each not in ready]
    return ordered


def _combined(
    parameters: Sequence[Parameter], chosen: dict[str, ParameterValue]
) -> Iterator[dict[str, ParameterValue]]:
    if not parameters:
        yield chosen
        return
    first, *others = parameters
    # A parameter that has no value itself fulfils no condition.
    if not all(other in chosen and chosen[other] in wanted for other, wanted in first.only_if.items()):
        yield from _combined(others, chosen)
        return
    for value in first.values:
        yield from _combined(others, {**chosen, first.name: value})


def named(values: Sequence[Parameter]) -> list[str]:
    """Return the names of parameters."""
    return [each.name for each in values]


# Reads a space from TOML. Whatever cannot be used is an error before anything is asked.

MOST_CONFIGURATIONS = 2000
"""The most configurations of a space."""
MOST_OBJECTIVES = 3
"""The most measures of an objective."""
TODAY = "today"
"""Name of the configuration that the options are without any of the values."""
_KEYS = (
    *("objective", "constraints", "experiment", "margin", "held_out", "confidence", "seed"),
    *("parameters", "start"),
)
RANGES = {"margin": (0.0, 1.0), "held_out": (0.1, 0.9), "confidence": (0.5, 0.999)}


def read_space(file: Path) -> Space:
    """Return the space of a TOML file.

    Raises:
        SettingsError: the file cannot be read, or something in it cannot be used; says what.
    """
    where = str(file)
    table = toml_file(file, where)
    check_table_keys(where, table, _KEYS)
    experiment = experiment_in(where, table)
    space = Space(
        parameters=_parameters(where, table.get("parameters", {}), experiment),
        objective=_objective(where, table.get("objective")),
        constraints=tuple(_constraint(where, each) for each in _texts(where, table, "constraints")),
        start=_start(where, table.get("start", []), experiment),
        experiment=experiment,
        **{name: _number(where, name, table[name]) for name in RANGES if name in table},
        seed=_seed(where, table.get("seed", 0)),
        where=where,
        digest=json_digest([{key: value for key, value in table.items() if key != "constraints"}]),
    )
    _check_size(space)
    return space


def _check_size(space: Space) -> None:
    if not space.parameters and not space.start:
        raise SettingsError(
            f"{space.where}: there is nothing to try: [parameters] names no parameter. For example: top_k = [3, 5, 8]"
        )
    if sum(1 for _ in islice(space.combinations(), MOST_CONFIGURATIONS + 1)) > MOST_CONFIGURATIONS:
        raise SettingsError(
            f"{space.where}: it has more than {MOST_CONFIGURATIONS:,} configurations, the most that one race can "
            f"tell apart with any certainty. Leave values out, or make one depend on another: "
            f"candidates = {{ values = [20, 50], if = {{ rerank = true }} }}"
        )


def _objective(where: str, said: Any) -> tuple[str, ...]:
    if said is None:
        raise SettingsError(f'{where}: there is no objective. Name a measure: objective = "evidence_recall"')
    names = [said] if isinstance(said, str) else said
    is_list = isinstance(names, list) and 1 <= len(names) <= MOST_OBJECTIVES
    if not is_list or not all(isinstance(each, str) for each in names):
        raise SettingsError(f"{where}: objective is {said!r}: expected the name of a measure, or up to three of them.")
    try:
        first, *_ = [measure_named(name) for name in names]
    except SettingsError as error:
        raise SettingsError(f"{where}: objective: {error}") from None
    if first.unit != "share":
        raise SettingsError(
            f"{where}: objective is {first.name}, whose values have no lowest and highest, so nothing can be shown by "
            f"a race on it. Race on a share (evidence_recall), and bound this one: "
            f'constraints = ["{first.name} {"<=" if first.better == "lower" else ">="} …"]'
        )
    return tuple(names)


def _constraint(where: str, said: str) -> Gate:
    try:
        gate = parse_gate(f"x: {said}", 10)
        measure_named(gate.measure)
    except SettingsError as error:
        raise SettingsError(f"{where}: constraint {said!r}: {str(error).replace('x: ', '')}") from None
    if isinstance(gate.right, Reference) or gate.over or gate.turns or gate.calibrated or gate.confidence:
        raise SettingsError(
            f"{where}: constraint {said!r}: expected a measure or its quantile, and a number: "
            f'"cost_usd <= 0.002", "p95(total_ms) <= 3000".'
        )
    return gate


def _texts(where: str, table: Mapping[str, Any], key: str) -> list[str]:
    said = table.get(key, [])
    if not isinstance(said, list) or not all(isinstance(each, str) for each in said):
        raise SettingsError(f"{where}: {key} is {said!r}: expected a list of texts.")
    return said


def _number(where: str, name: str, said: Any) -> float:
    low, high = RANGES[name]
    if isinstance(said, bool) or not isinstance(said, (int, float)) or not low <= said <= high:
        raise SettingsError(f"{where}: {name} is {said!r}: expected a number from {low:g} to {high:g}.")
    return float(said)


def _seed(where: str, said: Any) -> int:
    if not isinstance(said, int) or isinstance(said, bool):
        raise SettingsError(f"{where}: seed is {said!r}: expected a whole number.")
    return said


def _parameters(where: str, said: Any, experiment: str) -> tuple[Parameter, ...]:
    if not isinstance(said, Mapping):
        raise SettingsError(f"{where}: parameters is {said!r}: expected a table, [parameters].")
    found = tuple(_parameter(where, name, each, experiment) for name, each in flat(said).items())
    known = {each.name: each.values for each in found}
    for each in found:
        for other, wanted in each.only_if.items():
            if other not in known or other == each.name:
                raise SettingsError(f"{where}: {each.name}, if: {unknown('parameter', other, known)}")
            if not set(wanted) & set(known[other]):
                raise SettingsError(
                    f"{where}: {each.name}, if: {other} never is {' or '.join(map(repr, wanted))}, so {each.name} "
                    f"would never be tried. {other} is one of: {', '.join(map(repr, known[other]))}."
                )
    try:
        conditions_first(found)
    except ValueError as error:
        raise SettingsError(f"{where}: the conditions of {error} go round in a circle.") from None
    return found


def _parameter(where: str, name: str, said: Any, experiment: str) -> Parameter:
    conditions: Any = {}
    if isinstance(said, Mapping):
        check_table_keys(f"{where}: {name}", said, ("values", "if"))
        conditions, said = said.get("if", {}), said.get("values", [])
    values = _values(where, name, said, experiment)
    if not isinstance(conditions, Mapping):
        raise SettingsError(f"{where}: {name}, if: expected values of other parameters: if = {{ rerank = true }}.")
    only_if = {
        other: _values(f"{where}: {name}, if", other, each, experiment) for other, each in flat(conditions).items()
    }
    return Parameter(name, values, only_if)


def _values(where: str, name: str, said: Any, experiment: str) -> tuple[ParameterValue, ...]:
    listed = said if isinstance(said, list) else [said]
    if not listed:
        raise SettingsError(f"{where}: {name} has no values.")
    return tuple(dict.fromkeys(checked_value(where, name, each, experiment) for each in listed))


def _start(where: str, said: Any, experiment: str) -> tuple[ConfigurationSpec, ...]:
    if not isinstance(said, list) or not all(isinstance(each, Mapping) for each in said):
        raise SettingsError(f"{where}: start is {said!r}: expected tables, [[start]].")
    found = []
    for number, each in enumerate(said, 1):
        name, here = each.get("name", f"start-{number}"), f"{where}, [[start]] {number}"
        check_name(name, here)
        values = {key: value for key, value in flat(each).items() if key != "name"}
        checked = {key: checked_value(here, key, value, experiment) for key, value in values.items()}
        found.append(ConfigurationSpec(name, tuple(sorted(checked.items())), experiment, where))
    names = [TODAY, *(each.name for each in found)]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise SettingsError(f"{where}: two configurations are called {twice!r}.")
    return tuple(found)


# The JSON Schema of a space of parameters: a file for ``rag-harness tune``.

_OF_SERVICE = r"^body\."
_SCALAR = {"type": ["string", "number", "boolean"]}
_ANY = "an experiment"
"""Means the name of an experiment: which one it is decides nothing here."""
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
    alone, varied = _parameter_schemas(""), _parameter_schemas(_ANY)
    properties: dict[str, Schema] = {
        "objective": one_of(
            text_schema(),
            list_schema(text_schema(), minItems=1, maxItems=MOST_OBJECTIVES),
            about="what is raced on: a measure",
        ),
        "constraints": list_schema(text_schema(), 'what must hold: "cost_usd <= 0.002", "p95(total_ms) <= 3000"'),
        "experiment": text_schema("the experiment or service that is varied; without it the package's own pipeline"),
        **{name: _number_schema(low, high, _ABOUT[name]) for name, (low, high) in RANGES.items()},
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


def _number_schema(low: float, high: float, about: str) -> Schema:
    return {"type": "number", "minimum": low, "maximum": high, "description": about}


def _parameter_schemas(experiment: str) -> dict[str, Schema]:
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
