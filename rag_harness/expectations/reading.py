"""Reads expectations from JSON, and says what is wrong with them before anything is asked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from math import isfinite
from typing import Any

from rag_harness.errors import is_near, unknown
from rag_harness.expectations.contradicting import contradictions, in_short
from rag_harness.expectations.kind import ExpectationKind
from rag_harness.registry import registered, resolve
from rag_harness.types import Expectation

GROUP = "expectations"
MOST_EXPECTED = 100
"""The most expectations of a case."""
_LONGEST = 20_000
"""The most characters of one expectation, as JSON."""
_BESIDE = ("weight", "must")
_WRITTEN: Mapping[object, str] = {bool: "true or false", str: "a text"}


def known_kinds() -> list[str]:
    """Return the registered kinds."""
    return sorted(registered(GROUP))


@cache
def kind_of(name: str) -> ExpectationKind:
    """Return the kind of a registered name."""
    made: ExpectationKind = resolve(GROUP, name)()
    return made


def tells_by_words(expectation: Expectation) -> bool:
    """Whether an expectation is about the words alone, so that a right answer written by a person keeps to it, too."""
    return kind_of(expectation.kind).of_words


def needs_model(expectation: Expectation) -> bool:
    """Whether a judge or an embedder has to be asked about an expectation: its row alone does not tell."""
    return kind_of(expectation.kind).asks != "nothing"


def expectations_of(raw: object) -> tuple[tuple[Expectation, ...], list[str]]:
    """Return the expectations that ``raw`` lists, and what is wrong with it, a sentence each.

    Args:
        raw: a list of objects: the kind with what is wanted, or ``not`` with such an object; ``weight`` and ``must``.
    """
    if not isinstance(raw, list):
        return (), [f'a list of objects was expected, e.g. [{{"contains": "45 days"}}]; found {in_short(raw)}']
    if len(raw) > MOST_EXPECTED:
        return (), [f"{len(raw):,} expectations; a case may have {MOST_EXPECTED}"]
    found: list[Expectation] = []
    problems: list[str] = []
    for number, each in enumerate(raw):
        read = _one(each)
        if isinstance(read, str):
            problems.append(f"{number}: {read}")
        else:
            found.append(read)
    return tuple(found), problems or [*contradictions(found)]


def as_json(expectation: Expectation) -> dict[str, Any]:
    """Return the object that states an expectation."""
    demand: dict[str, Any] = {expectation.kind: expectation.wanted, **expectation.options}
    said: dict[str, Any] = {"not": demand} if expectation.negated else demand
    weight = {"weight": expectation.weight} if expectation.weight != 1 else {}
    return {**said, **weight, **({"must": True} if expectation.must else {})}


def _one(raw: object) -> Expectation | str:
    if not isinstance(raw, dict):
        return f'an object was expected, e.g. {{"contains": "45 days"}}; found {in_short(raw)}'
    if len(json.dumps(raw, default=str)) > _LONGEST:
        return f"longer than {_LONGEST:,} characters. Shorten it, or make several of it"
    beside = {name: raw[name] for name in _BESIDE if name in raw}
    demand = {name: value for name, value in raw.items() if name not in _BESIDE}
    negated = "not" in demand
    if negated:
        inner, more = demand.pop("not"), list(demand)
        if more:
            return f"{more[0]!r} stands beside 'not'. Put it inside"
        if not isinstance(inner, dict):
            return f'\'not\' takes one object, e.g. {{"not": {{"contains": "refund"}}}}; found {in_short(inner)}'
        if "not" in inner:
            return "'not' stands in 'not'. Take both away"
        demand = inner
    return _beside(beside) or _demand(demand, negated, beside)


def _beside(beside: Mapping[str, Any]) -> str:
    weight, must = beside.get("weight", 1), beside.get("must", False)
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not isfinite(weight) or weight <= 0:
        return f"weight is {in_short(weight)}. Write a number above 0"
    return "" if isinstance(must, bool) else f"must is {in_short(must)}. Write true or false"


def _demand(demand: Mapping[str, Any], negated: bool, beside: Mapping[str, Any]) -> Expectation | str:
    named = [name for name in demand if name in registered(GROUP)]
    if len(named) > 1:
        return f"two kinds in one object, {named[0]} and {named[1]}. Make two of it"
    if not named:
        return _unknown(demand) if demand else "it names no kind"
    name = named[0]
    kind, options = kind_of(name), {key: value for key, value in demand.items() if key != name}
    if wrong := _options(kind, options):
        return f"{name}: {wrong}"
    weight, must = float(beside.get("weight", 1)), bool(beside.get("must", False))
    read = Expectation(name, demand[name], options, negated, weight, must)
    problem = kind.problem(read)
    several = isinstance(read.wanted, list) and f"{name}_any" in registered(GROUP)
    return f"{name}: {problem}{f'. For several there is {name}_any' * several}" if problem else read


def _unknown(demand: Mapping[str, Any]) -> str:
    """Say that an object names no known kind, and what was probably meant."""
    name, wanted = next(iter(demand.items()))
    bare = name.replace("-", "_")
    if bare.startswith("not_") and bare[4:] in registered(GROUP):
        return f'Unknown kind of expectation {name!r}. Write {{"not": {{"{bare[4:]}": {in_short(wanted)}}}}}'
    if name in ("type", "kind"):
        return f'Unknown kind of expectation {name!r}. The kind is the key: {{"contains": "45 days"}}'
    said = unknown("kind of expectation", name, known_kinds()).rstrip(".")
    return said.partition(" Known: ")[0] if is_near(name, known_kinds()) else said


def _options(kind: ExpectationKind, options: Mapping[str, Any]) -> str:
    """Return what is wrong with the values beside a demand; empty where nothing is."""
    for key, value in options.items():
        if key not in kind.options:
            return unknown("option", key, [*kind.options, *_BESIDE]).rstrip(".")
        if isinstance(value, bool) != (kind.options[key] is bool) or not isinstance(value, kind.options[key]):
            return f"{key} is {in_short(value)}. Write {_WRITTEN.get(kind.options[key], 'a number')}"
    return ""
