"""Reads a space from TOML. Whatever cannot be used is an error before anything is asked."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from rag_harness.derived.tuning.space import Parameter, Space, conditions_first
from rag_harness.errors import SettingsError, unknown
from rag_harness.files.sources import json_digest
from rag_harness.gates.grammar import Gate, Reference, parse_gate
from rag_harness.measures import measure_named
from rag_harness.settings.configuration_spec import ConfigurationSpec, ParameterValue
from rag_harness.settings.configurations import checked_value, experiment_in, flat
from rag_harness.settings.endpoint_checks import check_name
from rag_harness.settings.profiles import check_table_keys, toml_file

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
